"""A grid: many runs, of which those that are missing are done by an executor; nothing else knows of distribution."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from sparc.data.imageset import Splits
from sparc.errors import InputError
from sparc.experiment.config import RunConfig
from sparc.experiment.result import Result, read_result
from sparc.experiment.run import Stop, Stopped, find_finished, run
from sparc.text import amount
from sparc.train import Observer, StageReport, TrainingReport


@dataclass(frozen=True)
class Job:
    """One run and where it is done."""

    config: RunConfig
    out: Path
    data: Path | None = None
    device: str = "cpu"
    threads: int = 1
    minutes: float = 5.0
    method: str | None = None
    """How a person tells its method from that of other jobs; by its name if nothing is given."""

    @property
    def title(self) -> str:
        return f"{self.method or self.config.method} on {self.config.benchmark}, seed {self.config.seed}"


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    job: Job
    folder: Path | None = None
    error: str | None = None
    """Why it failed, in one sentence."""

    @property
    def result(self) -> Result | None:
        return read_result(self.folder / "result.json") if self.folder else None


@dataclass(frozen=True)
class Warned:
    """Something that whoever started a job should know."""

    sentence: str


Report = TrainingReport | StageReport | Warned | str
"""What is told of a job while it runs; a str says what it is at before training begins."""


class Watcher:
    """Told what becomes of each job, by its number; does nothing unless a subclass does."""

    def told(self, job: int, report: Report) -> None: ...

    def lost(self, job: int, attempt: int) -> None:
        """Its worker died; it will be taken up by another."""

    def ended(self, job: int, outcome: Outcome) -> None: ...


class Executor(Protocol):
    """Does jobs, in any order; each has a number to be known by."""

    def __call__(self, jobs: Mapping[int, Job], watcher: Watcher, stop: Stop) -> dict[int, Outcome]:
        """How each of them ended, but for those that a stop left part-way or untouched."""


ATTEMPTS = 4
"""How often a job whose workers die is begun, before it is given up."""
GLANCE = 0.2
"""Seconds after which an executor looks for news, and whether a stop was asked for."""


def run_grid(
    jobs: Sequence[Job], executor: Executor, watcher: Watcher | None = None, stop: Stop | None = None
) -> list[Outcome]:
    """Run what is missing; a run is a pure function of its config, so a result that is there is taken as it is."""
    watcher, stop = watcher or Watcher(), stop or Stop()
    outcomes: dict[int, Outcome] = {}
    for number, job in enumerate(jobs):
        if (finished := find_finished(job.config, job.out)) is not None:
            outcomes[number] = Outcome(job, finished.folder)
            watcher.ended(number, outcomes[number])
    missing = {number: job for number, job in enumerate(jobs) if number not in outcomes}
    if missing:
        with stop:
            outcomes |= executor(missing, watcher, stop)
    if len(outcomes) < len(jobs):
        failed = sum(outcome.error is not None for outcome in outcomes.values())
        done = f"{len(outcomes) - failed} of {len(jobs)} runs done"
        raise Stopped(f"{done}, {failed} failed" if failed else done)
    return [outcomes[number] for number in range(len(jobs))]


class Worker:
    """Does jobs one after another in this process; pictures are loaded once for jobs in a row on the same ones."""

    def __init__(self) -> None:
        self.key: object = None
        self.splits: Splits | None = None

    def do(self, job: Job, tell: Callable[[Report], None], stop: Stop) -> Outcome:
        """How it ended; `Stopped` where it was stopped."""
        torch.set_num_threads(job.threads)
        key = (job.config.benchmark, job.data, job.config.stream.image_size)
        try:
            finished = run(
                job.config,
                job.out,
                job.data,
                job.device,
                progress=lambda what, done, total: tell(", ".join(filter(None, (what, amount(done, total))))),
                observe=lambda tasks, folder: _Telling(tell),
                splits=self.splits if key == self.key else None,
                minutes=job.minutes,
                stop=stop,
                warn=lambda sentence: tell(Warned(sentence)),
            )
        except Stopped:
            raise
        except Exception as error:  # whatever it is, the other runs go on
            if not isinstance(error, InputError | OSError):
                traceback.print_exc()
            return Outcome(job, error=str(error) or repr(error))
        self.key, self.splits = key, finished.splits
        return Outcome(job, finished.folder)


class _Telling(Observer):
    def __init__(self, tell: Callable[[Report], None]) -> None:
        self.tell = tell

    def resumed(self, where: str, steps: int) -> None:
        self.tell(f"going on from {where}")

    def training(self, report: TrainingReport) -> None:
        self.tell(report)

    def stage(self, report: StageReport) -> None:
        self.tell(report)
