"""What methods share that hold each parameter to its old value by a spring as stiff as it was important."""

from typing import Any

import torch
from torch import Tensor

from sparc.methods.method import Batch
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.nn.resizable_buffers import TensorList


class QuadraticPenalty(SingleNet):
    lam: float
    """Of all springs together."""

    def __init__(self, settings: SingleNetSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        count = len(list(self.net.parameters()))
        self.anchor = TensorList(count)
        """Parameters as they were when the last task was over."""
        self.importance = TensorList(count)
        """Empty until a task is over. New rows of the head have none, so it may have fewer rows than they."""

    def loss(self, batch: Batch) -> Tensor:
        loss = super().loss(batch)
        return loss + self.lam * self.penalty() if self.has_learned else loss

    @property
    def has_learned(self) -> bool:
        return any(len(importance) for importance in self.importance)

    def penalty(self) -> Tensor:
        terms = [
            (importance * (parameter[: len(importance)] - anchor[: len(importance)]).square()).sum()
            for parameter, anchor, importance in zip(self.net.parameters(), self.anchor, self.importance, strict=True)
        ]
        return torch.stack(terms).sum()

    @torch.no_grad()
    def consolidate(self, importance: list[Tensor], keep: float = 1.0) -> None:
        """Anchor the parameters where they are; importance is `keep` of the old plus the new, never below 0."""
        grown = [extended(old, new) for old, new in zip(self.importance, importance, strict=True)]
        self.importance.set([(keep * old + new).clamp_min(0) for old, new in zip(grown, importance, strict=True)])
        self.anchor.set([parameter.detach().clone() for parameter in self.net.parameters()])


def extended(old: Tensor, like: Tensor) -> Tensor:
    """With rows of zeros, until it has the other's shape.

    >>> extended(torch.ones(1, 2), torch.empty(2, 2))
    tensor([[1., 1.],
            [0., 0.]])
    """
    missing = like.new_zeros(len(like) - len(old), *like.shape[1:])
    return torch.cat((old.reshape(len(old), *like.shape[1:]), missing))
