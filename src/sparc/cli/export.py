"""`sparc export`: write a model as one self-contained ONNX file, checked against the original."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sparc.cli.parse import ModelFile, parse
from sparc.errors import InputError
from sparc.export import COMPARED, cuttings, export_onnx
from sparc.files import check_output
from sparc.model_file import load_taught
from sparc.model_input import picture_paths
from sparc.report.plain_table import plain_table
from sparc.text import one_line


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
