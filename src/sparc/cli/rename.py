"""`sparc rename`: call a class, or a task, of a model by another name."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sparc.cli.parse import ModelFile, parse
from sparc.edit import Kind, names_of, rename
from sparc.files import check_output, locked
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
    kind: Kind = "task" if given.task else "class"
    with locked(given.model):
        before = load(given.model)
        after = rename(before, given.old, given.new, kind)
        save(after, given.model)
    names = zip(names_of(kind, before.info), names_of(kind, after.info), strict=True)
    old, new = next((old, new) for old, new in names if old != new)
    print(one_line(f"{old} is called {new} now. Copies and exports of the old file are not touched."))
    return 0
