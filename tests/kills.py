"""Kills runs at every boundary between two writes, kills them at random moments, feeds them corrupt checkpoints.

Each time the run is given again, and must end as one that was left alone. `python tests/kills.py FOLDER KIND=TIMES …`
prints what came of each kind as JSON, and how memory grew over 100 epochs. Runs are forked off, so that torch is loaded
once.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from sparc import files
from sparc.data.imageset import ImageSet, Splits
from sparc.experiment import RunConfig, RunWatcher, StreamSettings, Workplace, run
from sparc.methods import Recipe
from sparc.methods.sparc.settings import SparcSettings
from sparc.train import TrainingReport

TIMES = {"seconds", "images_per_second", "train_seconds", "test_seconds"}


def pictures(seed: int) -> ImageSet:
    labels = torch.arange(4).repeat_interleave(20)
    noise = torch.randint(0, 256, (80, 1, 8, 8), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
    return ImageSet(noise, labels, tuple("abcd"))


SPLITS = Splits(pictures(1), pictures(2))
CONFIG = RunConfig(
    "seq-digits",
    "sparc",
    SparcSettings(width=1 / 8),
    Recipe(epochs=2, batch_size=16, lr=5e-3, optimizer="adam"),
    StreamSettings(sizes=(2, 2), validation=0.1),
)


class Trusting(RunWatcher):
    """Unless we have damaged them ourselves, no checkpoint may be found damaged."""

    def warn(self, sentence: str) -> None:
        raise AssertionError(sentence)


def execute(out: Path, damaged: bool = False) -> None:
    workplace = Workplace(out, checkpoint_minutes=0, loaded={(CONFIG.benchmark, None): SPLITS})
    run(CONFIG, workplace, RunWatcher() if damaged else Trusting())


def forked(work: Callable[[], None], patience: float | None = None) -> int:
    """Do it in a process of its own, which is killed when our patience ends; how that process ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    if patience is not None:
        time.sleep(patience)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ending(out: Path) -> Any:
    """All that a run left, but for times."""
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    assert not (folder / "checkpoints").exists()
    lines = (folder / "log.jsonl").read_text().splitlines()
    return without_times([json.loads((folder / "result.json").read_bytes()), *map(json.loads, lines)])


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(part) for name, part in value.items() if name not in TIMES}
    return [without_times(part) for part in value] if isinstance(value, list) else value


def crossings(out: Path) -> list[str]:
    """The boundaries that a run passes, in order."""
    passed: list[str] = []
    files.boundary = lambda where, path: passed.append(where)
    execute(out)
    files.boundary = lambda where, path: None
    return passed


def cut_at(crossing: int, out: Path, lose: bool) -> None:
    """Kill ourselves at this boundary; what was written but not synced may be lost with the power."""
    left = [crossing]
    synced: dict[int, int] = {}
    fsync = os.fsync

    def noted(handle: int) -> None:
        fsync(handle)
        status = os.fstat(handle)
        synced[status.st_ino] = status.st_size

    def hook(where: str, path: Path) -> None:
        if not left[0]:
            for file in out.rglob("*") if lose else ():
                status = file.stat()
                if file.is_file() and status.st_size > synced.get(status.st_ino, 0):
                    os.truncate(file, synced.get(status.st_ino, 0))
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    os.fsync = noted
    files.boundary = hook


def corrupt(out: Path, chance: random.Random) -> bool:
    """Damage a file of the newest checkpoint; whether there is one."""
    steps = {int(path.name[5:]): path for path in out.glob("*/checkpoints/step-*") if path.name[5:].isdigit()}
    if not steps:
        return False
    file = steps[max(steps)] / chance.choice(["state.json", "state.safetensors"])
    content = bytearray(file.read_bytes())
    how = chance.choice(["flip", "cut", "empty", "gone"])
    if how == "flip":
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content[: {"cut": len(content) // 2, "empty": 0}.get(how, len(content))])
    if how == "gone":
        file.unlink()
    return True


def trials(kind: str, times: int, folder: Path, passed: list[str], expected: Any, seconds: float) -> Counter[str]:
    """What came of it: of a run that passes these boundaries, ends so and takes that long if it is left alone."""
    counts: Counter[str] = Counter()
    chance = random.Random(times)
    # The first few of each kind of boundary, or all there are, and the end in any case.
    every = [n for n, where in enumerate(passed) if passed[:n].count(where) < times or n > len(passed) - 6]
    for number in range(len(every) if kind == "boundaries" else times):
        out = folder / f"{kind}-{number}"

        def doomed(attempt: Path, crossing: int, lose: bool) -> None:
            cut_at(crossing, attempt, lose)
            execute(attempt)

        code = 0
        while code == 0:  # it may have ended before it was killed
            out = out.with_name(f"{out.name}+")
            if kind == "random":
                code = forked(partial(execute, out), chance.uniform(0, seconds))
            else:
                crossing = every[number] if kind == "boundaries" else chance.randrange(20, len(passed))
                code = forked(partial(doomed, out, crossing, chance.random() < 0.5))
        assert code == -signal.SIGKILL, code
        counts["kills"] += 1
        if kind == "corrupt":
            counts["corrupt checkpoints fed"] += corrupt(out, chance)
        counts["resumes"] += forked(partial(execute, out, kind == "corrupt")) == 0
        counts["identical ends"] += ending(out) == expected
        shutil.rmtree(out)
    return counts


class Memory(RunWatcher):
    """The process's memory after each epoch, in MiB."""

    def __init__(self) -> None:
        self.megabytes: list[float] = []

    def training(self, report: TrainingReport) -> None:
        if report.epoch_over:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.megabytes.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


def memory_growth(out: Path) -> float:
    """MiB an epoch, once all is warm."""
    # So wide that a snapshot an epoch would be seen.
    config = replace(CONFIG, settings=SparcSettings(width=1 / 4), recipe=replace(CONFIG.recipe, epochs=50))
    memory = Memory()
    run(config, Workplace(out, loaded={(config.benchmark, None): SPLITS}), memory)
    assert len(memory.megabytes) == 100
    return (memory.megabytes[-1] - memory.megabytes[9]) / 90


def main(folder: Path, kinds: list[str]) -> dict[str, Any]:
    torch.set_num_threads(1)
    passed = crossings(folder / "reference")
    expected = ending(folder / "reference")
    start = time.perf_counter()  # not of the first run, which is slower
    execute(folder / "timed")
    seconds = time.perf_counter() - start
    counted = {
        kind: trials(kind, int(times), folder, passed, expected, seconds)
        for kind, times in (each.split("=") for each in kinds)
    }
    has_memory = Path("/proc/self/statm").exists()
    return {**counted, "memory growth": memory_growth(folder / "memory") if has_memory else None}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2:])))
