"""Progress and time left: a live bar on a terminal, plain lines elsewhere; always on standard error."""

import time
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sparc.experiment.watch import RunWatcher
from sparc.text import amount, one_line
from sparc.train import StageReport, TrainingReport

LINE_SECONDS = 10
"""How often a plain line says where things stand, between the ends of tasks."""


class Display(RunWatcher):
    """Shows one run, or anything else that takes its time."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=self.console,
            transient=True,
            disable=not self.live,
        )
        self.row = self.bar.add_task(title, total=1.0, note="")
        self.tasks = 1
        self.said = self.start = time.monotonic()
        self.done_before: float | None = None
        """By a run that was cut off, as far as the first report tells."""
        self.loaded, self.loaded_before, self.loading_since = "", 0.0, self.start
        """What is being loaded, and what share of it was there at the first report, and when."""

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def loading(self, what: str, done: int, total: int | None) -> None:
        share, now = done / total if total else 0.0, time.monotonic()
        if what != self.loaded:
            self.loaded, self.loaded_before, self.loading_since = what, share, now
        self.show(what, share, amount(done, total) + time_left(now - self.loading_since, share, self.loaded_before))

    def started(self, tasks: int, folder: Path) -> None:
        self.tasks = tasks

    def show(self, what: str, share: float, note: str) -> None:
        if self.live:
            self.bar.update(self.row, description=f"{self.title}: {what}", completed=share, note=note)
        elif time.monotonic() - self.said > LINE_SECONDS:
            self.line(f"{what}, {share:.0%}, {note}" if note else what)

    def warn(self, sentence: str) -> None:
        say(self.console, f"sparc: {one_line(sentence)}")

    def line(self, text: str) -> None:
        self.said = time.monotonic()
        say(self.console, f"{self.title}: {text}")

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


def say(console: Console, line: str) -> None:
    """Beside what is live there; a path or a command in it is neither broken nor coloured."""
    console.print(line, highlight=False, soft_wrap=True, markup=False)


def epoch_text(report: TrainingReport) -> str:
    return f"epoch {report.epoch}/{report.epochs}" + (f" ({report.phase})" if report.phase != "train" else "")


def speed_text(report: TrainingReport) -> str:
    return f"loss {report.loss:.3f}, {report.images_per_second:,.0f} images/s"


def time_left(spent: float, done: float, before: float) -> str:
    """Guessed from what share was done when it began and is now; the first steps, slower than the rest, tell nothing.

    >>> time_left(10, done=0.5, before=0.25), time_left(1, done=0.5, before=0.25)
    (', 20 s left', '')
    """
    return f", {duration(spent * (1 - done) / (done - before))} left" if spent > 3 and done > before else ""


def duration(seconds: float) -> str:
    """
    >>> duration(7.4), duration(75), duration(7500)
    ('7 s', '1 min 15 s', '2 h 05 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
