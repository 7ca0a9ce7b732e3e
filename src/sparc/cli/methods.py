"""`sparc methods`: list the methods that can learn a stream."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from sparc.cli.parse import parse
from sparc.methods import METHODS, Method
from sparc.methods.expected import expected_costs
from sparc.report.tables import plain_table

SIZES = [20] * 5
"""Seq-CIFAR100 in 5 tasks, on which the paper counts parameters."""
WIDE = 110
"""Columns of a terminal that has room for titles, which are the names in other letters."""
LEGEND = (
    "buffer: pictures kept, unless --buffer says otherwise",
    "task: it must be told at test time, so there is no Class-IL accuracy",
    "params: parameters after Seq-CIFAR100 in 5 tasks, copies and masks included",
    "passes: forward and backward, at every training step",
)


@dataclass(frozen=True)
class Methods:
    json: bool = False
    """Print the list as JSON instead of a table."""


def main(arguments: list[str]) -> int:
    given: Methods = parse(Methods, "methods", __doc__, arguments)
    listed = [about(method) for method in METHODS.classes.values()]
    if given.json:
        print(json.dumps(listed))
        return 0
    console = Console()
    rows = [cells(each) for each in listed]
    columns = [column for column in rows[0] if column != "method" or console.width >= WIDE]
    table = plain_table("Methods", *columns, words=True)
    table.padding = (0, 1, 0, 0)
    for column in table.columns:
        column.no_wrap = column.header != "from"
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    console.print(table)
    for line in LEGEND:
        console.print(line, highlight=False)
    return 0


def cells(method: dict[str, Any]) -> dict[str, str]:
    return {
        "name": method["name"],
        "method": method["title"],
        "kind": method["kind"],
        "buffer": "–" if method["buffer"] is None else str(method["buffer"]),
        "task": "yes" if method["needs_task"] else "–",
        "params": f"{method['parameters'] / 1e6:.2f} M",
        "passes": "{forward}F {backward}B".format(**method["passes"]),
        "from": method["paper"],
    }


def about(method: type[Method]) -> dict[str, Any]:
    settings = method.Settings()
    costs = expected_costs(method, SIZES)
    return {
        "name": method.name,
        "title": method.title,
        "kind": method.kind,
        "paper": method.paper,
        "needs_task": method.needs_task,
        "buffer": getattr(settings, "buffer", None),
        "parameters": costs.parameters,
        "passes": {"forward": costs.forward, "backward": costs.backward},
        "settings": asdict(settings),
        "recipe": asdict(method.recipe),
    }
