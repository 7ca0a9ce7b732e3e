"""Models whose answers are known, and runs that many tests look at."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sparc.cli.main import main
from sparc.model_file import LearnedTask, Model, ModelInfo, Shape, save


def learned_task(name: str, classes: tuple[str, ...]) -> LearnedTask:
    return LearnedTask(name, classes, (5,) * len(classes), 2, 90.0, 80.0, "2025-07-01T10:00:00+00:00", 3, 1.5, 0.5)


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., Path]:
    """A model whose answer is known: each head says its biases whatever the picture shows."""

    def make(*tasks: tuple[str, dict[str, float]], channels: int = 3, image_size: tuple[int, int] = (8, 8)) -> Path:
        shape = Shape(channels, image_size, width=0.0625, depth=1, shared=0.5)
        net = shape.new_net()
        for _, biases in tasks:
            memory = net.add_task(len(biases))
            torch.nn.init.zeros_(memory.head.weight)
            memory.head.bias.data = torch.tensor(list(biases.values()))
        known = tuple(learned_task(name, tuple(biases)) for name, biases in tasks)
        about = ModelInfo(shape, (0.5,) * channels, (0.25,) * channels, 0.99, 5.0, known)
        save(Model(net, about), tmp_path / "pets.sparc")
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
