"""Runs: a run is a pure function of its config."""

from sparc.experiment.config import RunConfig, StreamSettings, usual_recipe
from sparc.experiment.result import Result, read_result
from sparc.experiment.run import Finished, run

__all__ = ["Finished", "Result", "RunConfig", "StreamSettings", "read_result", "run", "usual_recipe"]
