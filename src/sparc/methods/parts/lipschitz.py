"""How much a net's layers can move apart what they are given, estimated from the maps that pictures leave in it.

As in Bonicelli et al., "On the Effectiveness of Lipschitz-Driven Rehearsal in Continual Learning", NeurIPS 2022. Of two
maps one after another, each pixel's channels are scaled to length 1. The matrix of their products, summed over the
pixels, stands for what lies between them, and its largest singular value is the estimate. Nothing is computed from
weights, so it holds for the pictures at hand.

Shapes: B pictures, C channels, P pixels, L pairs of maps.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.linalg import vector_norm
from torch.nn.functional import adaptive_avg_pool1d, adaptive_avg_pool2d, l1_loss, normalize

STEPS = 10
"""Of power iteration."""
SMALLEST = 1e-7
"""Eigenvalues are larger by this, as a root has no slope at 0."""


class LipschitzBudgets(nn.Module):
    """How large estimates may be between each two maps, which is learned."""

    def __init__(self, pairs: int) -> None:
        super().__init__()
        self.budgets = nn.Parameter(torch.zeros(pairs))

    def start_at(self, estimates: Tensor) -> None:
        """The means of those of many pictures, [B, L]."""
        self.budgets.data.copy_(estimates.mean(0))

    def distance(self, estimates: Tensor) -> Tensor:
        """How far estimates, [B, L], are from the budgets; one below 0 counts as 0."""
        return l1_loss(estimates, self.budgets.relu().expand_as(estimates))


def lipschitz_estimates(maps: Sequence[Tensor], generator: Generator) -> Tensor:
    """[B, L]: of each two maps that follow each other."""
    pairs = [transition(front, back) for front, back in pairwise(maps)]
    return torch.stack([(top_eigenvalues(pair @ pair.mT, generator) + SMALLEST).sqrt() for pair in pairs], 1).float()


def transition(front: Tensor, back: Tensor) -> Tensor:
    """[B, C, C] from [B, C, …] and the map that follows it, which may be smaller and have other channels.

    Neighbouring channels of the second map are averaged until it has as many as the first, and neighbouring pixels of
    the first until it is as small as the second.
    """
    fewer = adaptive_avg_pool1d(back.double().flatten(2).mT, front.shape[1]).mT
    height, width = back.shape[2:]
    smaller = adaptive_avg_pool2d(normalize(front.double(), dim=1), (height, width)).flatten(2)
    return smaller @ normalize(fewer, dim=1).mT / smaller.shape[2]


def top_eigenvalues(matrices: Tensor, generator: Generator) -> Tensor:
    """[B]: the largest of each of B symmetric matrices that have none below 0, by power iteration.

    Gradients go through the last step alone, which is right where the iteration has settled.

    >>> top_eigenvalues(torch.tensor([[[2.0, 1.0], [1.0, 2.0]]]), torch.Generator().manual_seed(0))
    tensor([3.])
    """
    with torch.no_grad():
        vectors = torch.rand(*matrices.shape[:2], 1, dtype=torch.float64, generator=generator).to(matrices)
        for _ in range(STEPS - 1):
            vectors = normalize(matrices @ vectors, dim=1)
    found: Tensor = vector_norm(matrices @ vectors, dim=(1, 2))
    return found
