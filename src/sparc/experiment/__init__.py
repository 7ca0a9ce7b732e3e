"""Runs: a run is a pure function of its config."""

from sparc.experiment.config import RunConfig, StreamSettings, usual_recipe
from sparc.experiment.folder import Listed, find_results, list_runs, read_losses
from sparc.experiment.result import Result, read_result
from sparc.experiment.run import Finished, Stop, Stopped, run
from sparc.experiment.stop import StopOnSignal

__all__ = [
    "Finished",
    "Listed",
    "Result",
    "RunConfig",
    "Stop",
    "StopOnSignal",
    "Stopped",
    "StreamSettings",
    "find_results",
    "list_runs",
    "read_losses",
    "read_result",
    "run",
    "usual_recipe",
]
