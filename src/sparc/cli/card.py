"""`sparc card`: write a model card."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from sparc.cli.parse import parse
from sparc.errors import InputError
from sparc.files import write_atomic
from sparc.model_file import load
from sparc.report.model_card import card


@dataclass(frozen=True)
class Card:
    model: tyro.conf.Positional[Path]
    """The model file."""
    out: Path | None = None
    """Where the card, a Markdown file, is written; without it, to standard output."""


def main(arguments: list[str]) -> int:
    given: Card = parse(Card, "card", __doc__, arguments)
    text = card(load(given.model), given.model)
    if given.out is None:
        print(text, end="")
        return 0
    if given.out.exists() and given.out.samefile(given.model):
        raise InputError(f"--out {given.out} is the model itself: name another file")
    if given.out.is_dir():
        raise InputError(f"--out {given.out} is a folder: name a file in it, such as {given.out / 'README.md'}")
    write_atomic(given.out, text.encode())
    print(f"card: {given.out}")
    return 0
