"""The executor of this machine: worker processes with a thread each, as many as there are cores.

A worker that dies, whatever killed it, is replaced, and its run goes on from its last checkpoint.
"""

import contextlib
import multiprocessing
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from sparc.allocator import keep_freed_memory
from sparc.experiment.folder import Run
from sparc.experiment.grid import ATTEMPTS, GLANCE, GridWatcher, Job, Report, Worker
from sparc.experiment.stop import StopOnSignal
from sparc.experiment.watch import Stopped


class Processes:
    """An executor with so many workers at a time."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, jobs: Mapping[int, Job], watcher: GridWatcher) -> dict[int, Run]:
        pool = Pool(jobs, watcher, _new_context())
        try:
            pool.work(min(self.workers, len(jobs)))
        finally:
            pool.kill()
        return pool.runs


def _new_context() -> BaseContext:
    """How workers are started: forked off a server that has loaded torch, or anew where the system has no fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sparc.experiment.grid", "torch._dynamo"])  # which an optimizer's first step loads
    # The server takes seconds to start; Ctrl-C, which reaches it too, is not for it. It needs a tracker, which would
    # let signals through again if it were started between.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


@dataclass(eq=False)
class WorkerProcess:
    """A worker as the pool sees it."""

    process: BaseProcess
    connection: "Connection[Job, Report | Run]"
    job: int = -1
    """The number of what it is at."""


class Pool:
    """The workers, and the jobs that wait for one."""

    def __init__(self, jobs: Mapping[int, Job], watcher: GridWatcher, context: BaseContext) -> None:
        self.jobs = jobs
        self.watcher = watcher
        self.context = context
        self.waiting = list(jobs)
        self.attempts = dict.fromkeys(jobs, 0)
        self.runs: dict[int, Run] = {}
        self.workers: list[WorkerProcess] = []

    def work(self, workers: int) -> None:
        """Until all jobs have ended, or a stop was asked for and all workers have."""
        stopping = False
        while self.workers or (self.waiting and not stopping):
            while not stopping and self.waiting and len(self.workers) < workers:
                try:
                    self.start_worker()
                except (EOFError, OSError):
                    if not self.watcher.stop_asked():
                        raise
                    break  # the server that workers are forked off was told to stop as well
            for worker in self._with_news():
                self._listen(worker, stopping)
            if self.watcher.stop_asked() and not stopping:
                stopping = True
                for worker in self.workers:
                    worker.process.terminate()

    def kill(self) -> None:
        for worker in self.workers:
            worker.process.kill()

    def start_worker(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs,), daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()  # or the end of the process would not be the end of the connection
        worker = WorkerProcess(process, ours)
        self.workers.append(worker)
        self._assign(worker)

    def _with_news(self) -> list[WorkerProcess]:
        ready = wait([worker.connection for worker in self.workers], GLANCE)
        return [worker for worker in self.workers if worker.connection in ready]

    def _assign(self, worker: WorkerProcess) -> None:
        worker.job = self.waiting.pop(0)
        self.attempts[worker.job] += 1
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile, which its connection will tell
            worker.connection.send(self.jobs[worker.job])

    def _listen(self, worker: WorkerProcess, stopping: bool) -> None:
        try:
            news = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self.workers.remove(worker)
            worker.process.join()
            if not stopping:
                self._lose(worker.job)
            return
        if not isinstance(news, Run):
            self.watcher.reported(worker.job, news)
            return
        self._end(worker.job, news)
        if self.waiting and not stopping:
            self._assign(worker)
        else:
            self.workers.remove(worker)
            worker.connection.close()

    def _lose(self, job: int) -> None:
        if self.attempts[job] < ATTEMPTS:
            self.watcher.lost(job, self.attempts[job])
            self.waiting.insert(0, job)
        else:
            sentence = f"its worker died {ATTEMPTS} times, perhaps for want of memory: give --workers 1"
            self._end(job, self.jobs[job].failed(sentence))

    def _end(self, job: int, run: Run) -> None:
        self.runs[job] = run
        self.watcher.ended(job, run)


def _serve(connection: "Connection[Report | Run, Job]") -> None:
    """What a worker process does until there is nobody left to do it for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us too, but it is our master who says when to stop
    keep_freed_memory()
    worker = Worker()

    def report(news: Report) -> None:
        try:
            connection.send(news)
        except OSError:  # our master has died: stop as if we had been told to
            signal.raise_signal(signal.SIGTERM)

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, Stopped):
        while True:
            job = connection.recv()
            with StopOnSignal([signal.SIGTERM]) as stop:
                run = worker.do(job, report, stop)
            connection.send(run)
