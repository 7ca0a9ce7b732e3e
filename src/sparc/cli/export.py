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

from sparc.cli.parse import ModelFile, parse
from sparc.errors import InputError
from sparc.export import export_onnx
from sparc.files import check_output
from sparc.model_file import load_taught
from sparc.model_input import InputShape, picture_paths
from sparc.report.plain_table import plain_table
from sparc.text import one_line

COMPARED = 64


@dataclass(frozen=True)
class Export:
    model: ModelFile
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT.onnx")]
    """The ONNX file to write."""
    pictures: Path | None = None
    """A folder of pictures on which the two are compared; without it, cuttings of scikit-learn's two photographs."""


def main(arguments: list[str]) -> int:
    given = parse(Export, "export", __doc__, arguments)
    if given.out.suffix != ".onnx":
        raise InputError(f"{given.out} would hold an ONNX model: give it a name that ends in .onnx")
    check_output(given.out, not_over=given.model)
    model = load_taught(given.model)
    shape = model.info.shape
    if given.pictures is None:
        images = cuttings(shape)
    else:
        shape.check_takes_pictures(given.model)
        paths = picture_paths(given.pictures)
        images = shape.images(paths[:: max(1, len(paths) // COMPARED)][:COMPARED])
    done = export_onnx(model, given.out, images)
    table = plain_table("", "", "")
    table.add_row("file size", f"{done.bytes:,} bytes")
    table.add_row("pictures compared, given the same class (but for ties)", str(done.pictures))
    table.add_row("largest difference between scores", f"{done.largest_difference:.1e}")
    table.add_row("milliseconds a picture, one at a time", f"{done.milliseconds_alone:.2f}")
    table.add_row("milliseconds a picture, 32 at a time", f"{done.milliseconds_in_batch:.2f}")
    Console().print(table)
    print(f"written: {one_line(str(given.out))}")
    return 0


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
