"""Ctrl-C and the like: finish the step, keep a checkpoint, then stop; a second Ctrl-C stops at once."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from types import FrameType
from typing import Any, Self

from sparc.experiment.watch import RunWatcher

USUAL = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = "\x1b[?25h"
"""Which a live view hides while it is there."""


class StopOnSignal(RunWatcher):
    """In force from when training starts to when it is left; before that there is nothing to keep."""

    def __init__(self, signals: Collection[signal.Signals] = USUAL, notice: str = "") -> None:
        """The notice is given when a signal has come."""
        self.signals = signals
        self.notice = notice
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def started(self, tasks: int, folder: Path) -> None:
        self.install()

    def stop_asked(self) -> bool:
        return self.signal is not None

    @property
    def code(self) -> int:
        """By which a shell knows what ended a process."""
        return 128 + (self.signal or 0)

    def install(self) -> None:
        """From now on a signal asks for a stop."""
        if not self._before and threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in self.signals}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            _say(SHOW_CURSOR if sys.__stderr__ and sys.__stderr__.isatty() else "")
            os._exit(128 + number)
        self.signal = number
        if self.notice:
            _say(f"\nsparc: {self.notice}\n")


def _say(text: str) -> None:
    """Not by print(), which must not be entered a second time from within itself; nobody may be there to read it."""
    with contextlib.suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, text.encode())
