"""`sparc inspect`: show what a model knows."""

import json
from dataclasses import dataclass

from rich.console import Console

from sparc.cli.parse import ModelFile, parse
from sparc.report.model_card import facts, tables
from sparc.stored_model import read
from sparc.text import one_line


@dataclass(frozen=True)
class Inspect:
    model: ModelFile
    check: bool = False
    """Say that file and weights are whole; a damaged file is refused in any case."""
    json: bool = False
    """Print all of it as JSON."""


def main(arguments: list[str]) -> int:
    given = parse(Inspect, "inspect", __doc__, arguments)
    model = read(given.model)
    model.check()
    if given.json:
        whole = {"whole": True} if given.check else {}
        print(json.dumps({**facts(model, given.model), **whole}))
        return 0
    console = Console()
    for table in tables(model, given.model):
        console.print(table)
    if given.check:
        print(f"{one_line(str(given.model))} is whole: it matches its checksum")
    return 0
