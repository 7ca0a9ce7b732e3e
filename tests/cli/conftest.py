"""Models whose answers are known, and runs that many tests look at."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sparc.cli.main import main
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import save
from sparc.model_input import InputShape
from tests.models import INFO, learned_task, untaught


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., Path]:
    """A model whose answer is known: each head says its biases whatever the picture shows."""

    def make(*tasks: tuple[str, dict[str, float]], channels: int = 3, image_size: tuple[int, int] = (8, 8)) -> Path:
        info = replace(
            INFO,
            shape=InputShape(channels, image_size),
            settings=ChorusSettings(width=0.0625, depth=1, statistics=0, patches=0),
            mean=(0.5,) * channels,
            std=(0.25,) * channels,
        )
        made = untaught(*(learned_task(name, *biases) for name, biases in tasks), info=info)
        for memory, (_, biases) in zip(made.net.memories(), tasks, strict=True):
            torch.nn.init.zeros_(memory.head.weight)
            memory.head.bias.data = torch.tensor(list(biases.values()))
        save(made, tmp_path / "pets.sparc")
        return tmp_path / "pets.sparc"

    return make


@pytest.fixture(scope="session")
def quick() -> list[str]:
    """Flags with which `sparc run` takes a second or two."""
    return ["--epochs", "1", "--width", "0.125", "--batch-size", "128"]


@pytest.fixture(scope="session")
def quick_runs(quick: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of SPARC and one of SGD on Seq-Digits, to be left as they are."""
    out = tmp_path_factory.mktemp("made") / "runs"
    assert main(["run", "seq-digits", *quick, "--seeds", "2", "--out", str(out)]) == 0
    assert main(["run", "seq-digits", *quick, "--method", "sgd", "--out", str(out)]) == 0
    return out
