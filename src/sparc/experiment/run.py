"""One run: from a config to a folder with its result."""

import hashlib
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from statistics import mean
from typing import Any

import torch

from sparc import __version__
from sparc.data import benchmarks
from sparc.data.imageset import Splits
from sparc.errors import InputError
from sparc.experiment.config import RunConfig
from sparc.experiment.folder import Run, done_run, done_runs
from sparc.experiment.identity import Identity, find_done
from sparc.experiment.log import Log, writing_in
from sparc.experiment.result import Matrix, Result, Setting, read_result, triangle
from sparc.experiment.watch import PlainWatcher, RunWatcher, Stopped, Watchers
from sparc.experiment.workplace import Workplace
from sparc.files import clear_parts, locked
from sparc.methods import METHODS, Method, Settings
from sparc.methods.parts.costs import buffer_bytes
from sparc.nn.pretrained import digest_of
from sparc.train import (
    Checkpointer,
    Checkpoints,
    Evaluation,
    Snapshot,
    StageReport,
    Trainer,
    Work,
    measure_work,
    seeded,
)


def run(config: RunConfig, workplace: Workplace, watcher: RunWatcher | None = None) -> Run:
    """Run what is not there yet, from the last checkpoint where there is one; `Stopped` where the watcher stops it."""
    watcher = watcher or PlainWatcher()
    benchmark = benchmarks.find(config.benchmark)
    device = workplace.check()
    out, fresh, bf16 = workplace.out, workplace.fresh, workplace.bf16
    there = done_runs(out, warn=lambda sentence: None)  # if it is this one that cannot be read, it is said below
    if not fresh and (done := find_done(config, there, bf16)) is not None and not workplace.has_images(config):
        return done
    splits = workplace.load(config, watcher.loading)
    stream = config.stream.cut(splits, benchmark)
    augment = benchmark.augment(stream[0])
    identity = Identity(config, stream, augment, _fingerprint(splits), bf16)
    method = METHODS.find(config.method)(
        config.settings, splits.train.channels, splits.train.size, augment, seeded(config.seed, "method")
    ).to(device)
    folder, digest = identity.folder(out)
    if (done := identity.find_done(there)) is not None:
        folder = done.folder
    out.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        started = Run(folder, config.as_json(), "running")
        checkpoints = Checkpoints(started.checkpoints, digest, environment(workplace), watcher.warn)
        if fresh:
            started.clear()
            checkpoints.clear()
        if started.result_path.exists():
            checkpoints.clear()  # cut off when the result had been written
            return done_run(folder, read_result(started.result_path))
        clear_parts(folder)
        snapshot = checkpoints.newest()
        try:
            with writing_in(folder):
                started.begin(len(stream))
            watcher.started(len(stream), folder)
            log_length = snapshot.about.get("log", 0) if snapshot else 0
            with Log(started.log_path, log_length, watcher.warn) as log:
                watchers = Watchers(log, watcher)
                checkpointer = RunCheckpointer(checkpoints, log, workplace.checkpoint_minutes, watcher)
                trainer = Trainer(
                    method,
                    config.recipe,
                    config.seed,
                    watchers,
                    checkpointer=checkpointer,
                    bf16=bf16,
                    threads=torch.get_num_threads(),
                )
                if snapshot:
                    _restore(trainer, snapshot, started)
                    watchers.resumed(trainer.at.words(len(stream)), trainer.at.total_steps)
                reports = trainer.run(stream)
            result = _result(identity, splits, method, reports, checkpoints.environment)
            with writing_in(folder):
                result.write(started.result_path)
        except Stopped:
            raise Stopped(trainer.at.words(len(stream))) from None
        except OSError:  # not the folder's, so the run is part-way and nothing is wrong with it
            raise
        except Exception as error:
            started.fail(str(error) or repr(error))
            raise
        checkpoints.clear()
    return replace(started, state="done", result=result)


