"""Weights that are Gaussians, each with a mean and a deviation: Bayes by backprop.

Blundell et al., "Weight Uncertainty in Neural Networks", ICML 2015. A deviation is softplus(ρ), and the prior a mixture
of a wide and a narrow Gaussian around 0.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from sparc.nn.head import Head, Heads

WIDE, NARROW = 1.0, math.exp(-6)
"""Deviations of the prior's two Gaussians."""
SPREAD = 0.1
"""Deviation with which means and ρ begin: as large as to show beside softplus(−3), which is 0.05."""


def spread(around: float, shape: Sequence[int], generator: Generator) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape).normal_(around, SPREAD, generator=generator))


def draw(mean: Tensor, rho: Tensor, pi: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """Weights, and log q − log p of them: the divergence from the prior, of which a share `pi` is wide, by one draw."""
    noise = torch.randn(mean.shape, generator=generator).to(mean)
    deviation = softplus(rho)
    weights = mean + deviation * noise
    posterior = log_normal(noise, 1.0) - deviation.log()
    return weights, (posterior - log_prior(weights, pi)).sum()


def log_prior(weights: Tensor, pi: float) -> Tensor:
    wide, narrow = log_normal(weights, WIDE), log_normal(weights, NARROW)
    return torch.logaddexp(math.log(pi) + wide, math.log(1 - pi) + narrow)


def log_normal(x: Tensor, deviation: float) -> Tensor:
    """Log density around 0.

    >>> log_normal(torch.tensor(0.0), 1.0)
    tensor(-0.9189)
    """
    return -(x / deviation).square() / 2 - math.log(deviation * math.sqrt(2 * math.pi))


class BayesianHead(Head):
    """Its weights and biases are the means; of these, one after the other, are `rho`."""

    def __init__(self, features: int, classes: int, rho: float, generator: Generator) -> None:
        super().__init__(features, classes, generator)
        self.weight = spread(0, self.weight.shape, generator)
        self.bias = spread(0, self.bias.shape, generator)
        self.rho = spread(rho, (self.weight.numel() + self.bias.numel(),), generator)


class BayesianHeads(Heads):
    """One a task."""

    def __init__(self, features: int, rho: float, generator: Generator) -> None:
        super().__init__(features, generator)
        self.rho = rho

    def add(self, classes: int) -> None:
        self.append(BayesianHead(self.features, classes, self.rho, self.generator))

    def of(self, task: int) -> BayesianHead:
        return cast(BayesianHead, self[task])
