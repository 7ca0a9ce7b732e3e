"""`log.jsonl`: what a run says of each epoch and task while it goes on, and how a report reads it."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from sparc import files
from sparc.errors import InputError, reason
from sparc.experiment.watch import RunWatcher
from sparc.files import sync
from sparc.from_json import build
from sparc.train import StageReport, TrainingReport

Curve = tuple[tuple[float, float], ...]
"""How many tasks had been learned by the end of an epoch, and the epoch's mean loss."""


@contextlib.contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """What goes wrong now is the disk's doing, and costs what was done since the last checkpoint."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror or error}): mend that and give the same command again, "
            "which goes on from the last checkpoint"
        ) from error


class Log(RunWatcher):
    """Writes a line an epoch and a line a task as they come."""

    def __init__(self, path: Path, length: int, warn: Callable[[str], None]) -> None:
        """What stands in the file after `length` bytes was written by a run that was cut off, and goes."""
        self.folder = path.parent
        with writing_in(self.folder):
            self.file = path.open("ab")
            there = self.file.seek(0, os.SEEK_END)
            if there < length:
                warn(f"{path} has lost its last {length - there} bytes: the lines of those epochs will be missing")
            self.file.truncate(min(length, there))
            self.file.seek(0, os.SEEK_END)
            sync(self.folder)

    def training(self, report: TrainingReport) -> None:
        if report.epoch_over:
            self._write({"event": "epoch", **asdict(report)})

    def stage(self, report: StageReport) -> None:
        self._write({"event": "stage", **asdict(report)})

    def sync(self) -> int:
        """How long it is on the disk."""
        self.file.flush()
        files.boundary("log written", Path(self.file.name))
        os.fsync(self.file.fileno())
        return self.file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def _write(self, content: dict[str, Any]) -> None:
        with writing_in(self.folder):
            self.file.write(json.dumps(content).encode() + b"\n")


@dataclass(frozen=True)
class Epoch:
    """What a report reads of a line."""

    task: int
    loss: float


def read_losses(path: Path) -> Curve:
    """The loss of each epoch; empty where there is no log."""
    if not path.is_file():
        return ()
    tasks: dict[int, list[float]] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            content = json.loads(line)
            if content["event"] == "epoch":
                epoch = build(Epoch, {"task": content["task"], "loss": content["loss"]})
                tasks.setdefault(epoch.task, []).append(epoch.loss)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"line {number} of {path} cannot be read ({reason(error)}): remove that file") from error
    return tuple(
        (task - 1 + epoch / len(losses), loss)
        for task, losses in sorted(tasks.items())
        for epoch, loss in enumerate(losses, 1)
    )
