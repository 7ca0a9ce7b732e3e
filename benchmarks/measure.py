"""Contestants that take turns, and the rows that come of it.

A contestant runs in a process of its own, as how malloc is set up holds for a whole process; all of them are timed in
turns, so that whatever else the machine does falls upon all alike. Times are processor seconds of one thread, or by the
clock where several threads are compared, which take more processor time and not less.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Protocol

import torch

from sparc.allocator import keep_freed_memory

Job = Callable[[], Any]
Timer = Callable[[], float]


@dataclass(frozen=True)
class Size:
    """How large everything is; the defaults are what the aims are meant for."""

    image: int = 32
    width: float = 0.5
    batch: int = 32
    classes: int = 20
    """Of each task that is learned."""
    steps: int = 8
    """Of training in a turn."""
    rounds: int = 6
    memories: tuple[int, ...] = (5, 10, 20)
    batches: tuple[int, ...] = (1, 256)
    """Pictures at once, at inference."""
    answer_memories: tuple[int, ...] = (1, 5, 20, 50)
    """In onnxruntime."""
    answer_batches: tuple[int, ...] = (1, 64)
    answer_aims: tuple[tuple[int, int], ...] = ((5, 1), (5, 256))
    """Memories and pictures at once for which there is an aim."""
    start_pictures: int = 100
    """Of each of five classes that are learned with a start."""
    tasks: int = 50
    """Of the model that has learned for long."""
    clients: int = 32
    """That ask a server at once."""
    serve_seconds: float = 20.0
    """For how long they do."""
    sgemm: int = 1024
    """Rows and columns of the matrices by which the machine is measured."""


@dataclass(frozen=True)
class Row:
    number: str
    """As in the list of aims."""
    what: str
    measured: str
    aim: str = ""
    reached: bool | None = None
    """None where there is no aim, or nothing could be measured."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What it was reckoned from."""


class Worker(Protocol):
    def make(self, name: str, maker: Callable[..., Job], *arguments: Any) -> None:
        """Have a job ready by this name."""

    def run(self, name: str, timer: Timer = time.process_time) -> tuple[float, Any]:
        """Do the job once: seconds, and what came of it."""


class Here:
    """In this process."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    def make(self, name: str, maker: Callable[..., Job], *arguments: Any) -> None:
        self.jobs[name] = maker(*arguments)

    def run(self, name: str, timer: Timer = time.process_time) -> tuple[float, Any]:
        start = timer()
        outcome = self.jobs[name]()
        return timer() - start, outcome


class Elsewhere:
    """In a process of its own."""

    def __init__(self, keeps_memory: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, keeps_memory), daemon=True)
        self.process.start()

    def make(self, name: str, maker: Callable[..., Job], *arguments: Any) -> None:
        self._ask("make", name, maker, *arguments)

    def run(self, name: str, timer: Timer = time.process_time) -> tuple[float, Any]:
        seconds, outcome = self._ask("run", name, timer)
        return seconds, outcome

    def close(self) -> None:
        self.pipe.close()
        self.process.join(timeout=10)

    def _ask(self, *message: Any) -> Any:
        self.pipe.send(message)
        outcome = self.pipe.recv()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _serve(pipe: Connection, keeps_memory: bool) -> None:
    torch.set_num_threads(1)
    if keeps_memory:
        keep_freed_memory()
    here = Here()
    while True:
        try:
            verb, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(getattr(here, verb)(*arguments))
        except Exception as error:  # whatever it is, whoever asked must know
            pipe.send(error)


@dataclass(frozen=True)
class Workers:
    usual: Worker
    """Memory is handled as glibc does by itself."""
    ours: Worker
    """As the trainer sets it up."""


@contextmanager
def two_processes() -> Iterator[Workers]:
    usual, ours = Elsewhere(keeps_memory=False), Elsewhere(keeps_memory=True)
    try:
        yield Workers(usual, ours)
    finally:
        usual.close()
        ours.close()


def in_turns(
    jobs: Mapping[str, Worker], rounds: int, warm_up: int = 1, timer: Timer = time.process_time
) -> dict[str, list[float]]:
    """Seconds of every round but the first, in which everybody warms up; jobs of seconds need not."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(warm_up + rounds):
        for name, worker in jobs.items():
            seconds[name].append(worker.run(name, timer)[0])
    return {name: times[warm_up:] for name, times in seconds.items()}


def ratio(slow: list[float], fast: list[float]) -> float:
    """How many times as long, as the middle of all rounds."""
    return median(one / other for one, other in zip(slow, fast, strict=True))


def extremes(name: str, slow: list[float], fast: list[float]) -> dict[str, float]:
    """Between what the rounds of a ratio lay, and how many there were."""
    ratios = [one / other for one, other in zip(slow, fast, strict=True)]
    return {f"{name}, least": min(ratios), f"{name}, most": max(ratios), "rounds": len(ratios)}
