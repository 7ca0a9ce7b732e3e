"""`sparc runs`: list the runs in a folder: done, running, part-way, failed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from sparc.cli.parse import parse
from sparc.experiment import Listed, list_runs
from sparc.report.labels import percent
from sparc.report.tables import plain_table


@dataclass(frozen=True)
class Arguments:
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs")
    """What `sparc run` was given as --out."""
    json: bool = False
    """Print them as JSON instead of a table."""


def main(arguments: list[str]) -> int:
    given: Arguments = parse(Arguments, "runs", __doc__, arguments)
    runs = list_runs(given.folder)
    if given.json:
        print(json.dumps([_as_json(each) for each in runs], allow_nan=False))
        return 0
    table = plain_table("Runs", "folder", "state", "Class-IL", "Task-IL", "where, or why", words=True)
    table.columns[0].overflow = "fold"  # a name that is cut short names nothing
    for column in table.columns[1:4]:
        column.no_wrap = True
    for each in runs:
        colour = {"done": "green", "failed": "red"}.get(each.state, "yellow")
        table.add_row(escape(each.folder.name), f"[{colour}]{each.state}", *_accuracies(each), escape(each.where))
    Console().print(table)
    return 0


def _accuracies(each: Listed) -> tuple[str, str]:
    if each.result is None:
        return "", ""
    metrics = each.result.metrics()
    return percent(metrics["class_il"].accuracy), percent(metrics["task_il"].accuracy)


def _as_json(each: Listed) -> dict[str, object]:
    return {
        "folder": str(each.folder),
        "state": each.state,
        "where": each.where,
        "config": each.config,
        "metrics": each.result.derived()["metrics"] if each.result else None,
    }
