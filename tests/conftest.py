import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.stream import Stream
from tests.examples import AUGMENT, blobs

# Some virtual machines announce AMX but hang at its instructions, which oneDNN uses for bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
torch.set_num_threads(1)
settings.register_profile("suite", deadline=None, max_examples=50)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _nobodys_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the data sets of whoever runs it."""
    monkeypatch.delenv("SPARC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests counted, by `record_property("figures", …)`, for people to see."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(str(value))


@pytest.fixture(scope="session")
def splits() -> Splits:
    """For all tests alike, so to be left as they are."""
    return Splits(blobs(24, 6, seed=1), blobs(10, 6, seed=2))


@pytest.fixture
def stream(splits: Splits) -> Stream:
    return Stream(splits, [2, 3, 1])


@pytest.fixture
def coloured() -> Stream:
    return Stream(Splits(blobs(24, 4, seed=1, channels=3), blobs(10, 4, seed=2, channels=3)), [2, 2])


@pytest.fixture
def augment() -> Augment:
    return AUGMENT


@pytest.fixture
def fuzz() -> Callable[..., dict[str, float]]:
    """What `tests/fuzz.py` reports of feeding damaged copies of some files to their reader, without a traceback."""

    def run(kind: str, files: list[Path], times: int, seconds: float) -> dict[str, float]:
        script = Path(__file__).parent / "fuzz.py"
        command = [sys.executable, str(script), kind, ",".join(map(str, files)), str(times)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, done.stderr
        report: dict[str, float] = json.loads(done.stdout)
        return report

    return run


@pytest.fixture
def picture_folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder of class folders with a few PNG pictures each."""
    from PIL import Image

    def make(classes: int = 4, per_class: int = 6, side: int = 32) -> Path:
        for label in range(classes):
            folder = tmp_path / "pictures" / f"class-{label}"
            folder.mkdir(parents=True)
            for number in range(per_class):
                colour = (60 * label, 255 - 60 * label, 40 * number)
                Image.new("RGB", (side, side + 8), colour).save(folder / f"{number}.png")
        return tmp_path / "pictures"

    return make
