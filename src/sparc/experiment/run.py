"""One run: from a config to a folder with its result."""

import contextlib
import hashlib
import json
import platform
import re
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from sparc import __version__
from sparc.data import benchmarks
from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.progress import Progress, no_progress
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.experiment.config import RunConfig
from sparc.experiment.folder import Log, RunFolder, writing_in
from sparc.experiment.result import Matrix, Result, read_result, triangle
from sparc.files import check_writable, clear_parts, locked
from sparc.methods import METHODS, Method
from sparc.methods.parts.costs import buffer_bytes
from sparc.train import (
    Checkpointer,
    Checkpoints,
    Evaluation,
    Observer,
    Snapshot,
    StageReport,
    Trainer,
    measure_work,
    seeded,
)


@dataclass(frozen=True)
class Finished:
    """A result and where it lies."""

    result: Result
    folder: Path
    was_there: bool
    """An earlier run that could only have come out the same; nothing was run."""
    splits: Splits | None
    """The pictures, for the next run on the same ones; None where they were not needed."""

    @property
    def picture(self) -> Path:
        return self.folder / "result.png"


class Stop(contextlib.AbstractContextManager["Stop"]):
    """Asked during training whether to stop; entered when training begins. Never, unless a subclass says so."""

    def asked(self) -> bool:
        return False

    def __exit__(self, *error: object) -> None:
        pass


class Stopped(Exception):  # noqa: N818 # nothing is wrong
    """The run was asked to stop; it can be taken up again from where it is."""


