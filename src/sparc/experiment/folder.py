"""A run's folder: what is in it while it runs, when it was cut off, and when it is done."""

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from sparc import files
from sparc.errors import InputError, reason
from sparc.experiment.result import Result, read_result
from sparc.files import is_locked, sync, write_atomic
from sparc.from_json import build
from sparc.train import Observer, StageReport, TrainingReport, TrainState, newest_content

State = Literal["done", "running", "part-way", "failed"]


@dataclass(frozen=True)
class RunFolder:
    """Where the things of one run lie."""

    path: Path

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def curves(self) -> Path:
        """For TensorBoard."""
        return self.path / "tensorboard"

    @property
    def about(self) -> Path:
        """What is run, written when it starts, and why it failed, if it did."""
        return self.path / "run.json"

    def begin(self, config: dict[str, Any], tasks: int) -> None:
        self._describe({"config": config, "tasks": tasks, "failed": None})

    def fail(self, why: str) -> None:
        """Note it for `sparc runs`; where even that cannot be written, the error itself is still told."""
        with contextlib.suppress(OSError, ValueError):
            self._describe({**json.loads(self.about.read_bytes()), "failed": why})

    def clear(self) -> None:
        """Take away what an earlier run left, but for its checkpoints."""
        for file in (self.result, self.log):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.curves, ignore_errors=True)

    def _describe(self, content: dict[str, Any]) -> None:
        write_atomic(self.about, (json.dumps(content, indent=1) + "\n").encode())


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


class Log(Observer):
    """`log.jsonl`: a line an epoch and a line a task as they come, beside whatever another observer does."""

    def __init__(self, path: Path, inner: Observer, length: int, warn: Callable[[str], None]) -> None:
        """What stands in the file after `length` bytes was written by a run that was cut off, and goes."""
        self.inner = inner
        self.folder = path.parent
        with writing_in(self.folder):
            self.file = path.open("ab")
            there = self.file.seek(0, os.SEEK_END)
            if there < length:
                warn(f"{path} has lost its last {length - there} bytes: the lines of those epochs will be missing")
            self.file.truncate(min(length, there))
            self.file.seek(0, os.SEEK_END)
            sync(self.folder)

    def resumed(self, where: str, steps: int) -> None:
        self.inner.resumed(where, steps)

    def training(self, report: TrainingReport) -> None:
        if report.epoch_over:
            self._line({"event": "epoch", **asdict(report)})
        self.inner.training(report)

    def stage(self, report: StageReport) -> None:
        self._line({"event": "stage", **asdict(report)})
        self.inner.stage(report)

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

    def _line(self, content: dict[str, Any]) -> None:
        with writing_in(self.folder):
            self.file.write(json.dumps(content).encode() + b"\n")


@dataclass(frozen=True)
class Epoch:
    """What a report reads of a line of `log.jsonl`."""

    task: int
    loss: float


@dataclass(frozen=True)
class Listed:
    """A run as it lies in its folder."""

    folder: Path
    config: dict[str, Any]
    state: State
    where: str
    """How far it is, or why it failed; empty where there is nothing to say."""
    result: Result | None


def list_runs(out: Path) -> list[Listed]:
    """All runs in a folder, by name."""
    _check_folder(out, "the folder that sparc run was given as --out")
    folders = sorted(path for path in out.iterdir() if _has(path, "run.json") or _has(path, "result.json"))
    return [_listed(RunFolder(path)) for path in folders]


def find_results(paths: Iterable[Path], warn: Callable[[str], None] = warnings.warn) -> dict[Path, Result]:
    """Results by run folder, from results, run folders and folders of such, each once; nothing but results is read.

    What cannot be read is told and left out, unless there is nothing else.
    """
    folders: dict[Path, Path] = {}
    for path in paths:
        if path.name == "result.json" and path.is_file():
            folders.setdefault(path.parent.resolve(), path.parent)
            continue
        _check_folder(path, "a run's folder, or what sparc run was given as --out")
        found = _with_results(path)
        if not found and _has(path, "run.json"):
            raise InputError(f"{path} is of a run that is not done: give its command again, and it goes on")
        if not found:
            raise InputError(f"{path} has no result in it: make one with sparc run … --out {path}")
        for folder in found:
            folders.setdefault(folder.resolve(), folder)
    results, broken = _read(folders.values())
    if not results:
        raise broken[0]
    for each in broken:
        warn(str(each))
    return results


def results_in(out: Path, warn: Callable[[str], None] = warnings.warn) -> list[Result]:
    """All that are done; none where the folder is not there yet. What cannot be read is told and left out."""
    if not out.exists():
        return []
    _check_folder(out, "the folder that sparc run was given as --out")
    results, broken = _read(_with_results(out))
    for each in broken:
        warn(str(each))
    return list(results.values())


def _check_folder(path: Path, wanted: str) -> None:
    if not path.is_dir():
        raise InputError(f"{path} is {'a file' if path.exists() else 'not there'}: name {wanted}")


def _with_results(path: Path) -> list[Path]:
    """Of a folder and what lies in it, those that are of runs that were done."""
    return [each for each in (path, *sorted(path.iterdir())) if _has(each, "result.json")]


def _has(folder: Path, name: str) -> bool:
    """Where that cannot be told, reading it will say why."""
    try:
        return (folder / name).is_file()
    except OSError:
        return True


def _read(folders: Iterable[Path]) -> tuple[dict[Path, Result], list[InputError]]:
    results: dict[Path, Result] = {}
    broken: list[InputError] = []
    for folder in folders:
        try:
            results[folder] = read_result(RunFolder(folder).result)
        except InputError as error:
            broken.append(error)
    return results, broken


def read_losses(folder: Path) -> list[tuple[float, float]]:
    """The mean loss of each epoch, and how many tasks had been learned by then; empty where there is no log."""
    path = RunFolder(folder).log
    if not path.is_file():
        return []
    tasks: dict[int, list[float]] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            content = json.loads(line)
            if content["event"] == "epoch":
                epoch = build(Epoch, {"task": content["task"], "loss": content["loss"]})
                tasks.setdefault(epoch.task, []).append(epoch.loss)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"line {number} of {path} cannot be read ({reason(error)}): remove that file") from error
    return [
        (task - 1 + (place + 1) / len(losses), loss)
        for task, losses in sorted(tasks.items())
        for place, loss in enumerate(losses)
    ]


def _listed(folder: RunFolder) -> Listed:
    """What cannot be read is one run that failed, and no reason not to list the others."""
    try:
        if folder.result.exists():
            result = read_result(folder.result)
            return Listed(folder.path, result.config, "done", "", result)
        about = json.loads(folder.about.read_bytes())
        config, tasks, failed = dict(about["config"]), int(about["tasks"]), about["failed"]
        content = newest_content(folder.checkpoints)
        where = f"task 1 of {tasks}, beginning"
        if content:
            where = build(TrainState, content["about"]["position"]).words(tasks)
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        why = str(error)
        if not isinstance(error, InputError):
            why = f"it cannot be read ({reason(error)}): give its command again"
        return Listed(folder.path, {}, "failed", why, None)
    if is_locked(folder.path):
        return Listed(folder.path, config, "running", where, None)
    if failed:
        return Listed(folder.path, config, "failed", str(failed), None)
    return Listed(folder.path, config, "part-way", where, None)
