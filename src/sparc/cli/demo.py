"""`sparc demo`: draw folders of pictures to try things on."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from sparc.cli.parse import parse
from sparc.errors import InputError

MOST = 10_000
"""Pictures a class: more than any trial needs, and fewer than fill a disk."""


@dataclass(frozen=True)
class Demo:
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Where the pictures go: a folder that is not there yet, or is empty."""
    pictures: int = 60
    """How many of each class."""
    seed: int = 0
    """Same seed, same pictures."""

    def __post_init__(self) -> None:
        if not 1 <= self.pictures <= MOST:
            raise InputError(f"--pictures {self.pictures} must lie between 1 and {MOST}")
        if self.seed < 0:
            raise InputError(f"--seed {self.seed} must not be negative")


def main(arguments: list[str]) -> int:
    given = parse(Demo, "demo", __doc__, arguments)
    from sparc.data.demo_images import TASKS, draw_folders  # with all of sparc.data, torch

    unlabelled = draw_folders(given.folder, given.pictures, given.seed)
    for task, kinds in TASKS.items():
        print(f"{given.folder / task}: {given.pictures} pictures each of {', '.join(kinds)}")
    print(f"{given.folder / 'new'}: {unlabelled} pictures of all kinds, to be named")
    model = shlex.quote(str(given.folder / "demo.sparc"))
    print("\nTry next:\n")
    for task in TASKS:
        print(f"  sparc learn {shlex.quote(str(given.folder / task))} --model {model}")
    print(f"\nand see what it makes of the rest: sparc predict {model} {shlex.quote(str(given.folder / 'new'))}")
    return 0
