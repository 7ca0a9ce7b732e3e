"""Who does the runs of a grid: flags, and the doing."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparc.cli.grid_view import GridView
from sparc.errors import InputError
from sparc.experiment import Run, RunConfig, StopOnSignal, Stopped, Workplace
from sparc.experiment.grid import Executor, Job, run_grid
from sparc.text import counted


@dataclass(frozen=True)
class Workers:
    """Who does the runs, and where they lie."""

    out: Path = Path("runs")
    """Where the runs' folders are made, and looked for."""
    data: Path | None = None
    """Where the data sets lie; without it $SPARC_DATA, then the user's cache, then a download."""
    workers: int | None = None
    """Runs at a time, with one thread each; as many as there are cores unless you say otherwise."""
    executor: Literal["processes", "ray"] = "processes"
    """Processes of this machine, or a Ray cluster (install sparc-cl[ray])."""
    address: str | None = None
    """Of the Ray cluster, whose machines share --out and --data; without it one is started here for the while."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers {self.workers} does nothing: give at least 1")
        if self.address is not None and self.executor != "ray":
            raise InputError("--address is a Ray cluster's: add --executor ray")

    @property
    def at_a_time(self) -> int:
        if self.workers is not None:
            return self.workers
        # Not all cores need be ours: a container may have some of them.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def new_executor(self) -> Executor:
        if self.executor == "ray":
            from sparc.experiment.on_ray import OnRay

            return OnRay(self.address, self.at_a_time)
        from sparc.experiment.processes import Processes

        return Processes(self.at_a_time)


def check_all_done(runs: Sequence[Run]) -> None:
    if failed := [run for run in runs if run.state == "failed"]:
        raise InputError(f"{len(failed)} of {counted(len(runs), 'run')} failed, the first with “{failed[0].note}”")


def do_all(configs: Sequence[RunConfig], workers: Workers, command: Sequence[str]) -> list[Run]:
    """How all the runs ended; where they are stopped, the process exits, and says that the command goes on."""
    workplace = Workplace(workers.out.absolute(), workers.data and workers.data.absolute())
    jobs = [Job(config, workplace, label=config.label(configs)) for config in configs]
    stop = StopOnSignal(notice="keeping checkpoints; once more to stop at once")
    with stop, GridView(jobs, workers.at_a_time, stop.stop_asked) as view:
        try:
            stop.install()
            return run_grid(jobs, workers.new_executor(), view)
        except Stopped as where:
            view.line(f"sparc: stopped with {where}; to go on: {shlex.join(['sparc', *command])}")
            raise SystemExit(stop.code) from None
