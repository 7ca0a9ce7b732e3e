"""Who watches a run: told what becomes of it, and asked whether to stop it."""

import warnings
from pathlib import Path

from sparc.train import Observer, StageReport, TrainingReport


class Stopped(Exception):  # noqa: N818 # nothing is wrong
    """The run was asked to stop; it can be taken up again from where it is."""


class RunWatcher(Observer):
    """Told what happens before and during training; does nothing unless a subclass does."""

    def loading(self, what: str, done: int, total: int | None) -> None:
        """Pictures are downloaded or decoded: what is being done, how much of it, and of how much if that is known."""

    def warn(self, sentence: str) -> None:
        """Something that whoever started the run should know."""

    def started(self, tasks: int, folder: Path) -> None:
        """Training begins, of so many tasks; the run's folder is there."""

    def stop_asked(self) -> bool:
        """Asked often during training whether to keep a checkpoint and stop."""
        return False


class PlainWatcher(RunWatcher):
    """Warns as Python does, and is silent otherwise."""

    def warn(self, sentence: str) -> None:
        warnings.warn(sentence, stacklevel=2)


class Watchers(RunWatcher):
    """Several that watch together; any of them can ask for a stop."""

    def __init__(self, *watchers: RunWatcher) -> None:
        self.watchers = watchers

    def loading(self, what: str, done: int, total: int | None) -> None:
        for each in self.watchers:
            each.loading(what, done, total)

    def warn(self, sentence: str) -> None:
        for each in self.watchers:
            each.warn(sentence)

    def started(self, tasks: int, folder: Path) -> None:
        for each in self.watchers:
            each.started(tasks, folder)

    def stop_asked(self) -> bool:
        return any(each.stop_asked() for each in self.watchers)

    def resumed(self, where: str, steps: int) -> None:
        for each in self.watchers:
            each.resumed(where, steps)

    def training(self, report: TrainingReport) -> None:
        for each in self.watchers:
            each.training(report)

    def stage(self, report: StageReport) -> None:
        for each in self.watchers:
            each.stage(report)
