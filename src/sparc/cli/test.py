"""`sparc test`: count how many pictures of a folder a model gets right, one folder of pictures a class."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape

from sparc.asking import check_ask, open_taught
from sparc.calibration import calibration_error
from sparc.cli.display import Display
from sparc.cli.parse import AskedShare, ModelFile, parse
from sparc.data.class_folders import folder_to_test, read_labelled
from sparc.data.pictures import Kept, Pixels
from sparc.data.skipped import Skipped, told
from sparc.data.tree import Tree
from sparc.errors import InputError
from sparc.predictor import USUAL_SHARE, Confusion, answers, check_passing, check_rejects, confusion
from sparc.report.plain_table import plain_table
from sparc.testing import as_json, known_classes
from sparc.text import one_line, percent


@dataclass(frozen=True)
class Test:
    model: ModelFile
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Holds one folder of pictures a class, named as the model calls it, or `test` with such folders; not every class
    need be there. A zip or a tar of them does as well."""
    unknown: Optional[Path] = None  # noqa: UP045 - for `Path | None` tyro imports more than all else takes
    """A folder, or an archive, of pictures of other classes: how many are taken for one that the model knows?"""
    reject: float = USUAL_SHARE
    """The share of pictures of known classes that should pass as known, as in predict. What is right is counted without
    it: a picture may be named right that would not pass."""
    ask: AskedShare = 1.0
    strict: bool = False
    """Stop at a picture that cannot be read, instead of passing it over."""
    cache: bool = True
    """Features that a start has found in pictures are kept for a day in the user's cache folder; --no-cache keeps and
    takes nothing there."""
    json: bool = False
    """Print it as JSON, with how often each class was taken for which."""

    def __post_init__(self) -> None:
        check_ask(self.ask)
        check_passing(self.reject)


def main(arguments: list[str]) -> int:
    given = parse(Test, "test", __doc__, arguments)
    model = open_taught(given.model, given.cache, given.ask)
    shape = model.info.shape
    shape.check_takes_pictures(given.model)
    folder = folder_to_test(Tree.at(given.folder))
    skipped: list[Skipped] = []
    classes = known_classes(folder, model.info, given.model, skipped, strict=given.strict)
    if given.unknown is not None and not given.unknown.exists():
        raise InputError(f"there is no {given.unknown}: name a folder, or an archive, of pictures of other classes")
    unknown = None if given.unknown is None else Tree.at(given.unknown)
    if unknown is not None:
        check_rejects(model.info, given.reject)
        if not unknown.pictures():
            raise InputError(f"{unknown} holds no pictures: name a folder, or an archive, that holds some")
    with Display(given.model.name) as display:
        pass_over = None if given.strict else skipped

        def look(images: Pixels) -> Kept:
            return model.look(shape.from_rgb(images), given.cache)

        how = shape.side, display.loading, shape.fit, pass_over, look
        pictures = read_labelled(folder, classes, *how)
        others = None if unknown is None else read_labelled(unknown, {"": unknown.pictures()}, *how)
        for line in told(skipped):
            display.warn(line)
    found = confusion(model, pictures)
    accepted = None if model.info.limit(given.reject) is None else _percent(found.answers.are_known(given.reject))
    taken = None
    if others is not None:
        taken = _percent(answers(model, others.images).are_known(given.reject))
    if given.json:
        shown = {**as_json(found), "known_accepted": accepted, "unknown_accepted": taken}
        print(json.dumps({**shown, "skipped": [asdict(each) for each in skipped]}))
    else:
        _print(found, accepted, taken)
    return 0


def _percent(flags: NDArray[np.bool_]) -> float:
    return 100 * float(flags.mean())


def _print(found: Confusion, accepted: float | None, taken: float | None) -> None:
    console = Console()
    table = plain_table("", "class", "pictures", "right", "most often taken for", words=True)
    for column in table.columns[1:3]:
        column.justify = "right"
    for name, given in found.counts.items():
        total = given.total()
        wrong = [f"{one_line(other)} ({count})" for other, count in given.most_common() if other != name]
        table.add_row(
            escape(one_line(name)),
            str(total),
            f"{percent(100 * given[name] / total, 1)} %",
            escape(", ".join(wrong[:2])),
        )
    console.print(table)
    facts = plain_table("", "", "")
    facts.add_row("pictures", f"{found.pictures:,}")
    facts.add_row("right among all classes", f"{percent(found.accuracy_in_all, 1)} %")
    facts.add_row("right among its task's classes", f"{percent(found.accuracy_in_task, 1)} %")
    facts.add_row("probabilities are off by, in the mean", f"{percent(calibration_error(found.bins), 1)} %")
    if accepted is not None:
        facts.add_row("pass as known", f"{percent(accepted, 1)} %")
    if taken is not None:
        facts.add_row("of the unknown, taken for known", f"{percent(taken, 1)} %")
    console.print(facts)
