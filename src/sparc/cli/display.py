"""Progress and time left of anything that takes its time: a live bar on a terminal, plain lines elsewhere; always on
standard error.
"""

import time
from typing import TYPE_CHECKING, Self

from rich.console import Console

from sparc.text import amount, one_line

if TYPE_CHECKING:
    from rich.progress import Progress

LINE_SECONDS = 10
"""How often a plain line says where things stand, between the ends of tasks."""


class Display:
    """Shows how far loading is, and what is shown by subclasses."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.bar = _bar(title, self.console) if self.live else None
        self.said = self.start = time.monotonic()
        self.loaded, self.loaded_before, self.loading_since = "", 0.0, self.start
        """What is being loaded, and what share of it was there at the first report, and when."""

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def loading(self, what: str, done: int, total: int | None) -> None:
        share, now = done / total if total else 0.0, time.monotonic()
        if what != self.loaded:
            self.loaded, self.loaded_before, self.loading_since = what, share, now
        self.show(what, share, amount(done, total) + time_left(now - self.loading_since, share, self.loaded_before))

    def show(self, what: str, share: float, note: str) -> None:
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], description=f"{self.title}: {what}", completed=share, note=note)
        elif time.monotonic() - self.said > LINE_SECONDS:
            self.line(f"{what}, {share:.0%}, {note}" if note else what)

    def warn(self, sentence: str) -> None:
        say(self.console, f"sparc: {one_line(sentence)}")

    def line(self, text: str) -> None:
        self.said = time.monotonic()
        say(self.console, f"{self.title}: {text}")


def _bar(title: str, console: Console) -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # of no use but on a terminal

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )
    bar.add_task(title, total=1.0, note="")
    return bar


def say(console: Console, line: str) -> None:
    """Beside what is live there; a path or a command in it is neither broken nor coloured."""
    console.print(line, highlight=False, soft_wrap=True, markup=False)


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
