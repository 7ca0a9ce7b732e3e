"""A copy of a net that follows it as a moving average, now and then: what it has learned it keeps for longer.

As in CLS-ER, OCDNet, TAMiL and TriRE, whether the copy moves after a step is left to a coin. Only parameters follow.
Batch norm's running statistics are the copy's own, so it has to be run in training mode before it can answer.
"""

import torch
from torch import Generator, Tensor, nn

from sparc.nn.growing import GrowingNet


class MovingAverage(nn.Module):
    """
    >>> from sparc.nn import ResNet
    >>> net, copy = ResNet(width=1 / 8), ResNet(width=1 / 8)
    >>> average = MovingAverage(copy, net, rate=1.0, alpha=0.999)
    >>> average.follow(net, Generator())
    >>> int(average.steps), average.keep
    (1, 0.5)
    """

    steps: Tensor
    """Of the whole run."""

    def __init__(self, copy: GrowingNet, net: GrowingNet, rate: float, alpha: float) -> None:
        """Make `copy`, a net of the same shape, the average of `net`, from where that is now.

        It moves after a share of `rate` of the steps, and keeps at most `alpha` of what it was.
        """
        super().__init__()
        copy.become(net)
        self.net = copy.as_copy(stays_eval=False)
        self.rate = rate
        self.alpha = alpha
        self.register_buffer("steps", torch.tensor(0))

    @property
    def keep(self) -> float:
        """How much of itself it keeps where it moves: little at first, when there is little to keep."""
        return min(1 - 1 / (int(self.steps) + 1), self.alpha)

    def grow(self, net: GrowingNet) -> None:
        """Take on the classes that the net has more; call it when a task begins."""
        self.net.follow(net, keep=1.0)

    def follow(self, net: GrowingNet, generator: Generator) -> None:
        """Perhaps move; call it after every step."""
        self.steps += 1
        if torch.rand((), generator=generator) < self.rate:
            self.net.follow(net, self.keep)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits
