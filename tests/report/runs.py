"""Runs as if they had been done."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from sparc.experiment.folder import Run, done_run
from sparc.experiment.log import Curve
from sparc.experiment.result import Result


def done(results: Mapping[Path, Result], losses: Mapping[Path, Curve] | None = None) -> list[Run]:
    """By their folders."""
    return [replace(done_run(path, result), losses=(losses or {}).get(path, ())) for path, result in results.items()]


def numbered(results: Iterable[Result]) -> list[Run]:
    return done({Path(f"run {number}"): result for number, result in enumerate(results)})
