"""The executor of a Ray cluster: one task a run, whose folder lies on storage that all machines share.

A run whose worker is lost is begun again by Ray, and goes on from its last checkpoint.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from sparc.errors import InputError
from sparc.experiment.grid import ATTEMPTS, Job, Outcome, Report, Watcher, Worker
from sparc.experiment.run import Stop

GLANCE = 0.2
"""Seconds after which to look what is new."""


class OnRay:
    """An executor on the cluster at an address, or on one of its own, for as long as it takes."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """A cluster of our own has so many workers; another has what it has."""
        self.address = address
        self.workers = workers

    def __call__(self, jobs: Mapping[int, Job], watcher: Watcher, stop: Stop) -> dict[int, Outcome]:
        ray = _ray()
        with _connected(ray, self.address, self.workers):
            board = ray.remote(num_cpus=0)(_Board).remote()
            task = ray.remote(max_retries=ATTEMPTS - 1, retry_exceptions=False)(_do)
            numbers = {
                task.options(num_cpus=job.threads).remote(number, job, board): number for number, job in jobs.items()
            }
            outcomes: dict[int, Outcome] = {}
            while len(outcomes) < len(jobs) and not stop.asked():
                running = [reference for reference, number in numbers.items() if number not in outcomes]
                done, _ = ray.wait(running, timeout=GLANCE)
                for number, news in ray.get(board.take.remote()):
                    if isinstance(news, int):
                        watcher.lost(number, news)
                    else:
                        watcher.told(number, news)
                for reference in done:
                    number = numbers[reference]
                    outcomes[number] = _outcome(ray, reference, jobs[number])
                    watcher.ended(number, outcomes[number])
        return outcomes


class _Board:
    """Where the workers of a cluster put what their master is to be told: of each job only the latest."""

    def __init__(self) -> None:
        self.news: dict[int, Report | int] = {}
        self.begun: dict[int, int] = {}

    def begin(self, number: int) -> None:
        """A job that is begun again has lost its worker."""
        if attempt := self.begun.get(number, 0):
            self.news[number] = attempt
        self.begun[number] = attempt + 1

    def put(self, number: int, report: Report) -> None:
        self.news[number] = report

    def take(self) -> list[tuple[int, Report | int]]:
        taken, self.news = list(self.news.items()), {}
        return taken


def _do(number: int, job: Job, board: Any) -> Outcome:
    board.begin.remote(number)
    return Worker().do(job, lambda report: board.put.remote(number, report), Stop())


def _outcome(ray: Any, reference: Any, job: Job) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayError as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return Outcome(job, error=f"Ray gave it up ({first}): see the cluster's own logs")
    return outcome


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
    try:
        ray.init(**where, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"there is no Ray cluster at --address {address}: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()
