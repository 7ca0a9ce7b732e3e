"""A grid: many runs, of which those that are missing are done by an executor; nothing else knows of distribution."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from sparc.data import benchmarks
from sparc.data.progress import no_progress
from sparc.errors import InputError
from sparc.experiment.config import RunConfig, run_title
from sparc.experiment.folder import Run, done_runs
from sparc.experiment.identity import find_done
from sparc.experiment.run import run
from sparc.experiment.watch import RunWatcher, Stopped, Watchers
from sparc.experiment.workplace import Workplace
from sparc.text import amount
from sparc.train import StageReport, TrainingReport


@dataclass(frozen=True)
class Job:
    """One run and where it is done."""

    config: RunConfig
    workplace: Workplace
    threads: int = 1
    label: str = ""
    """How a person tells its method from that of other jobs; by its name if nothing is given."""

    @property
    def title(self) -> str:
        return run_title(vars(self.config), self.label)

    def failed(self, why: str) -> Run:
        """Its run, failed for this reason."""
        return Run(self.workplace.out, self.config.as_json(), "failed", why)


@dataclass(frozen=True)
class Warned:
    """Something that whoever started a job should know."""

    sentence: str


Report = TrainingReport | StageReport | Warned | str
"""What is reported of a job while it runs; a str says what it is at before training begins."""


class GridWatcher:
    """Told what becomes of each job, by its number, and asked whether to stop; does nothing unless a subclass does."""

    def reported(self, job: int, report: Report) -> None: ...

    def lost(self, job: int, attempt: int) -> None:
        """Its worker died; it will be taken up by another."""

    def ended(self, job: int, run: Run) -> None: ...

    def stop_asked(self) -> bool:
        return False


class Executor(Protocol):
    """Does jobs, in any order; each has a number to be known by."""

    def __call__(self, jobs: Mapping[int, Job], watcher: GridWatcher) -> dict[int, Run]:
        """How each of them ended, but for those that a stop left part-way or untouched."""


ATTEMPTS = 4
"""How often a job whose workers die is begun, before it is given up."""
GLANCE = 0.2
"""Seconds after which an executor looks for news, and whether a stop was asked for."""


def run_grid(jobs: Sequence[Job], executor: Executor, watcher: GridWatcher | None = None) -> list[Run]:
    """Run what is missing; a run is a pure function of its config, so a result that is there is taken as it is.

    What failed is a run of that state; `Stopped` where the watcher stopped it.
    """
    watcher = watcher or GridWatcher()
    there = {out: done_runs(out, warn=lambda sentence: None) for out in {job.workplace.out for job in jobs}}
    runs: dict[int, Run] = {}
    for number, job in enumerate(jobs):
        done = find_done(job.config, there[job.workplace.out], job.workplace.bf16)
        if done is not None and not job.workplace.fresh:
            runs[number] = done
            watcher.ended(number, done)
    missing = {number: job for number, job in enumerate(jobs) if number not in runs}
    for job in {job.config.benchmark: job for job in missing.values()}.values():
        _check_images(job)
    if missing:
        runs |= executor(missing, watcher)
    if len(runs) < len(jobs):
        failed = sum(run.state == "failed" for run in runs.values())
        done_of_all = f"{len(runs) - failed} of {len(jobs)} runs done"
        raise Stopped(f"{done_of_all}, {failed} failed" if failed else done_of_all)
    return [runs[number] for number in range(len(jobs))]


def _check_images(job: Job) -> None:
    """Say once, before any worker is started, that pictures are missing and cannot be fetched."""
    if not job.workplace.has_images(job.config) and not benchmarks.find(job.config.benchmark).fetchable():
        job.workplace.load(job.config, no_progress)


class Worker:
    """Does jobs one after another in this process; pictures are loaded once for jobs in a row on the same ones."""

    def __init__(self) -> None:
        self.workplace: Workplace | None = None

    def do(self, job: Job, report: Callable[[Report], None], stop: RunWatcher) -> Run:
        """How it ended; `Stopped` where it was stopped."""
        torch.set_num_threads(job.threads)
        if self.workplace != job.workplace:
            self.workplace = job.workplace
        try:
            return run(job.config, self.workplace, Watchers(_Reporter(report), stop))
        except Stopped:
            raise
        except Exception as error:  # whatever it is, the other runs go on
            if not isinstance(error, InputError | OSError):
                traceback.print_exc()
            return job.failed(str(error) or repr(error))


class _Reporter(RunWatcher):
    """Passes on what is to be known of a job."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self.report = report

    def loading(self, what: str, done: int, total: int | None) -> None:
        self.report(", ".join(filter(None, (what, amount(done, total)))))

    def warn(self, sentence: str) -> None:
        self.report(Warned(sentence))

    def resumed(self, where: str, steps: int) -> None:
        self.report(f"going on from {where}")

    def training(self, report: TrainingReport) -> None:
        self.report(report)

    def stage(self, report: StageReport) -> None:
        self.report(report)
