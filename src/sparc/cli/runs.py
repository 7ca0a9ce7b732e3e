"""`sparc runs`: list the runs in a folder: done, running, part-way, failed."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from sparc.cli.parse import parse
from sparc.experiment import Run, RunConfig, list_runs
from sparc.experiment.config import as_flags, flat_settings
from sparc.report.plain_table import plain_table
from sparc.text import one_line, percent

WIDE = 1000
"""Columns of a table that nobody looks at in a terminal."""


@dataclass(frozen=True)
class Runs:
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs")
    """What `sparc run` was given as --out."""
    json: bool = False
    """Print them as JSON instead of a table."""


def main(arguments: list[str]) -> int:
    given = parse(Runs, "runs", __doc__, arguments)
    runs = list_runs(given.folder)
    if given.json:
        print(json.dumps([_as_json(each) for each in runs], allow_nan=False))
        return 0
    if not runs:
        print(f"there are no runs in {one_line(str(given.folder))}")
        return 0
    notes = [_note(each) for each in runs]
    last = ["unusual settings, where, or why"] if any(notes) else []  # an empty column would take room from the names
    table = plain_table("Runs", "folder", "state", "Class-IL", "Task-IL", *last, words=True)
    for column in table.columns[1:4]:
        column.no_wrap = True
    for each, note in zip(runs, notes, strict=True):
        colour = {"done": "green", "failed": "red"}.get(each.state, "yellow")
        more = [escape(note)] if last else []
        table.add_row(escape(each.folder.name), f"[{colour}]{each.state}", *_accuracies(each), *more)
    # Where no terminal sets the width, a name that is broken in two could not be found again.
    says_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    Console(width=None if says_width else WIDE).print(table)
    return 0


def _note(run: Run) -> str:
    try:
        settings = RunConfig.from_json(run.config).unusual()
    except ValueError:  # of another version, so that nobody knows what is usual
        settings = flat_settings(run.config)
    return "; ".join(filter(None, (one_line(" ".join(as_flags(settings))), run.note)))


def _accuracies(run: Run) -> tuple[str, str]:
    if run.result is None:
        return "", ""
    metrics = run.result.metrics
    return percent(metrics["class_il"].accuracy), percent(metrics["task_il"].accuracy)


def _as_json(run: Run) -> dict[str, object]:
    return {
        "folder": str(run.folder),
        "state": run.state,
        "where": run.note,
        "config": run.config,
        "metrics": run.result.metrics_json() if run.result else None,
    }
