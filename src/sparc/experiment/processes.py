"""The executor of this machine: worker processes with a thread each, as many as there are cores.

A worker that dies, whatever killed it, is replaced, and its run goes on from its last checkpoint.
"""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from sparc.allocator import keep_freed_memory
from sparc.experiment.grid import ATTEMPTS, GLANCE, Job, Outcome, Report, Watcher, Worker
from sparc.experiment.run import Stop, Stopped
from sparc.experiment.stop import StopOnSignal

CONTEXT = multiprocessing.get_context("forkserver")


class Processes:
    """An executor with so many workers at a time."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, jobs: Mapping[int, Job], watcher: Watcher, stop: Stop) -> dict[int, Outcome]:
        CONTEXT.set_forkserver_preload(["sparc.experiment.grid"])  # so that torch is loaded once for all workers
        # What workers are made from takes seconds to start; Ctrl-C, which reaches it too, is not for it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        pool = _Pool(jobs, watcher)
        try:
            pool.work(min(self.workers, len(jobs)), stop)
        finally:
            pool.dismiss()
        return pool.outcomes


@dataclass(eq=False)
class _Worker:
    """A worker process as its master sees it."""

    process: BaseProcess
    line: Connection
    job: int


class _Pool:
    def __init__(self, jobs: Mapping[int, Job], watcher: Watcher) -> None:
        self.jobs = jobs
        self.watcher = watcher
        self.waiting = list(jobs)
        self.attempts = dict.fromkeys(jobs, 0)
        self.outcomes: dict[int, Outcome] = {}
        self.workers: list[_Worker] = []

    def work(self, workers: int, stop: Stop) -> None:
        stopping = False
        while self.workers or (self.waiting and not stopping):
            while not stopping and self.waiting and len(self.workers) < workers:
                try:
                    self._spawn()
                except (EOFError, OSError):
                    if not stop.asked():
                        raise
                    break  # what workers are made from was told to stop as well
            for hand in self._with_news():
                self._listen(hand, stopping)
            if stop.asked() and not stopping:
                stopping = True
                for hand in self.workers:
                    hand.process.terminate()

    def dismiss(self) -> None:
        for hand in self.workers:
            hand.process.kill()

    def _with_news(self) -> list[_Worker]:
        ready = wait([hand.line for hand in self.workers], GLANCE)
        return [hand for hand in self.workers if hand.line in ready]

    def _spawn(self) -> None:
        mine, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()  # or the end of the process would not be the end of the line
        hand = _Worker(process, mine, -1)
        self.workers.append(hand)
        self._assign(hand)

    def _assign(self, hand: _Worker) -> None:
        hand.job = self.waiting.pop(0)
        self.attempts[hand.job] += 1
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile, which its line will tell
            hand.line.send(self.jobs[hand.job])

    def _listen(self, hand: _Worker, stopping: bool) -> None:
        try:
            news = hand.line.recv()
        except (EOFError, ConnectionResetError):
            self.workers.remove(hand)
            hand.process.join()
            if not stopping:
                self._lost(hand.job)
            return
        if not isinstance(news, Outcome):
            self.watcher.told(hand.job, news)
            return
        self._end(hand.job, news)
        if self.waiting and not stopping:
            self._assign(hand)
        else:
            self.workers.remove(hand)
            hand.line.close()

    def _lost(self, job: int) -> None:
        if self.attempts[job] < ATTEMPTS:
            self.watcher.lost(job, self.attempts[job])
            self.waiting.insert(0, job)
        else:
            sentence = f"its worker died {ATTEMPTS} times, perhaps for want of memory: give --workers 1"
            self._end(job, Outcome(self.jobs[job], error=sentence))

    def _end(self, job: int, outcome: Outcome) -> None:
        self.outcomes[job] = outcome
        self.watcher.ended(job, outcome)


def _serve(line: Connection) -> None:
    """What a worker process does until there is nobody left to do it for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us too, but it is our master who says when to stop
    keep_freed_memory()
    worker = Worker()

    def tell(report: Report) -> None:
        try:
            line.send(report)
        except OSError:  # our master has died: stop as if we had been told to
            os.kill(os.getpid(), signal.SIGTERM)

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, Stopped):
        while True:
            line.send(worker.do(line.recv(), tell, StopOnSignal([signal.SIGTERM])))
