"""Models whose answers are known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sparc.methods.sparc.sparc import SparcSettings
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
            settings=SparcSettings(width=0.0625, depth=1),
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