def run(
    config: RunConfig,
    out: Path,
    data: Path | None = None,
    device: str = "cpu",
    bf16: bool = False,
    fresh: bool = False,
    progress: Progress = no_progress,
    observe: Callable[[int, Path], Observer] = lambda tasks, folder: Observer(),
    splits: Splits | None = None,
    minutes: float = 5.0,
    stop: Stop | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Finished:
    """Run what is not there yet, from the last checkpoint where there is one.

    Pictures that an earlier run of the same benchmark has loaded can be handed on as `splits`. `observe` makes an
    observer, of the number of tasks and the run's folder. A checkpoint is written at the end of every epoch and task,
    and at least every so many minutes.
    """
    if not minutes >= 0:
        raise InputError(f"--checkpoint-minutes {minutes:g} must not be negative")
    benchmark = benchmarks.find(config.benchmark)
    check_writable(out, "--out")
    place = _device(device)
    if bf16 and place.type != "cuda":
        raise InputError(f"--bf16 is for --device cuda, and {device} would only be slower with it: leave it out")
    if splits is None:
        finished = None if fresh else find_finished(config, out, bf16)
        if finished is not None and not benchmark.present(data):
            return finished
        splits = benchmark.load(data, config.stream.image_size, progress)
    stream = config.stream.cut(splits, benchmark)
    augment = benchmark.augment(stream[0])
    fingerprint = _fingerprint(splits)
    identity = _identity(config, stream, augment, fingerprint, bf16)
    folder = RunFolder(out / _folder_name(config, benchmark.name, identity))
    method = METHODS.find(config.method)(
        config.settings, splits.train.channels, splits.train.size, augment, seeded(config.seed, "method")
    ).to(place)
    about_data = {
        "fingerprint": fingerprint,
        "train": len(splits.train),
        "test": len(splits.test),
        "image_size": list(splits.train.size),
        "augment": asdict(augment),
    }
    out.mkdir(parents=True, exist_ok=True)
    with locked(folder.path):
        surroundings = environment(device, bf16)
        checkpoints = Checkpoints(folder.checkpoints, identity, surroundings, warn)
        if fresh:
            folder.clear()
            checkpoints.clear()
        if folder.result.exists():
            checkpoints.clear()  # cut off when the result had been written
            return Finished(read_result(folder.result), folder.path, True, splits)
        clear_parts(folder.path)
        snapshot = checkpoints.newest()
        try:
            with writing_in(folder.path):
                folder.begin(config.as_json(), len(stream))
            log_length = snapshot.about.get("log", 0) if snapshot else 0
            with Log(folder.log, observe(len(stream), folder.path), log_length, warn) as log, stop or Stop() as stop:
                checkpointer = RunCheckpointer(checkpoints, log, minutes, stop)
                trainer = Trainer(method, config.recipe, config.seed, log, checkpointer=checkpointer, bf16=bf16)
                if snapshot:
                    _restore(trainer, snapshot, folder)
                    log.resumed(trainer.at.words(len(stream)), trainer.at.total_steps)
                reports = trainer.run(stream)
            result = _result(config, stream, method, reports, about_data, surroundings)
            with writing_in(folder.path):
                result.write(folder.result)
        except Stopped:
            raise Stopped(trainer.at.words(len(stream))) from None
        except OSError:  # not the folder's, so the run is part-way and nothing is wrong with it
            raise
        except Exception as error:
            folder.fail(str(error) or repr(error))
            raise
        checkpoints.clear()
    return Finished(result, folder.path, False, splits)


def find_finished(config: RunConfig, out: Path, bf16: bool = False) -> Finished | None:
    """A run with this very config that has been done, found without reading any pictures.

    Only of a named benchmark, whose pictures are the same as a rule; a folder's may have changed. What cannot be read
    is left to whoever runs the config, who will say so.
    """
    if config.benchmark not in benchmarks.BENCHMARKS or not out.is_dir():
        return None
    folders: dict[int, Path] = {}
    results: list[Result] = []
    for path in sorted(out.glob(f"{config.benchmark}-{config.method}-seed{config.seed}-*/result.json")):
        with contextlib.suppress(InputError):
            result = read_result(path)
            if result.environment.get("bf16", False) == bf16:
                results.append(result)
                folders[id(result)] = path.parent
    found = result_of(config, results)
    return None if found is None else Finished(found, folders[id(found)], True, None)


def result_of(config: RunConfig, results: Iterable[Result]) -> Result | None:
    """The result of exactly this config, if it is there; of several, the one with the most pictures."""
    wanted = config.as_json()
    found = [result for result in results if result.config == wanted]
    return max(found, key=lambda result: result.data.get("train") or 0, default=None)


def _restore(trainer: Trainer, snapshot: Snapshot, folder: RunFolder) -> None:
    try:
        trainer.restore(snapshot)
    except (RuntimeError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise InputError(
            f"the checkpoint in {folder.checkpoints} does not fit this version of sparc ({type(error).__name__}): "
            "start over with --fresh"
        ) from error


class RunCheckpointer(Checkpointer):
    """Writes checkpoints when they are due, and stops when it is asked to."""

    def __init__(self, checkpoints: Checkpoints, log: Log, minutes: float, stop: Stop) -> None:
        self.checkpoints = checkpoints
        self.log = log
        self.minutes = minutes
        self.stop = stop
        self.kept = time.monotonic()

    def due(self) -> bool:
        return self.stop.asked() or time.monotonic() - self.kept > 60 * self.minutes

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        taken = snapshot()
        with writing_in(self.log.folder):
            self.checkpoints.write(replace(taken, about={**taken.about, "log": self.log.sync()}))
        self.kept = time.monotonic()
        self.check_stop()

    def check_stop(self) -> None:
        if self.stop.asked():
            raise Stopped


def _identity(config: RunConfig, stream: Stream, augment: Augment, fingerprint: str, bf16: bool) -> str:
    """A digest of all that the result depends on but for its last bits, as it was understood, not as it was spelled."""
    content = {
        "method": config.method,
        "settings": asdict(config.settings),
        "recipe": asdict(config.recipe),
        "seed": config.seed,
        "sizes": stream.sizes,
        "order": stream.class_names,
        "validation": config.stream.validation,
        "augment": asdict(augment),
        "data": fingerprint,
        **({"bf16": True} if bf16 else {}),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _folder_name(config: RunConfig, benchmark: str, identity: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", benchmark)[:60]
    return f"{plain}-{config.method}-seed{config.seed}-{identity[:10]}"


def environment(device: str, bf16: bool = False) -> dict[str, Any]:
    """What, beside the config, the last bits of a result may depend on."""
    return {
        "sparc": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "device": device,
        "bf16": bf16,
        "threads": torch.get_num_threads(),
    }


def _result(
    config: RunConfig,
    stream: Stream,
    method: Method,
    reports: list[StageReport],
    data: dict[str, Any],
    surroundings: dict[str, Any],
) -> Result:
    pictures = stream.test(0)
    work = measure_work(type(method), 2, config.settings, pictures.channels, pictures.size)
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
        parameters=sum(method.parameters_by_owner().values()),
        parameters_by_owner=method.parameters_by_owner(),
        passes={"forward": work.forward, "backward": work.backward},
        buffer_bytes=buffer_bytes(method),
        seconds={
            "train": [report.train_seconds for report in reports],
            "test": [report.test_seconds for report in reports],
        },
        state_sha256=state_digest(method),
        data=data,
        environment=surroundings,
        diagnostics=method.diagnostics(),
    )


def _class_il(stages: list[Evaluation]) -> Matrix | None:
    rows = [stage.class_il for stage in stages if stage.class_il is not None]
    return triangle(rows) if rows else None


def state_digest(method: Method) -> str:
    """A digest of the whole state, to the bit."""
    digest = hashlib.sha256()
    for name, value in sorted(method.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _fingerprint(splits: Splits) -> str:
    return hashlib.sha256((splits.train.fingerprint() + splits.test.fingerprint()).encode()).hexdigest()


def _device(name: str) -> torch.device:
    try:
        device = torch.ones(1, device=name)
        assert device.item() == 1
        return device.device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"--device {name} cannot be used here: leave it out, or name another that this machine has"
        ) from error
