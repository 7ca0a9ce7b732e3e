"""Checkpoints: folders from which a run goes on to the bit, each of them whole or not there.

`step-N/` holds `state.safetensors` and `state.json`, which carries a checksum of both. No code is executed from them.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import save_file
from safetensors.torch import load as from_bytes
from torch import Tensor

from sparc import files
from sparc.errors import InputError
from sparc.files import UNFINISHED, whole_folder

FORMAT = 2
KEPT = 2
"""The newest, and the one before it for when the newest cannot be read."""
KEYS = {"format", "run", "environment", "step", "state.safetensors", "about"}
"""What `state.json` has."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a trainer needs to go on."""

    step: int
    """How far it was; a later snapshot has a larger one."""
    tensors: dict[str, Tensor]
    about: dict[str, Any]
    """The rest, as JSON has it."""

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The tensors of one part, by the names that it gave them."""
        start = f"{prefix}."
        return {name.removeprefix(start): value for name, value in self.tensors.items() if name.startswith(start)}


class Checkpoints:
    """Those of one run, in a folder of its own."""

    def __init__(
        self, folder: Path, run: str, environment: dict[str, Any], warn: Callable[[str], None] = lambda sentence: None
    ) -> None:
        """`run` says whose checkpoints they are; those of another are refused."""
        self.folder = folder
        self.run = run
        self.environment = environment
        self.warn = warn

    def write(self, snapshot: Snapshot) -> None:
        folder = self.folder / f"step-{snapshot.step}"
        shutil.rmtree(folder, ignore_errors=True)  # one that could not be read
        with whole_folder(folder) as part:
            weights = part / "state.safetensors"
            _save(snapshot.tensors, weights)
            files.boundary("tensors written", weights)
            with weights.open("rb") as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
            content = {
                "format": FORMAT,
                "run": self.run,
                "environment": self.environment,
                "step": snapshot.step,
                "state.safetensors": checksum,
                "about": snapshot.about,
            }
            text = json.dumps({"sha256": _digest(content), "content": content}, allow_nan=False)
            (part / "state.json").write_text(text)
        for older in _step_folders(self.folder)[KEPT:]:
            files.boundary("older one removed", older)
            shutil.rmtree(older, ignore_errors=True)

    def newest(self) -> Snapshot | None:
        """The newest that is whole; what was left unfinished, or is damaged, is cleared away."""
        for part in self.folder.glob(f"step-*{UNFINISHED}"):
            shutil.rmtree(part, ignore_errors=True)
        folders = _step_folders(self.folder)
        for number, folder in enumerate(folders, 1):
            then = "the one before it is looked at" if number < len(folders) else "the run starts over"
            try:
                return self._read(folder)
            except _DamagedError as error:
                self.warn(f"checkpoint {folder} is damaged ({error}) and was removed: {then}")
                shutil.rmtree(folder, ignore_errors=True)
            except OSError as error:
                self.warn(f"checkpoint {folder} cannot be read ({error.strerror}): {then}")
        return None

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, folder: Path) -> Snapshot:
        content = _read_content(folder)
        if content["run"] != self.run:
            raise InputError(f"checkpoint {folder} is of another run: move it away, or start over with --fresh")
        weights = _bytes(folder / "state.safetensors")
        if hashlib.sha256(weights).hexdigest() != content["state.safetensors"]:
            raise _DamagedError("state.safetensors does not match its checksum")
        changes = [
            f"{name} {self.environment.get(name)} instead of {was}"
            for name, was in content["environment"].items()
            if self.environment.get(name) != was
        ]
        if changes:
            self.warn(f"going on with {', '.join(changes)}: the last bits may come out otherwise")
        return Snapshot(content["step"], from_bytes(weights), content["about"])


def newest_content(folder: Path) -> dict[str, Any] | None:
    """What the newest checkpoint in a folder says, without its tensors; None where there is none to be read."""
    for step in _step_folders(folder):
        try:
            return _read_content(step)
        except (_DamagedError, OSError):
            continue
    return None


def _step_folders(folder: Path) -> list[Path]:
    """Newest first."""
    steps = {
        int(found[1]): path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (found := re.fullmatch(r"step-(\d{1,18})", path.name))
    }
    return [steps[step] for step in sorted(steps, reverse=True)]


def _read_content(folder: Path) -> dict[str, Any]:
    text = _bytes(folder / "state.json")
    try:
        whole = json.loads(text)
        content: dict[str, Any] = whole["content"]
        if whole["sha256"] != _digest(content):
            raise _DamagedError("state.json does not match its checksum")
        version = content["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _DamagedError(f"state.json cannot be read: {type(error).__name__}") from error
    if version != FORMAT:
        raise InputError(f"checkpoint {folder} is of format {version}, not {FORMAT}: start over with --fresh")
    if missing := KEYS - content.keys():
        raise _DamagedError(f"state.json lacks {', '.join(sorted(missing))}")
    return content


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        # By way of numpy, which takes half the time where there are many small ones.
        save_file({name: value.detach().cpu().contiguous().numpy() for name, value in tensors.items()}, path)
    except SafetensorError as error:  # safetensors' own word for a full disk and the like
        raise OSError(str(error)) from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise _DamagedError(f"{path.name} is missing") from error


class _DamagedError(Exception):
    """It is no whole checkpoint."""


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
