"""`sparc rename`: call a class, or a task, of a model by another name."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sparc.cli.parse import ModelFile, parse
from sparc.files import check_output, locked
from sparc.learner import rename
from sparc.model_file import load, save
from sparc.text import one_line


@dataclass(frozen=True)
class Rename:
    model: ModelFile
    old: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OLD")]
    """What the class is called."""
    new: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NEW")]
    """What it is called from now on."""
    task: bool = False
    """The names are those of a task."""


def main(arguments: list[str]) -> int:
    given = parse(Rename, "rename", __doc__, arguments)
    check_output(given.model)
    with locked(given.model):
        save(rename(load(given.model), given.old, given.new, "task" if given.task else "class"), given.model)
    print(one_line(f"{given.old} is called {given.new} now. Copies and exports of the old file are not touched."))
    return 0
