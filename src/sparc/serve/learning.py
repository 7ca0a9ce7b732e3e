"""Learning, as the server sees it: one task at a time, in a process of its own that may be stopped, or die."""

import contextlib
import multiprocessing
import threading
import time
import traceback
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Literal

from sparc.errors import InputError
from sparc.files import clear_parts, locked
from sparc.serve.refused import RefusedError
from sparc.serve.served import Identity, Served
from sparc.serve.worker import Failed, Job, Learned, News, Told, work
from sparc.text import counted

State = Literal["idle", "starting", "reading", "learning", "saving", "learned", "failed", "stopped", "died"]
BUSY = frozenset({"starting", "reading", "learning", "saving"})
PATIENCE = 5.0
"""Seconds in which a worker that was told to stop should have ended; one that writes the file has all the time."""


@dataclass(frozen=True)
class Progress:
    """Where learning stands, or how it ended."""

    state: State = "idle"
    number: int = 0
    """Of tasks that this server was given to learn."""
    task: str = ""
    pictures: int = 0
    seconds: float = 0.0
    share: float | None = None
    """Of what is being done now."""
    seconds_left: float | None = None
    """Of what is being done now, as far as can be told."""
    loss: float | None = None
    accuracy: float | None = None
    """Of the pictures held out, in percent."""
    epoch: int | None = None
    epochs: int | None = None
    stopping: bool = False
    message: str = ""
    """How it ended, for people."""
    learned: dict[str, object] | None = None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class Learning:
    """One writer at a time."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.progress = Progress()
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._thread: threading.Thread | None = None
        self._begun = self._stage_begun = 0.0
        self._share_before: float | None = None
        self._seen: Identity | None = None

    @property
    def busy(self) -> bool:
        return self.progress.state in BUSY

    def check_free(self) -> None:
        if self.busy:
            raise RefusedError(409, "a task is being learned: wait until it has ended, or stop it")

    def begin(self, job: Job, contents: list[bytes]) -> Progress:
        """Start to learn; the contents are taken out of the list as the worker gets them."""
        with self._lock:
            self.check_free()
            self._begun = self._stage_begun = time.monotonic()
            self._seen = self.served.seen
            self.progress = Progress("starting", self.progress.number + 1, job.task, len(contents))
        thread = threading.Thread(target=self._supervise, args=(job, contents), name="learning", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            contents.clear()
            sentence = "the server has no thread left to learn with: try again later"
            with self._lock:
                self.progress = replace(self.progress, state="failed", message=f"{sentence.capitalize()}.")
            raise RefusedError(503, sentence) from error
        self._thread = thread
        return self.progress

    def stop(self) -> Progress:
        """The model stays as it was, unless the new one is being written already."""
        with self._lock:
            if self.busy:
                self.progress = replace(self.progress, stopping=True)
                if self._process is not None:
                    self._process.terminate()
        return self.progress

    def close(self) -> None:
        """Stop, and wait until nothing is left of it."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def now(self) -> Progress:
        progress = self.progress
        return replace(progress, seconds=time.monotonic() - self._begun) if progress.state in BUSY else progress

    def _supervise(self, job: Job, contents: list[bytes]) -> None:
        outcome: News | None = None
        try:
            contents.reverse()
            with self._started(job) as connection:
                while contents:
                    connection.send_bytes(contents.pop())
                while True:
                    outcome = connection.recv()
                    if isinstance(outcome, Told):
                        self._tell(outcome)
        except (EOFError, OSError):
            pass  # it has ended, by itself or not, or could not be started
        finally:
            contents.clear()
            self._conclude(job, outcome)

    def _started(self, job: Job) -> "Connection[bytes, News]":
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, job), daemon=True)
        process.start()
        theirs.close()  # or the end of the process would not be the end of the connection
        with self._lock:
            self._process = process
            if self.progress.stopping:
                process.terminate()
        threading.Thread(target=self._make_sure, args=(process,), daemon=True).start()
        return ours

    def _make_sure(self, process: SpawnProcess) -> None:
        """Kill a worker that was told to stop and does not."""
        told: float | None = None
        while not wait([process.sentinel], 0.2):
            if self.progress.stopping and self.progress.state != "saving":
                told = told or time.monotonic()
                if time.monotonic() - told > PATIENCE:
                    process.kill()

    def _wait_for(self, process: SpawnProcess) -> None:
        process.join(PATIENCE)
        if process.is_alive():  # it has closed its end, and so has nothing left to say
            process.kill()
            process.join()

    def _tell(self, told: Told) -> None:
        stage: State = "reading" if told.stage == "reading" else "saving" if told.stage == "saving" else "learning"
        now = time.monotonic()
        with self._lock:
            if stage != self.progress.state:
                self._stage_begun, self._share_before = now, told.share
            left = None
            before = self._share_before or 0.0
            if told.share is not None and told.share > before and now - self._stage_begun > 1:
                left = (now - self._stage_begun) * (1 - told.share) / (told.share - before)
            self.progress = replace(
                self.progress,
                state=stage,
                share=told.share,
                seconds_left=left,
                loss=told.loss,
                accuracy=told.accuracy,
                epoch=told.epoch,
                epochs=told.epochs,
            )

    def _conclude(self, job: Job, outcome: News | None) -> None:
        """Whatever goes wrong, it has ended: or nothing could be taught any more."""
        try:
            ended = self._ended(job, outcome)
        except Exception as error:
            traceback.print_exception(error)
            unknown = "but what is in the file now could not be found out: see where the server was started."
            ended = replace(self.progress, state="failed", message=f"Learning has ended, {unknown}")
            if isinstance(outcome, Learned):
                message = f"“{job.task}” is learned, {unknown}"
                ended = replace(ended, state="learned", learned=outcome.about, message=message)
        with self._lock:
            self._process = None
            self.progress = replace(ended, seconds=time.monotonic() - self._begun, share=None, seconds_left=None)

    def _ended(self, job: Job, outcome: News | None) -> Progress:
        process = self._process
        if process is not None:
            self._wait_for(process)
        if not isinstance(outcome, Learned):
            path = job.path.resolve()
            with contextlib.suppress(InputError, OSError), locked(path):
                clear_parts(path.parent, path.name)
        self.served.read()
        ended = self.progress
        kept = "the model is as it was before" if self.served.model else "there is no model yet"
        if self.served.seen != self._seen:  # it died between writing and saying so, or somebody else has written
            kept = "the file has been replaced meanwhile"
        deleted = f"{counted(ended.pictures, 'picture')} that {'was' if ended.pictures == 1 else 'were'} sent"
        deleted = f"The {deleted} {'is' if ended.pictures == 1 else 'are'} deleted."
        if isinstance(outcome, Learned):
            message = f"“{job.task}” is learned. {deleted}"
            return replace(ended, state="learned", learned=outcome.about, message=message)
        if isinstance(outcome, Failed):
            return replace(ended, state="failed", message=f"{outcome.sentence}. {kept.capitalize()}. {deleted}")
        if ended.stopping:
            return replace(ended, state="stopped", message=f"Stopped: {kept}. {deleted}")
        how = "could not be started" if process is None else f"ended by itself (code {process.exitcode})"
        if process is not None and process.exitcode is not None and process.exitcode < 0:
            how = f"was killed (signal {-process.exitcode}), perhaps for want of memory"
        return replace(ended, state="died", message=f"The process that learned {how}: {kept}. {deleted}")
