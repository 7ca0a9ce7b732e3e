"""`sparc predict`: name what is in pictures.

The exit code is 1 where some of them cannot be read; the others are named all the same.
"""

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text
from torch import Tensor

from sparc.cli.parse import parse
from sparc.cli.progress import Display
from sparc.data.archive import LARGEST, names
from sparc.data.pictures import decode, is_picture
from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.learner import outputs, scores
from sparc.model_file import Model, load_taught
from sparc.report.tables import plain_table
from sparc.text import one_line

CHUNK = 64
"""Pictures in memory at a time."""

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class Predict:
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """The model file."""
    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH …")]
    """Pictures, and folders that hold some at any depth."""
    top: int = 1
    """How many classes to name for each picture, likeliest first."""
    task: str | None = None
    """Only choose among this task's classes; without it among all that the model knows."""
    json: bool = False
    """Print a JSON list, an object a picture."""
    csv: bool = False
    """Print comma-separated values, a line a picture and rank."""

    def __post_init__(self) -> None:
        if not self.paths:
            raise InputError("there is nothing to look at: name pictures, or folders of pictures")
        if self.top < 1:
            raise InputError(f"--top {self.top} names nothing: give at least 1")
        if self.json and self.csv:
            raise InputError("--json and --csv are two kinds of output: give one of them")


@dataclass(frozen=True)
class Prediction:
    """What was found in one picture, or why nothing was."""

    path: Path
    classes: tuple[tuple[str, float], ...] = ()
    """Names and probabilities, likeliest first."""
    error: str = ""

    def as_json(self) -> dict[str, object]:
        if self.error:
            return {"path": str(self.path), "error": self.error}
        found = [{"class": name, "probability": probability} for name, probability in self.classes]
        return {"path": str(self.path), "predictions": found}


def main(arguments: list[str]) -> int:
    given: Predict = parse(Predict, "predict", __doc__, arguments)
    model = load_taught(given.model)
    model.about.shape.check_takes_pictures(given.model)
    if given.task is not None and given.task not in (known := [each.name for each in model.about.tasks]):
        raise unknown("task", given.task, known)
    pictures = [picture for path in given.paths for picture in _pictures(path)]
    found = []
    with Display("predict") as display:
        for prediction in _predictions(model, pictures, given.top, given.task):
            found.append(prediction)
            display.loading("pictures", len(found), len(pictures))
    if given.json:
        print(json.dumps([prediction.as_json() for prediction in found], allow_nan=False))
    elif given.csv:
        _print_csv(found)
    else:
        _print_table(found)
    return 1 if any(prediction.error for prediction in found) else 0


def _pictures(path: Path) -> list[Path]:
    try:
        is_folder = path.is_dir()
    except OSError:
        return [path]  # reading it will say what is wrong
    if not is_folder:
        return [path]
    found = [path / name for name in names(path, is_picture)]
    if not found:
        raise InputError(f"{path} holds no pictures: name pictures, or a folder that holds some")
    return found


def _predictions(model: Model, paths: Sequence[Path], top: int, task: str | None) -> Iterator[Prediction]:
    """One for each path, in their order."""
    shape = model.about.shape
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for start in range(0, len(paths), CHUNK):
            chunk = paths[start : start + CHUNK]
            read = list(pool.map(lambda path: _read(path, shape.image_size[0]), chunk))
            good = [picture for picture in read if not isinstance(picture, str)]
            found = iter(_likeliest(model, good, top, task) if good else ())
            for path, picture in zip(chunk, read, strict=True):
                yield Prediction(path, error=picture) if isinstance(picture, str) else Prediction(path, next(found))


def _read(path: Path, size: int) -> Picture | str:
    """The picture, or why there is none."""
    try:
        if path.exists() and not path.is_file():
            return "it is neither a file nor a folder: name a picture"
        if path.stat().st_size > LARGEST:
            return f"it is larger than {LARGEST // 2**20} MiB: make it smaller"
        picture = decode(path.read_bytes(), "it", size)
    except FileNotFoundError:
        return "there is no such file or folder: check its name"
    except OSError as error:
        return f"it cannot be read ({error.strerror or error}): check that it is a file and yours to read"
    except InputError as error:
        return str(error).removesuffix(".")
    return picture


def _likeliest(
    model: Model, pictures: Sequence[Picture], top: int, task: str | None
) -> list[tuple[tuple[str, float], ...]]:
    images = model.about.shape.suited(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous())
    classes, said = _scores(model, images, task)
    best, places = said.softmax(1).topk(min(top, len(classes)), 1)
    return [
        tuple((classes[place], probability) for place, probability in zip(row, probabilities, strict=True))
        for row, probabilities in zip(places.tolist(), best.tolist(), strict=True)
    ]


def _scores(model: Model, images: Tensor, task: str | None) -> tuple[tuple[str, ...], Tensor]:
    """Names, and for each picture a score for each of them."""
    if task is None:
        return model.about.classes, scores(model, images)
    tasks = model.about.tasks
    place = [each.name for each in tasks].index(task)
    start = sum(len(each.classes) for each in tasks[:place])
    classes = tasks[place].classes
    return classes, outputs(model, images)[:, start : start + len(classes)]


def _print_table(found: Sequence[Prediction]) -> None:
    table = plain_table("Predictions", "picture", "class", "probability")
    table.columns[1].justify = "left"
    for column in table.columns:
        column.overflow = "fold"
    for prediction in found:
        shown = Text(one_line(str(prediction.path)))
        if prediction.error:
            table.add_row(shown, Text(one_line(prediction.error), style="red"), "")
        for rank, (name, probability) in enumerate(prediction.classes):
            table.add_row("" if rank else shown, Text(one_line(name)), f"{probability:.1%}")
    Console().print(table)


def _print_csv(found: Sequence[Prediction]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["path", "rank", "class", "probability", "error"])
    for prediction in found:
        rows: list[tuple[Any, ...]] = [
            (rank, name, probability, "") for rank, (name, probability) in enumerate(prediction.classes, start=1)
        ]
        for row in rows or [("", "", "", prediction.error)]:
            writer.writerow(_encodable(str(cell)) for cell in (prediction.path, *row))


def _encodable(text: str) -> str:
    """Names on a disk need not be UTF-8, but what we print is."""
    return text.encode(errors="backslashreplace").decode()
