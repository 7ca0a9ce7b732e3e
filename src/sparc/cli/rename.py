"""`sparc rename`: call a class, or a task, of a model by another name."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sparc.cli.parse import ModelFile, parse
from sparc.edit import Kind, edit_file, rename, what_is_called
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
    kind: Kind = "task" if given.task else "class"
    before, after = edit_file(given.model, lambda model: rename(model, given.old, given.new, kind))
    print(one_line(what_is_called(before, after, kind)))
    return 0
