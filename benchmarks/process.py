"""What a process needs: rows 7, memory, and 8, time until it answers."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from benchmarks.measure import Row, Size

ROUNDS = 3


def memory_rows(size: Size) -> list[Row]:
    rows = []
    for name, what in (
        ("training", f"peak memory of training, batch {size.batch}"),
        ("answering", f"peak memory of answering, {size.tasks} tasks, batch {size.batches[-1]}"),
    ):
        command = f"from benchmarks.process import *; print({name}_peak({size!r}))"
        mebibytes = float(_output([sys.executable, "-c", f"from benchmarks.measure import Size; {command}"]))
        rows.append(Row("7", what, f"{mebibytes:.0f} MiB above the imports", figures={"MiB": mebibytes}))
    return rows


def startup_rows(size: Size) -> list[Row]:
    help_ = [sys.executable, "-m", "sparc", "--help"]
    imports = subprocess.run(
        [sys.executable, "-X", "importtime", *help_[1:]], capture_output=True, text=True, check=True
    )
    light = not any(line.endswith(" torch") for line in imports.stderr.splitlines())
    seconds = _quickest(help_)
    measured = f"{seconds:.2f} s, {'without' if light else 'with'} torch"
    rows = [Row("8", "sparc --help", measured, "≤ 0.3 s, no torch", light and seconds <= 0.3, {"s": seconds})]
    with tempfile.TemporaryDirectory() as folder:
        model, picture = Path(folder) / "model.sparc", Path(folder) / "picture.png"
        _write(size, model, picture)
        predict = [sys.executable, "-m", "sparc", "predict", str(model), str(picture)]
        imports = [sys.executable, "-c", "import numpy, onnxruntime"]
        with patch.dict(os.environ, XDG_CACHE_HOME=folder):
            first = _seconds(predict)  # which keeps the graph for the next
            in_turns = [(_seconds(predict), _seconds(imports)) for _ in range(2 * ROUNDS)]
    seconds, alone = (min(column) for column in zip(*in_turns, strict=True))
    measured = f"{seconds:.2f} s, and {alone:.2f} for importing numpy and onnxruntime alone; {first:.2f} the first time"
    figures = {"s": seconds, "imports": alone, "first": first, "times": seconds / alone}
    rows.append(Row("8", "sparc predict, one picture", measured, "≤ 0.7 s", seconds <= 0.7, figures))
    return rows


def training_peak(size: Size) -> float:
    import torch

    from benchmarks.training import our_training
    from sparc.allocator import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()

    return _above(lambda: our_training(size, later=False)())


def answering_peak(size: Size) -> float:
    import torch

    from benchmarks.inference import ours
    from sparc.allocator import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    return _above(lambda: ours(size, size.tasks, size.batches[-1])())


def _above(job: Callable[[], object]) -> float:
    """Mebibytes that a process needs for this, at the most, above what it has now."""
    before = _highest()
    job()
    return (_highest() - before) / 1024


def _highest() -> int:
    """KiB. `ru_maxrss` also holds what the process had before it became this program, so Linux is asked otherwise."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        if "VmHWM" in lines:
            return int(lines["VmHWM"].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _quickest(command: list[str]) -> float:
    """Seconds by the clock, the least of a few: whatever else the machine does can only add to them."""
    return min(_seconds(command) for _ in range(ROUNDS))


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    _output(command)
    return time.perf_counter() - start


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _write(size: Size, model: Path, picture: Path) -> None:
    from PIL import Image

    from benchmarks.inference import info_of, learned
    from sparc.model_file import Model, save

    count = size.memories[0]
    save(Model(learned(size, count), info_of(size, count)), model)
    Image.new("RGB", (size.image, size.image), (200, 30, 30)).save(picture)
