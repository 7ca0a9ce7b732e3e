"""What a start costs: row 9, teaching with it against passes of its net alone in onnxruntime."""

import atexit
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Generator, Tensor

from benchmarks.inference import onnx_answering
from benchmarks.measure import Job, Row, Size, Workers, extremes, in_turns, ratio
from sparc.classifier import ContinualClassifier
from sparc.nn.lite0_weights import are_installed
from sparc.nn.start_numbers import SIDE

CLASSES = 5


def start_rows(size: Size, workers: Workers) -> list[Row]:
    count = CLASSES * size.start_pictures
    what = f"learning {count} pictures with the start, against so many passes in onnxruntime"
    if not are_installed() or find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return [Row("9", what, "sparc-cl[start], onnx or onnxruntime is not installed")]
    workers.ours.make("learn", learning, size)
    workers.ours.make("passes", passes, size)
    seconds = in_turns({"learn": workers.ours, "passes": workers.ours}, rounds=2, warm_up=0)
    slower = ratio(seconds["learn"], seconds["passes"])
    figures = {"times": slower, **extremes("times", seconds["learn"], seconds["passes"])}
    return [Row("9", what, f"{slower:.2f} × the time", "≤ 2 ×", slower <= 2, figures)]


def learning(size: Size) -> Job:
    """From files, as `sparc learn` does, but for the imports."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for number, image in enumerate(_pictures(size).numpy()):
        path = Path(folder) / f"class {number % CLASSES}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.moveaxis(image, 0, 2)).save(path)

    def learn() -> None:
        ContinualClassifier(start="lite0", cache=False).learn(folder)

    return learn


def passes(size: Size) -> Job:
    images = _pictures(size)
    few = images[: 2 * CLASSES]
    labels = [number % CLASSES for number in range(len(few))]
    taught = ContinualClassifier(start="lite0", cache=False).learn(few, labels)
    return onnx_answering(taught.model_, images, batch=1)


def _pictures(size: Size) -> Tensor:
    """In colours, and smooth enough to be like photographs to whoever packs them."""
    coarse = torch.rand(CLASSES * size.start_pictures, 3, 8, 8, generator=Generator().manual_seed(2))
    return torch.nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bilinear").mul(255).byte()
