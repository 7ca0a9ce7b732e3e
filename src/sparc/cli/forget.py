"""`sparc forget`: take classes, or a whole task, out of a model for good."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sparc.cli.parse import ModelFile, parse
from sparc.edit import edit_file, forget, what_remains
from sparc.errors import InputError
from sparc.text import one_line


@dataclass(frozen=True)
class Forget:
    model: ModelFile
    classes: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CLASS …")] = ()
    """Names of classes."""
    task: str | None = None
    """Every class of this task, what other tasks have told of it too, and the task's working memory with them."""


def main(arguments: list[str]) -> int:
    given = parse(Forget, "forget", __doc__, arguments)
    if bool(given.classes) == (given.task is not None):
        raise InputError("say what to forget: either names of classes, or --task NAME, and not both")
    tasks = [] if given.task is None else [given.task]
    before, after = edit_file(given.model, lambda model: forget(model, given.classes, tasks))
    for line in what_remains(before, after):
        print(one_line(line))
    return 0
