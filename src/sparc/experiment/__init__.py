"""Runs: a run is a pure function of its config."""

from sparc.experiment.config import RunConfig, StreamSettings, usual_recipe
from sparc.experiment.folder import Run, done_runs, find_runs, list_runs
from sparc.experiment.identity import find_done
from sparc.experiment.log import read_losses
from sparc.experiment.result import Result, read_result
from sparc.experiment.run import run
from sparc.experiment.stop import StopOnSignal
from sparc.experiment.watch import RunWatcher, Stopped, Watchers
from sparc.experiment.workplace import Workplace

__all__ = [
    "Result",
    "Run",
    "RunConfig",
    "RunWatcher",
    "StopOnSignal",
    "Stopped",
    "StreamSettings",
    "Watchers",
    "Workplace",
    "done_runs",
    "find_done",
    "find_runs",
    "list_runs",
    "read_losses",
    "read_result",
    "run",
    "usual_recipe",
]
