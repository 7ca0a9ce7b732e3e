"""One run on a terminal, as `Display` shows things."""

import time
from pathlib import Path

from sparc.cli.display import Display, duration, time_left
from sparc.experiment.watch import RunWatcher
from sparc.train import StageReport, TrainingReport


class RunDisplay(Display, RunWatcher):
    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.tasks = 1
        self.done_before: float | None = None
        """By a run that was cut off, as far as the first report tells."""

    def started(self, tasks: int, folder: Path) -> None:
        self.tasks = tasks

    def resumed(self, where: str, steps: int) -> None:
        self.line(f"going on from {where}")

    def training(self, report: TrainingReport) -> None:
        spent = time.monotonic() - self.start
        if self.done_before is None:
            self.done_before, self.start, spent = report.done, time.monotonic(), 0.0
        task = f"task {report.task}/{self.tasks}, " if self.tasks > 1 else ""
        left = time_left(spent, report.done, self.done_before)
        self.show(task + epoch_text(report), report.done, speed_text(report) + left)

    def stage(self, report: StageReport) -> None:
        class_il, task_il = (
            f"{sum(row) / len(row):.1f} %" if row is not None else "–"
            for row in (report.test.class_il, report.test.task_il)
        )
        self.line(
            f"task {report.task}/{self.tasks} learned in {duration(report.train_seconds)}, "
            f"Class-IL {class_il}, Task-IL {task_il}"
        )


def epoch_text(report: TrainingReport) -> str:
    return f"epoch {report.epoch}/{report.epochs}" + (f" ({report.phase})" if report.phase != "train" else "")


def speed_text(report: TrainingReport) -> str:
    return f"loss {report.loss:.3f}, {report.images_per_second:,.0f} images/s"
