"""`sparc export`: write a model as one self-contained ONNX file, checked against the original."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from PIL import Image
from rich.console import Console
from torch import Tensor

from sparc.cli.parse import parse
from sparc.data.archive import names, read
from sparc.data.pictures import decode, is_picture
from sparc.errors import InputError
from sparc.export import export_onnx
from sparc.files import check_output
from sparc.model_file import Shape, load_taught
from sparc.report import plain_table

COMPARED = 64


@dataclass(frozen=True)
class Export:
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """The model file."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT.onnx")]
    """The ONNX file to write."""
    pictures: Path | None = None
    """A folder of pictures on which the two are compared; without it, cuttings of scikit-learn's two photographs."""


def main(arguments: list[str]) -> int:
    given: Export = parse(Export, "export", __doc__, arguments)
    if given.out.suffix != ".onnx":
        raise InputError(f"{given.out} would hold an ONNX model: give it a name that ends in .onnx")
    check_output(given.out, not_over=given.model)
    model = load_taught(given.model)
    shape = model.about.shape
    pictures = cuttings(shape) if given.pictures is None else from_folder(given.pictures, shape)
    done = export_onnx(model.net, model.about, given.out, pictures)
    table = plain_table("", "", "")
    table.add_row("file size", f"{done.bytes:,} bytes")
    table.add_row("pictures compared, given the same class (but for ties)", str(done.pictures))
    table.add_row("largest difference between scores", f"{done.largest_difference:.1e}")
    table.add_row("milliseconds a picture, one at a time", f"{done.milliseconds_alone:.2f}")
    table.add_row("milliseconds a picture, 32 at a time", f"{done.milliseconds_in_batch:.2f}")
    console = Console()
    console.print(table)
    console.print(f"written: {given.out}", markup=False, highlight=False, soft_wrap=True)
    return 0


def from_folder(folder: Path, shape: Shape) -> Tensor:
    found = names(folder, is_picture) if folder.is_dir() else []
    if not found:
        raise InputError(f"{folder} is no folder that holds pictures: name one that is")
    contents = read(folder, found[:: max(1, len(found) // COMPARED)][:COMPARED])
    return _tensor([Image.fromarray(decode(data, name, min(shape.image_size))) for name, data in contents], shape)


def cuttings(shape: Shape) -> Tensor:
    """Real pictures that are always there: squares cut from the photographs in scikit-learn's wheel."""
    from sklearn.datasets import load_sample_images

    random = np.random.default_rng(0)
    pictures = []
    for photograph in load_sample_images().images:
        for _ in range(COMPARED // 2):
            side = int(random.integers(32, min(photograph.shape[:2])))
            top, left = (int(random.integers(0, room - side)) for room in photograph.shape[:2])
            pictures.append(Image.fromarray(photograph[top : top + side, left : left + side]))
    return _tensor(pictures, shape)


def _tensor(pictures: list[Image.Image], shape: Shape) -> Tensor:
    """uint8, N × channels × height × width; channels beyond a picture's three repeat them."""
    height, width = shape.image_size
    arrays = [np.asarray(picture.resize((width, height))) for picture in pictures]
    images = torch.from_numpy(np.stack(arrays)).movedim(3, 1)
    return images[:, torch.arange(shape.channels) % 3].contiguous()
