"""Methods that change gradients refuse steps that would undo it."""

from dataclasses import replace

import pytest

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import METHODS
from sparc.train import Trainer
from tests.methods.contract import new, recipe


@pytest.mark.parametrize("name", ["bmkp", "gpm", "ucb"])
def test_other_optimizers_than_sgd_are_refused(name: str, stream: Stream) -> None:
    kind = METHODS.find(name)
    with pytest.raises(InputError, match=f"--optimizer adam would undo what {name} does to gradients"):
        Trainer(new(kind), replace(recipe(kind), optimizer="adam"), 0).learn(stream[0])
