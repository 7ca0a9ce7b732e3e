import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

from sparc.errors import InputError
from sparc.methods import Recipe


def test_cosine_is_torchs_own() -> None:
    recipe = Recipe(epochs=7, lr=0.3, schedule="cosine")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = CosineAnnealingLR(optimizer, T_max=7)
    for epoch in range(7):
        assert recipe.lr_at(epoch) == pytest.approx(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()


def test_constant_stays() -> None:
    assert {Recipe(lr=0.3).lr_at(epoch) for epoch in range(50)} == {0.3}


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"epochs": 0}, "--epochs 0"),
        ({"batch_size": 1}, "--batch-size 1"),
        ({"lr": 0.0}, "--lr 0"),
        ({"lr": float("inf")}, "--lr inf"),
        ({"lr": float("nan")}, "--lr nan"),
        ({"momentum": 1.0}, "--momentum 1"),
        ({"optimizer": "adam", "momentum": 0.9}, "--momentum 0.9 is sgd's"),
        ({"weight_decay": -1.0}, "--weight-decay -1"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_flag(values: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        Recipe(**values)
