"""`sparc predict`: name what is in pictures.

The exit code is 1 where some of them cannot be read; the others are named all the same.
"""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

from rich.console import Console
from rich.text import Text

from sparc.asking import check_ask, open_taught
from sparc.cli.display import Display
from sparc.cli.parse import AskedShare, ModelFile, PicturePaths, parse
from sparc.data.pictures import Kept
from sparc.errors import InputError
from sparc.model_input import InputShape, Square, picture_paths, read_square
from sparc.predictor import USUAL_SHARE, Named, answers, check_passing, check_rejects, check_task, likeliest, why_not
from sparc.ready import ReadyModel
from sparc.report.plain_table import plain_table
from sparc.text import one_line

CHUNK = 64
"""Pictures in memory at a time."""


@dataclass(frozen=True)
class Predict:
    model: ModelFile
    paths: PicturePaths
    """Pictures, and folders that hold some at any depth."""
    top: int = 1
    """How many classes to name for each picture, likeliest first."""
    task: Optional[str] = None  # noqa: UP045 - for `str | None` tyro imports more than all else takes
    """Only choose among this task's classes; without it among all that the model knows."""
    reject: Optional[float] = None  # noqa: UP045
    """Say “none of these” of pictures that are stranger than this share of pictures of known classes; 0.95 where enough
    were held out to know."""
    always: bool = False
    """Name a class in any case."""
    ask: AskedShare = 1.0
    json: bool = False
    """Print a JSON list, an object a picture."""
    cache: bool = True
    """Features that a start has found in pictures are kept for a day in the user's cache folder; --no-cache keeps and
    takes nothing there."""
    csv: bool = False
    """Print comma-separated values, a line a picture and rank."""

    def __post_init__(self) -> None:
        if not self.paths:
            raise InputError("there is nothing to look at: name pictures, or folders of pictures")
        if self.top < 1:
            raise InputError(f"--top {self.top} names nothing: give at least 1")
        check_ask(self.ask)
        if self.ask < 1 and self.task is not None:
            raise InputError("--task says already which classes there are to choose from: leave --ask out")
        if self.reject is not None:
            check_passing(self.reject)
        if self.reject is not None and self.always:
            raise InputError("--reject and --always say opposite things: give one of them")
        if self.json and self.csv:
            raise InputError("--json and --csv are two kinds of output: give one of them")


@dataclass(frozen=True)
class Prediction:
    """What was found in one picture, or why nothing was."""

    path: Path
    classes: tuple[tuple[str, float], ...] = ()
    """Names and probabilities, likeliest first."""
    is_known: bool | None = True
    """Whether it may be of any of them; None where that cannot be told."""
    error: str = ""

    def as_json(self) -> dict[str, object]:
        if self.error:
            return {"path": str(self.path), "error": self.error}
        found = [{"class": name, "probability": probability} for name, probability in self.classes]
        none = None if self.is_known is None else not self.is_known
        return {"path": str(self.path), "none_of_these": none, "predictions": found}


def main(arguments: list[str]) -> int:
    given = parse(Predict, "predict", __doc__, arguments)
    model = open_taught(given.model, given.cache, given.ask)
    model.info.shape.check_takes_pictures(given.model)
    check_task(model.info, given.task)
    paths = [picture for path in given.paths for picture in picture_paths(path)]
    if given.reject is not None:
        check_rejects(model.info, given.reject)
    share = None if given.always else given.reject or USUAL_SHARE
    can_tell = share is None or model.info.limit(share) is not None
    found = []
    with Display("predict") as display:

        def name(looked: Kept) -> list[Named]:
            return likeliest(answers(model, looked), given.top, given.task, share)

        for prediction in _predictions(model, paths, given.cache, name):
            found.append(prediction if can_tell else replace(prediction, is_known=None))
            display.loading("pictures", len(found), len(paths))
    if not can_tell and not (given.json or given.csv):
        print(f"“None of these” is never said: {why_not(model.info)}", file=sys.stderr)
    if given.json:
        print(json.dumps([prediction.as_json() for prediction in found], allow_nan=False))
    elif given.csv:
        _print_csv(found)
    else:
        _print_table(found)
    return 1 if any(prediction.error for prediction in found) else 0


def _predictions(
    model: ReadyModel, paths: Sequence[Path], cache: bool, name: Callable[[Kept], list[Named]]
) -> Iterator[Prediction]:
    """One for each path, in their order."""
    read = partial(_read, shape=model.info.shape)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for start in range(0, len(paths), CHUNK):
            chunk = paths[start : start + CHUNK]
            squares = list(pool.map(read, chunk))
            readable = [each for each in squares if not isinstance(each, str)]
            found = iter(name(model.look(model.info.shape.from_squares(readable), cache)))
            for path, square in zip(chunk, squares, strict=True):
                yield Prediction(path, error=square) if isinstance(square, str) else Prediction(path, *next(found))


def _read(path: Path, shape: InputShape) -> Square | str:
    """The picture, or why there is none."""
    try:
        return read_square(path, shape)
    except InputError as error:
        return str(error).removesuffix(".")


def _print_table(found: Sequence[Prediction]) -> None:
    table = plain_table("Predictions", "picture", "class", "probability")
    table.columns[1].justify = "left"
    for column in table.columns:
        column.overflow = "fold"
    for prediction in found:
        shown = Text(one_line(str(prediction.path)))
        if prediction.error:
            table.add_row(shown, Text(one_line(prediction.error), style="red"), "")
        elif prediction.is_known is False:
            # How sure it would be if it had to be one of them says nothing of a picture that is not.
            names = ", ".join(one_line(name) for name, _ in prediction.classes)
            table.add_row(shown, Text(f"none of these; most like {names}", style="yellow"), "")
        else:
            for rank, (name, probability) in enumerate(prediction.classes):
                table.add_row("" if rank else shown, Text(one_line(name)), f"{probability:.1%}")
    Console().print(table)


def _print_csv(found: Sequence[Prediction]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["path", "rank", "class", "probability", "none_of_these", "error"])
    for prediction in found:
        rows: list[tuple[Any, ...]] = [
            (rank, name, probability, "yes" if prediction.is_known is False else "", "")
            for rank, (name, probability) in enumerate(prediction.classes, start=1)
        ]
        for row in rows or [("", "", "", "", prediction.error)]:
            writer.writerow(_encodable(str(cell)) for cell in (prediction.path, *row))


def _encodable(text: str) -> str:
    """Names on a disk need not be UTF-8, but what we print is."""
    return text.encode(errors="backslashreplace").decode()
