"""A run's folder: what is in it while it runs, when it was cut off, and when it is done."""

import contextlib
import json
import shutil
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sparc.errors import InputError, reason
from sparc.experiment.config import completed
from sparc.experiment.log import Curve
from sparc.experiment.result import Result, read_result
from sparc.files import is_locked, write_atomic
from sparc.from_json import build
from sparc.train import TrainState, newest_content

State = Literal["done", "running", "part-way", "failed"]


@dataclass(frozen=True)
class Run:
    """A run: where it lies, what is run, how far it is, and its result when it is done."""

    folder: Path
    """Its own; of one that failed before it had any, the folder of runs."""
    config: dict[str, Any]
    """As this version writes it; as it was written, where this version does not know its method or a setting."""
    state: State
    note: str = ""
    """How far it is, or why it failed; empty where there is nothing to say."""
    result: Result | None = None
    was_there: bool = False
    """It was done earlier and could only have come out the same; nothing was run."""
    losses: Curve = ()
    """For a report that has read the log."""

    @property
    def result_path(self) -> Path:
        return self.folder / "result.json"

    @property
    def about_path(self) -> Path:
        """What is run, written when it starts, and why it failed, if it did."""
        return self.folder / "run.json"

    @property
    def log_path(self) -> Path:
        return self.folder / "log.jsonl"

    @property
    def picture_path(self) -> Path:
        return self.folder / "result.png"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def curves(self) -> Path:
        """For TensorBoard."""
        return self.folder / "tensorboard"

    @property
    def measured(self) -> Result:
        """The result of one that is done."""
        assert self.result is not None, self
        return self.result

    def begin(self, tasks: int) -> None:
        """Write down what is run."""
        self._describe({"config": self.config, "tasks": tasks, "failed": None})

    def fail(self, why: str) -> None:
        """Note it for `sparc runs`; where even that cannot be written, the error itself is still told."""
        with contextlib.suppress(OSError, ValueError):
            self._describe({**json.loads(self.about_path.read_bytes()), "failed": why})

    def clear(self) -> None:
        """Take away what an earlier run left, but for its checkpoints."""
        for file in (self.result_path, self.log_path):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.curves, ignore_errors=True)

    def _describe(self, content: dict[str, Any]) -> None:
        write_atomic(self.about_path, (json.dumps(content, indent=1) + "\n").encode())


def done_run(folder: Path, result: Result) -> Run:
    """One that was done earlier."""
    return Run(folder, result.config, "done", result=result, was_there=True)


def list_runs(out: Path) -> list[Run]:
    """All runs in a folder, by name, whatever their state."""
    _check_folder(out, "the folder that sparc run was given as --out")
    folders = sorted(path for path in out.iterdir() if _has(path, "run.json") or _has(path, "result.json"))
    return [read_run(path) for path in folders]


def find_runs(paths: Iterable[Path], warn: Callable[[str], None] = warnings.warn) -> list[Run]:
    """Runs that are done, from results, run folders and folders of such, each once; nothing but results is read.

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
    runs, broken = _read(folders.values())
    if not runs:
        raise broken[0]
    for each in broken:
        warn(str(each))
    return runs


def done_runs(out: Path, warn: Callable[[str], None] = warnings.warn) -> list[Run]:
    """All that are done; none where the folder is not there yet. What cannot be read is told and left out."""
    if not out.exists():
        return []
    _check_folder(out, "the folder that sparc run was given as --out")
    runs, broken = _read(_with_results(out))
    for each in broken:
        warn(str(each))
    return runs


def read_run(folder: Path) -> Run:
    """What cannot be read is one run that failed, and no reason not to list the others."""
    run = Run(folder, {}, "failed")
    try:
        if run.result_path.exists():
            return done_run(folder, read_result(run.result_path))
        about = json.loads(run.about_path.read_bytes())
        config, tasks, failed = completed(dict(about["config"])), int(about["tasks"]), about["failed"]
        content = newest_content(run.checkpoints)
        where = f"task 1 of {tasks}, beginning"
        if content:
            where = build(TrainState, content["about"]["position"]).words(tasks)
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        unreadable = f"it cannot be read ({reason(error)}): give its command again"
        return Run(folder, {}, "failed", str(error) if isinstance(error, InputError) else unreadable)
    if is_locked(folder):
        return Run(folder, config, "running", where)
    return Run(folder, config, "failed", str(failed)) if failed else Run(folder, config, "part-way", where)


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


def _read(folders: Iterable[Path]) -> tuple[list[Run], list[InputError]]:
    runs: list[Run] = []
    broken: list[InputError] = []
    for folder in folders:
        try:
            runs.append(done_run(folder, read_result(folder / "result.json")))
        except InputError as error:
            broken.append(error)
    return runs, broken
