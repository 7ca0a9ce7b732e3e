"""From the maps of working memories to scores of classes.

Shapes: B batch, K working memories, P pooled features of a memory, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, linear

GRID = 2
"""The map before the last is pooled into so many cells each way."""
TEMPERATURE = 3.0
"""What discriminants are divided by: features are not quite as Gaussian as they are taken to be.

This and the weight of the heads are from held-out pictures of three tasks of Seq-CIFAR100, where all of 2 to 3 and 0.5
to 1.5 lie within a point.
"""
HEAD_WEIGHT = 1.5
"""How much a head's logit counts beside a log posterior of the discriminants."""


def pooled(maps: Sequence[Tensor], memories: int = 1) -> list[Tensor]:
    """[B, P] of each memory, whose channels lie side by side: the last map averaged over its pixels, and the one
    before it, if there is one, over four quarters.

    Late features serve a memory's own classes; earlier ones are better at telling apart what it was not trained on.
    """
    parts = [maps[-1].mean((2, 3)), *(adaptive_avg_pool2d(before, GRID) for before in maps[-2:-1])]
    by_memory = [part.unflatten(1, (memories, -1)).flatten(2) for part in parts]
    return list(torch.cat(by_memory, dim=2).unbind(1))


@dataclass(frozen=True)
class Readout:
    """From the features of all working memories to a score for every class."""

    heads: Sequence[tuple[Tensor, Tensor]]
    """Weight and bias of each."""
    discriminants: Sequence[tuple[Tensor, Tensor]]
    """The same of the discriminants in the last so many features; each knows all classes from a certain one on."""

    def __call__(self, features: Sequence[Tensor]) -> Tensor:
        """[B, C]: what each head says of its own task's classes, and to that, where there are discriminants, the mean
        of what those say that know a class. Features are those of each working memory, and what else is described.
        """
        heads = [
            linear(own[:, : weight.shape[1]], weight, bias)
            for own, (weight, bias) in zip(features, self.heads, strict=False)
        ]
        logits = torch.cat(heads, dim=1)
        if not self.discriminants:
            return logits
        total, answers = torch.zeros_like(logits), torch.zeros_like(logits[:1])
        for own, (weight, bias) in zip(features[-len(self.discriminants) :], self.discriminants, strict=True):
            first = logits.shape[1] - len(bias)
            total[:, first:] += (linear(own, weight, bias) / TEMPERATURE).log_softmax(1)
            answers[:, first:] += 1
        return HEAD_WEIGHT * logits + total / answers
