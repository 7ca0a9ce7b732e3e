"""Which run is which: what its folder is called, and whether it has been done already."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from sparc.data import benchmarks
from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.experiment.config import RunConfig, changed
from sparc.experiment.folder import Run, read_run
from sparc.experiment.result import Result
from sparc.from_json import build


@dataclass(frozen=True)
class Identity:
    """All that a result depends on but for its last bits, as it was understood, not as it was spelled."""

    config: RunConfig
    stream: Stream
    augment: Augment
    fingerprint: str
    """Of the pictures."""
    bf16: bool

    def digest(self, complete: bool = False) -> str:
        """What has its default does not enter, unless it is to be complete: settings that are added change nothing."""
        config = self.config
        content = {
            "method": config.method,
            "settings": asdict(config.settings) if complete else changed(config.settings),
            "recipe": asdict(config.recipe) if complete else changed(config.recipe),
            "seed": config.seed,
            "sizes": self.stream.sizes,
            "order": self.stream.class_names,
            "validation": config.stream.validation,
            "augment": asdict(self.augment),
            "data": self.fingerprint,
            **({"bf16": True} if self.bf16 else {}),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def find_done(self, runs: Iterable[Run]) -> Run | None:
        """The run of the same on the same pictures, whatever its folder is called."""
        same = _with_config(self.config, runs, self.bf16)
        return next((run for run in same if self._has_data(run.measured)), None)

    def folder(self, out: Path) -> tuple[Path, str]:
        """The folder of that name in `out`, and the digest in it.

        A default that has changed since can have brought another run there; then the complete config gives the name.
        """
        name = re.sub(r"[^\w.-]+", "-", benchmarks.find(self.config.benchmark).name)[:60]
        for digest in (self.digest(), self.digest(complete=True)):
            folder = out / f"{name}-{self.config.method}-seed{self.config.seed}-{digest[:10]}"
            if not self._is_taken(folder):
                break
        return folder, digest

    def _is_taken(self, folder: Path) -> bool:
        """Whether a run with other settings is there; one that cannot be read is in nobody's way."""
        held = read_run(folder).config
        own = self.config.as_json()
        return bool(held) and any(held.get(name) != own[name] for name in ("method", "settings", "recipe"))

    def _has_data(self, result: Result) -> bool:
        try:
            augment = build(Augment, result.data.get("augment"))
        except ValueError:
            return False
        return result.data.get("fingerprint") == self.fingerprint and augment == self.augment


def find_done(config: RunConfig, runs: Iterable[Run], bf16: bool = False) -> Run | None:
    """Of runs that are done, the one with this config, found without reading any pictures; if several, on the most.

    Only of a named benchmark, whose pictures are the same as a rule; a folder's may have changed.
    """
    if config.benchmark not in benchmarks.BENCHMARKS:
        return None
    return max(_with_config(config, runs, bf16), key=lambda run: run.measured.data.get("train") or 0, default=None)


def _with_config(config: RunConfig, runs: Iterable[Run], bf16: bool) -> list[Run]:
    wanted = config.as_json()
    return [run for run in runs if run.config == wanted and run.measured.environment.get("bf16", False) == bf16]
