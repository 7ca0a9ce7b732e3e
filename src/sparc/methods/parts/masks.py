"""Masks: which weights of a net belong to which task."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sparc.errors import InputError
from sparc.nn.resizable_buffers import TensorList

MOST_TASKS = 255
"""How many tasks a byte can tell apart, as 0 is nobody's."""


class WeightOwners(TensorList):
    """The task that each weight belongs to, a byte a weight: counted from 1, and 0 where it is free.

    >>> owners = WeightOwners([torch.zeros(3)])
    >>> owners.claim(1)
    >>> owners.release([torch.tensor([True, False, False])])
    >>> owners.claim(2)
    >>> [mask.tolist() for mask in owners.of(2)], [mask.tolist() for mask in owners.until(1)]
    ([[True, False, False]], [[False, True, True]])
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        super().__init__(len(weights))
        self.set([torch.zeros_like(weight, dtype=torch.uint8) for weight in weights])

    def claim(self, task: int) -> None:
        """Give a task all that is free."""
        if task > MOST_TASKS:
            raise InputError(f"masks of a byte a weight tell {MOST_TASKS} tasks apart, and there are more")
        for owner in self:
            owner.masked_fill_(owner == 0, task)

    def release(self, masks: Sequence[Tensor]) -> None:
        """Set weights free."""
        for owner, mask in zip(self, masks, strict=True):
            owner.masked_fill_(mask, 0)

    def of(self, task: int) -> list[Tensor]:
        """Where a task's own weights are."""
        return [owner == task for owner in self]

    def until(self, task: int) -> list[Tensor]:
        """Where the weights of a task, and of all before it, are."""
        return [(owner > 0) & (owner <= task) for owner in self]


def smallest(weight: Tensor, among: Tensor, share: float) -> Tensor:
    """Where the smallest of some weights are, by their size, as many as make up this share of them.

    >>> smallest(torch.tensor([0.1, -3.0, 0.2, 2.0]), torch.tensor([False, True, True, True]), 1 / 3)
    tensor([False, False,  True, False])
    """
    sizes = weight[among].abs()
    chosen = torch.zeros_like(sizes, dtype=torch.bool)
    chosen[sizes.argsort(stable=True)[: round(share * len(sizes))]] = True
    return among.masked_scatter(among, chosen)