def _restore(trainer: Trainer, snapshot: Snapshot, started: Run) -> None:
    try:
        trainer.restore(snapshot)
    except (RuntimeError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise InputError(
            f"the checkpoint in {started.checkpoints} does not fit this version of sparc ({type(error).__name__}): "
            "start over with --fresh"
        ) from error


class RunCheckpointer(Checkpointer):
    """Writes checkpoints when they are due, and stops when it is asked to."""

    def __init__(self, checkpoints: Checkpoints, log: Log, minutes: float, watcher: RunWatcher) -> None:
        self.checkpoints = checkpoints
        self.log = log
        self.minutes = minutes
        self.watcher = watcher
        self.kept = time.monotonic()

    def due(self) -> bool:
        return self.watcher.stop_asked() or time.monotonic() - self.kept > 60 * self.minutes

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        taken = snapshot()
        with writing_in(self.log.folder):
            self.checkpoints.write(replace(taken, about={**taken.about, "log": self.log.sync()}))
        self.kept = time.monotonic()
        self.check_stop()

    def check_stop(self) -> None:
        if self.watcher.stop_asked():
            raise Stopped


def environment(workplace: Workplace) -> dict[str, Any]:
    """What, beside the config, the last bits of a result may depend on."""
    return {
        "sparc": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "device": workplace.device,
        "bf16": workplace.bf16,
        "threads": torch.get_num_threads(),
    }


def _result(
    identity: Identity, splits: Splits, method: Method, reports: list[StageReport], surroundings: dict[str, Any]
) -> Result:
    config, stream = identity.config, identity.stream
    channels, image_size = splits.train.channels, splits.train.size
    work = _work(type(method), config.settings, channels, image_size)
    owners = method.parameters_by_owner()
    held_out = [report.validation for report in reports if report.validation]
    return Result(
        config=config.as_json(),
        class_names=list(stream.class_names),
        sizes=stream.sizes,
        class_il=_class_il([report.test for report in reports]),
        task_il=triangle([report.test.task_il for report in reports]),
        validation={
            "class_il": _class_il(held_out),
            "task_il": triangle([evaluation.task_il for evaluation in held_out]),
        }
        if held_out
        else None,
        task_confusion=reports[-1].test.task_confusion,
        parameters=sum(owners.values()),
        parameters_by_owner=owners,
        passes={"forward": work.forward, "backward": work.backward},
        buffer_bytes=buffer_bytes(method),
        seconds={
            "train": [report.train_seconds for report in reports],
            "test": [report.test_seconds for report in reports],
        },
        state_sha256=state_digest(method),
        data={
            "fingerprint": identity.fingerprint,
            "train": len(splits.train),
            "test": len(splits.test),
            "image_size": list(image_size),
            "augment": asdict(identity.augment),
        },
        environment=surroundings,
        diagnostics=method.diagnostics(),
        by_part={name: _at_the_end(each) for name, each in reports[-1].by_part.items()},
        title=method.full_title(),
        kind=method.kind,
        upper_bound=method.sees_old_tasks,
    )


@cache  # the same for every seed
def _work(kind: type[Method], settings: Settings, channels: int, image_size: tuple[int, int]) -> Work:
    return measure_work(kind, 2, settings, channels, image_size)


def _at_the_end(evaluation: Evaluation) -> dict[Setting, float]:
    assert evaluation.class_il is not None, "parts are left out of answers among all classes"
    return {"class_il": mean(evaluation.class_il), "task_il": mean(evaluation.task_il)}


def _class_il(stages: list[Evaluation]) -> Matrix | None:
    rows = [stage.class_il for stage in stages if stage.class_il is not None]
    return triangle(rows) if rows else None


def state_digest(method: Method) -> str:
    """A digest of the whole state, to the bit."""
    return digest_of(method.state_dict()).hexdigest()


def _fingerprint(splits: Splits) -> str:
    return hashlib.sha256((splits.train.fingerprint() + splits.test.fingerprint()).encode()).hexdigest()
