"""The process that learns a task: it has the model file to itself, and replaces it when all has been learned.

Whatever becomes of this process, the file is the old one or the new one; and the pictures, which are in its memory
alone, are gone with it.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

import torch

from sparc.allocator import keep_freed_memory
from sparc.data.skipped import Skipped
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.learner import Wishes, teach_folder
from sparc.model_file import Model, load, save
from sparc.predictor import USUAL_SHARE, why_not
from sparc.report.model_card import start_of
from sparc.serve.upload_tree import Upload
from sparc.train import Observer, TrainingReport

NICE = 5
"""How much less of the processor it asks for than whoever answers."""
TELL_SECONDS = 0.2
"""How often it tells how far it is."""


@dataclass(frozen=True)
class Job:
    """A task to learn; the contents of its pictures follow, each by itself, in the order of their names."""

    path: Path
    task: str
    names: tuple[str, ...]
    """Such as `cat/1.jpg`."""
    wishes: Wishes
    validation: float
    threads: int


@dataclass(frozen=True)
class Told:
    """How far it is."""

    stage: str
    """What is done now: reading, learning or saving."""
    share: float | None = None
    """Of this stage, that is done."""
    loss: float | None = None
    accuracy: float | None = None
    """Of the pictures held out, in percent, after the last epoch."""
    epoch: int | None = None
    epochs: int | None = None


@dataclass(frozen=True)
class Learned:
    """What came of it."""

    about: dict[str, object]


@dataclass(frozen=True)
class Failed:
    sentence: str


News = Told | Learned | Failed


class Teller(Observer):
    """Tells whoever has started the process how far it is; if nobody is there any more, it ends."""

    def __init__(self, connection: "Connection[News, bytes]") -> None:
        self.connection = connection
        self.accuracy: float | None = None
        self.last = 0.0

    def tell(self, told: Told, always: bool = False) -> None:
        if always or time.monotonic() - self.last > TELL_SECONDS:
            self.last = time.monotonic()
            self.connection.send(told)

    def loading(self, what: str, done: int, total: int | None) -> None:
        self.tell(Told("reading", done / total if total else None))

    def training(self, report: TrainingReport) -> None:
        told = Told("learning", report.done, report.loss, self.accuracy, report.epoch, report.epochs)
        self.tell(told, always=report.epoch_over)

    def validated(self, accuracy: float) -> None:
        self.accuracy = accuracy


def work(connection: "Connection[News, bytes]", job: Job) -> None:
    """All that the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us too, but it is our master who says when to stop
    signal.signal(signal.SIGTERM, _end)
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(NICE)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    torch.set_num_threads(job.threads)
    keep_freed_memory()
    try:
        contents = {name: connection.recv_bytes() for name in job.names}
        try:
            connection.send(_learned(job, contents, Teller(connection)))
        except InputError as error:
            connection.send(Failed(str(error)))
        except OSError as error:
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise
            connection.send(Failed(f"{error.strerror or error}"))
        except MemoryError:
            connection.send(Failed("the memory does not suffice for these pictures: teach fewer at a time"))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(1)  # our master has died


def _end_with(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _end(number: int, frame: FrameType | None) -> None:
    """By an exception, so that what is half written and the lock are taken away."""
    sys.exit(128 + number)


def _learned(job: Job, contents: dict[str, bytes], teller: Teller) -> Learned:
    check_output(job.path)
    with locked(job.path):
        before = load(job.path) if job.path.exists() else None
        if before is not None:
            before.info.shape.check_takes_pictures(job.path)
        skipped: list[Skipped] = []
        model = teach_folder(
            before,
            job.wishes,
            job.task,
            Upload.of(contents),
            job.validation,
            teller,
            teller.loading,
            skipped,
            lambda: teller.tell(Told("learning"), always=True),
        )
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is too late to stop
        teller.tell(Told("saving"), always=True)
        save(model, job.path)
    return Learned(_about(model, before, skipped))


def _about(model: Model, before: Model | None, skipped: list[Skipped]) -> dict[str, object]:
    """As `sparc learn --json` says it, and what it says to people."""
    task = model.info.tasks[-1]
    known = set(before.info.classes) if before else set()
    return {
        **asdict(replace(task, check=None)),
        "known_before": [name for name in task.classes if name in known],
        "classes_in_all": len(model.info.classes),
        "start": start_of(model.info) if before is None else None,
        "none_of_these": why_not(model.info) if model.info.limit(USUAL_SHARE) is None else None,
        "skipped": [asdict(each) for each in skipped],
    }
