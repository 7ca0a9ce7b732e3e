"""`sparc card`: write a model card."""

from dataclasses import dataclass
from pathlib import Path

from sparc.cli.parse import ModelFile, parse
from sparc.files import check_output, write_atomic
from sparc.report.model_card import card
from sparc.stored_model import read


@dataclass(frozen=True)
class Card:
    model: ModelFile
    out: Path | None = None
    """Where the card, a Markdown file, is written; without it, to standard output."""


def main(arguments: list[str]) -> int:
    given = parse(Card, "card", __doc__, arguments)
    model = read(given.model)
    model.check()
    text = card(model, given.model)
    if given.out is None:
        print(text, end="")
        return 0
    check_output(given.out, not_over=given.model)
    write_atomic(given.out, text.encode())
    print(f"card: {given.out}")
    return 0
