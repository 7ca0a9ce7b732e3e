"""The executor of a Ray cluster: one task a run, whose folder lies on storage that all machines share.

A run whose worker is lost is begun again by Ray, and goes on from its last checkpoint.
"""

import contextlib
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from sparc.allocator import keep_freed_memory
from sparc.errors import InputError
from sparc.experiment.folder import Run
from sparc.experiment.grid import ATTEMPTS, GLANCE, GridWatcher, Job, Report, Warned, Worker
from sparc.experiment.stop import StopOnSignal
from sparc.experiment.watch import Stopped


class OnRay:
    """An executor on the cluster at an address, or on one of its own, for as long as it takes."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """A cluster of our own has so many workers; another has what it has."""
        self.address = address
        self.workers = workers

    def __call__(self, jobs: Mapping[int, Job], watcher: GridWatcher) -> dict[int, Run]:
        ray = _ray()
        with _connected(ray, self.address, self.workers):
            try:
                return _work(ray, jobs, watcher)
            except ray.exceptions.RayError as error:
                raise InputError(
                    f"the Ray cluster was lost ({_first_line(error)}): give the same command again, which goes on"
                ) from error


def _work(ray: Any, jobs: Mapping[int, Job], watcher: GridWatcher) -> dict[int, Run]:
    board = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Board).remote()
    task = ray.remote(max_retries=ATTEMPTS - 1, retry_exceptions=False)(_do)
    running = {task.options(num_cpus=job.threads).remote(number, job, board): number for number, job in jobs.items()}
    runs: dict[int, Run] = {}
    stopping = False
    while running:
        if watcher.stop_asked() and not stopping:
            stopping = True
            for reference in running:
                ray.cancel(reference)
        done, _ = ray.wait(list(running), timeout=GLANCE)
        for number, news in ray.get(board.take.remote()):
            if isinstance(news, int):
                watcher.lost(number, news)
            else:
                watcher.reported(number, news)
        for reference in done:
            number = running.pop(reference)
            run = _ended(ray, reference, jobs[number])
            if run is not None and not (stopping and run.state == "failed"):
                runs[number] = run
                watcher.ended(number, run)
    return runs


class _Board:
    """Where the workers of a cluster put what is to be reported to their master."""

    def __init__(self) -> None:
        self.events: list[tuple[int, Report | int]] = []
        """Warnings, and as a number how often a job that has lost its worker had been begun: each is reported."""
        self.latest: dict[int, Report] = {}
        """How each job stands: only the latest is reported."""
        self.begun: dict[int, int] = {}

    def begin(self, number: int) -> None:
        if attempt := self.begun.get(number, 0):
            self.events.append((number, attempt))
        self.begun[number] = attempt + 1

    def put(self, number: int, report: Report) -> None:
        if isinstance(report, Warned):
            self.events.append((number, report))
        else:
            self.latest[number] = report

    def take(self) -> list[tuple[int, Report | int]]:
        taken = [*self.events, *self.latest.items()]
        self.events, self.latest = [], {}
        return taken


class _StopOnCancel(StopOnSignal):
    """Ray tells a task that is cancelled by what Python takes for Ctrl-C, perhaps more than once."""

    def __init__(self) -> None:
        super().__init__([signal.SIGINT])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.signal = number


def _do(number: int, job: Job, board: Any) -> Run | None:
    """How it ended; None if it was stopped."""
    keep_freed_memory()
    board.begin.remote(number)
    try:
        with _StopOnCancel() as stop:
            return Worker().do(job, lambda report: board.put.remote(number, report), stop)
    except Stopped:
        return None


def _ended(ray: Any, reference: Any, job: Job) -> Run | None:
    try:
        run: Run | None = ray.get(reference)
    except ray.exceptions.RayError as error:
        return job.failed(f"Ray gave it up ({_first_line(error)}): see the cluster's own logs")
    return run


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise InputError("--executor ray needs Ray: pip install 'sparc-cl[ray]'") from error
    return ray


@contextlib.contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    # “local” is said, or a cluster that happens to run here would be joined.
    where = {"address": address} if address else {"address": "local", "num_cpus": workers, "include_dashboard": False}
    if address and (host_port := re.fullmatch(r"(?:ray://)?([^/:]+):(\d+)", address)):
        try:  # or Ray would go on trying for minutes
            socket.create_connection((host_port[1], int(host_port[2])), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise InputError(
                f"there is no Ray cluster at --address {address} ({error}): see ray status there"
            ) from error
    in_charge = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**where, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        what = f"there is no Ray cluster at --address {address}" if address else "Ray cannot be started here"
        raise InputError(f"{what} ({_first_line(error)}): try --executor processes") from error
    finally:
        if in_charge:
            signal.signal(signal.SIGTERM, before)  # Ray has put a handler of its own there
    try:
        yield
    finally:
        ray.shutdown()
