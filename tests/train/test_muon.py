"""Muon, beside torch's own for matrices and torch's AdamW for the rest."""

import pytest
import torch
from torch import Generator, Tensor, nn

from sparc.train.muon import ADAMW_LR_SCALE, Muon, orthogonalized


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=Generator().manual_seed(seed))


def moved(parameter: nn.Parameter, optimizer: torch.optim.Optimizer, steps: int = 5) -> Tensor:
    for step in range(steps):
        parameter.grad = numbers(*parameter.shape[:2], seed=step).view_as(parameter)
        optimizer.step()
    return parameter.detach().flatten(1)


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_matrices_move_as_by_torchs_muon(shape: tuple[int, int]) -> None:
    ours, theirs = nn.Parameter(numbers(*shape, 1, 1)), nn.Parameter(numbers(*shape))
    found = moved(ours, Muon([{"params": [ours], "weight_decay": 0.1}], lr=0.1))
    expected = moved(theirs, torch.optim.Muon([theirs], lr=0.1, weight_decay=0.1, adjust_lr_fn="original"))
    start = numbers(*shape)
    off = (found - expected).norm() / (expected - start).norm()
    assert off < 0.05, "torch computes in bfloat16"


@pytest.mark.parametrize("shape", [(8, 1, 3, 3), (8, 4), (8,)])
def test_the_rest_moves_as_by_adamw(shape: tuple[int, ...]) -> None:
    ours, theirs = nn.Parameter(numbers(*shape)), nn.Parameter(numbers(*shape))
    muon = Muon([{"params": [ours], "weight_decay": 0.1}], lr=0.1)
    adamw = torch.optim.AdamW([theirs], lr=ADAMW_LR_SCALE * 0.1, weight_decay=0.1)
    for step in range(5):
        for parameter, optimizer in ((ours, muon), (theirs, adamw)):
            parameter.grad = numbers(*shape, seed=step)
            optimizer.step()
    torch.testing.assert_close(ours, theirs)


def test_a_gradient_that_is_missing_or_nothing_moves_nothing() -> None:
    without, nothing = nn.Parameter(numbers(4, 4, 1, 1)), nn.Parameter(numbers(4, 4, 1, 1))
    nothing.grad = torch.zeros_like(nothing)
    Muon([{"params": [without, nothing]}], lr=0.1).step()
    assert torch.equal(without, numbers(4, 4, 1, 1))
    assert torch.equal(nothing, numbers(4, 4, 1, 1))


def test_singular_values_are_brought_near_one() -> None:
    matrices = torch.stack([numbers(6, 20), 1e-3 * numbers(6, 20, seed=1)])
    values = torch.linalg.svdvals(orthogonalized(matrices))
    assert values.min() > 0.6
    assert values.max() < 1.3
