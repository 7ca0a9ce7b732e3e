"""Many runs at a glance: a live table on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar

from sparc.cli.display import LINE_SECONDS, duration, say, time_left
from sparc.cli.progress import epoch_text, speed_text
from sparc.experiment import Run
from sparc.experiment.grid import GridWatcher, Job, Report, Warned
from sparc.report.plain_table import plain_table
from sparc.train import StageReport, TrainingReport


@dataclass
class _Row:
    job: Job
    begun: float | None = None
    done_before: float = 0.0
    """By an earlier attempt, as far as the first report tells."""
    done: float = 0.0
    at: str = "waiting"
    over: bool = False


class GridView(GridWatcher):
    """Which run, which task and epoch, images/s, time left."""

    def __init__(self, jobs: list[Job], workers: int, stop_asked: Callable[[], bool]) -> None:
        self._stop_asked = stop_asked
        self.reasons: set[str] = set()
        """Why runs have failed, each of which is told once."""
        self.rows = [_Row(job) for job in jobs]
        self.workers = workers
        self.console = Console(stderr=True)
        self.said = self.start = time.monotonic()
        self.live = Live(get_renderable=self._table, console=self.console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def stop_asked(self) -> bool:
        return self._stop_asked()

    def reported(self, job: int, report: Report) -> None:
        row = self.rows[job]
        if isinstance(report, Warned):
            self.line(f"{row.job.title}: {report.sentence}")
        elif isinstance(report, TrainingReport):
            if row.begun is None:
                row.begun, row.done_before = time.monotonic(), report.done
            row.done = report.done
            left = time_left(time.monotonic() - row.begun, row.done, row.done_before)
            row.at = f"task {report.task}, {epoch_text(report)}, {speed_text(report)}{left}"
        elif isinstance(report, StageReport):
            seen = len(report.test.task_il)
            row.at = f"task {report.task} learned, Task-IL {sum(report.test.task_il) / seen:.1f} %"
        else:
            row.at = report
        if not self.console.is_terminal and time.monotonic() - self.said > LINE_SECONDS:
            for each in self.rows:
                if each.at != "waiting" and not each.over:
                    self.line(f"{each.job.title}: {each.done:.0%}, {each.at}")

    def lost(self, job: int, attempt: int) -> None:
        self.rows[job].begun = None
        self.line(f"{self.rows[job].job.title}: its worker died, another goes on (attempt {attempt + 1})")

    def ended(self, job: int, run: Run) -> None:
        row = self.rows[job]
        row.over, row.done = True, 1.0
        if run.state == "failed":
            how = "failed as before" if run.note in self.reasons else f"failed: {run.note}"
            self.reasons.add(run.note)
        elif run.was_there or row.begun is None:
            how = "done, as it was there already"
        else:
            how = f"done in {duration(time.monotonic() - row.begun)}"
        over = sum(each.over for each in self.rows)
        self.line(f"{row.job.title}: {how} ({over} of {len(self.rows)})")

    def line(self, text: str) -> None:
        self.said = time.monotonic()
        say(self.console, text)

    def _table(self) -> RenderableType:
        over = sum(row.over for row in self.rows)
        spent = duration(time.monotonic() - self.start)
        table = plain_table(
            f"{over} of {len(self.rows)} runs, {self.workers} at a time, {spent}", "run", "", "", words=True
        )
        for row in self.rows:
            if not row.over and row.at != "waiting":
                bar = ProgressBar(total=1.0, completed=row.done, width=20)
                table.add_row(escape(row.job.title), bar, escape(row.at))
        return table
