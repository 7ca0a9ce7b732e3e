"""One self-contained ONNX file of a model, for runtimes that know nothing of SPARC.

It is the graph by which answers are found where there is onnxruntime. No file is put in place before onnxruntime gave
the same answers from it as the net.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import ModuleType

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from sparc.data.augment import Augment
from sparc.errors import InputError
from sparc.files import write_atomic
from sparc.folded import FoldedModel
from sparc.graph.model import whole_graph
from sparc.model_file import Model, tensors_of
from sparc.model_input import InputShape
from sparc.onnx_model import LARGEST, OnnxNet
from sparc.runtime import imported

TOLERANCE = 1e-4
"""How far a score may lie from the net's own; where scores exceed 4, that times a quarter of the
largest: with a start and few pictures they are in the hundreds, and rounding grows with them."""
BATCH = 32
COMPARED = 64
"""Pictures on which an export is compared with the net, where nobody says otherwise."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how it did when it was tried."""

    path: Path
    bytes: int
    pictures: int
    """Compared with the net."""
    largest_difference: float
    """Of any score, from the net's own."""
    milliseconds_alone: float
    """Milliseconds a picture, one at a time; onnxruntime, one thread, median."""
    milliseconds_in_batch: float
    """The same in batches of 32."""


def export_onnx(model: Model, path: Path, images: Tensor) -> Exported:
    """Write the model, if it gives the same answers as the net on these uint8 images."""
    try:
        onnx, _ = imported("onnx"), imported("onnxruntime")
    except ImportError as error:
        raise InputError("sparc export needs onnx and onnxruntime: pip install onnx onnxruntime") from error
    shape = model.info.shape
    if images.dtype != torch.uint8 or images.shape[1:] != (shape.channels, *shape.image_size) or not len(images):
        raise InputError(f"an export is tried on at least one uint8 picture of {shape}, not on {_describe(images)}")
    content = _serialized(onnx, model)
    run = _runner(content)
    difference = _compare(model, run, images)
    single = _milliseconds(run, images[:1].numpy())
    batch = _milliseconds(run, images[torch.arange(BATCH) % len(images)].numpy())
    try:
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): choose another place") from error
    return Exported(path, len(content), len(images), difference, single, batch)


def cuttings(shape: InputShape) -> Tensor:
    """Real pictures that are always there: squares cut from the photographs in scikit-learn's wheel."""
    from sklearn.datasets import load_sample_images

    random = np.random.default_rng(0)
    height, width = shape.image_size
    cut = []
    for photograph in load_sample_images().images:
        for _ in range(COMPARED // 2):
            side = int(random.integers(32, min(photograph.shape[:2])))
            top, left = (int(random.integers(0, room - side)) for room in photograph.shape[:2])
            square = Image.fromarray(photograph[top : top + side, left : left + side])
            cut.append(np.asarray(square.resize((width, height))))
    return torch.from_numpy(shape.from_squares(cut))


def _serialized(onnx: ModuleType, model: Model) -> bytes:
    folded = FoldedModel.of(model.info, {name: tensor.numpy() for name, tensor in tensors_of(model.net).items()})
    if (size := folded.nbytes()) > LARGEST:
        raise InputError(
            f"an ONNX file holds at most 2 GiB, and this model is of {size / 2**30:.1f} GiB: keep it as is"
        )
    made = whole_graph(folded)
    onnx.checker.check_model(made, full_check=True)
    content: bytes = made.SerializeToString()
    return content


def _runner(content: bytes) -> Callable[[np.ndarray], np.ndarray]:
    net = OnnxNet(content, threads=1)

    def run(images: np.ndarray) -> np.ndarray:
        """Scores, and in a last column how strange a picture is, where that is known."""
        scores, *strangeness = net(images, len(images))
        return np.concatenate([scores, *(each[:, None] for each in strangeness)], axis=1)

    return run


@torch.no_grad()
def _compare(model: Model, run: Callable[[np.ndarray], np.ndarray], images: Tensor) -> float:
    """The largest difference of a score; a refusal where it is too large, or where another class would win."""
    largest, classes = 0.0, len(model.info.classes)
    for batch in images.split(BATCH):
        expected, strange = _expected(model, batch)
        answered = torch.from_numpy(run(batch.numpy()))
        scores = answered[:, :classes]
        difference = (scores - expected).abs().max().item()
        lost = (expected.amax(1) - expected.gather(1, scores.argmax(1, keepdim=True))[:, 0]).max().item()
        allowed = TOLERANCE * max(1.0, expected.abs().max().item() / 4)
        alike = torch.allclose(answered[:, classes:], strange, rtol=1e-3, atol=TOLERANCE)
        # So written that a score which is no number fails.
        if not (difference <= allowed and lost <= allowed and alike):
            raise InputError(
                f"the ONNX model does not answer as the net does (a score differs by {difference:g}, or strangeness), "
                "so nothing was written: check the model with sparc inspect"
            )
        largest = max(largest, difference)
    return largest


def _expected(model: Model, images: Tensor) -> tuple[Tensor, Tensor]:
    """The net's own scores, and how strange pictures are, [B, 1], or [B, 0] where it does not know."""
    x = Augment(model.info.mean, model.info.std).normalize(images)
    if model.strangeness is None:
        return model.net(x), x.new_empty(len(x), 0)
    features = model.net.pooled(x)
    return model.net.readout()(features), model.strangeness(features[-1])[:, None]


def _milliseconds(run: Callable[[np.ndarray], np.ndarray], images: np.ndarray) -> float:
    """Per picture, the median of up to 20 runs in about a second."""
    seconds: list[float] = []
    run(images)
    while len(seconds) < 3 or (len(seconds) < 20 and sum(seconds) < 1):
        start = time.perf_counter()
        run(images)
        seconds.append(time.perf_counter() - start)
    return 1000 * median(seconds) / len(images)


def _describe(images: Tensor) -> str:
    return f"{len(images)} of {' × '.join(map(str, images.shape[1:]))} in {str(images.dtype).split('.')[-1]}"
