"""A ResNet in which only the channels with the largest activations speak: k winners take all.

As in SCoMMER (Sarfraz, Arani and Zonooz, "Sparse Coding in a Dual Memory System for Lifelong Learning", AAAI 2023) and
TriRE (Vijayan et al., NeurIPS 2023). Each layer counts how often which of its channels win. While a new task begins,
those that won most in earlier tasks can be dropped most often, so that it finds others: heterogeneous dropout.

Shapes: B batch, C channels, H × W the map.
"""

from typing import cast

import torch
from torch import Generator, Tensor, nn

from sparc.nn.layout import BLOCKS
from sparc.nn.resnet import ResidualBlock, ResNet

SHARE = 0.9
"""Of the channels that win, unless it is said otherwise."""


class KWinners(nn.Module):
    """Of each picture's channels, those whose largest activation is among the largest stay; the others are 0.

    It comes before or after a ReLU: a channel that is nowhere above 0 does not win.

    >>> layer = KWinners(3, share=0.5, generator=Generator())
    >>> layer(torch.tensor([0.1, 0.5, 0.2]).view(1, 3, 1, 1)).flatten()
    tensor([0.0000, 0.5000, 0.0000])
    """

    counts: Tensor
    """[C], how often each channel has won in the task at hand."""
    earlier: Tensor
    """[C], the same in all tasks before."""

    def __init__(self, channels: int, share: float, generator: Generator) -> None:
        super().__init__()
        self.share = share
        self.generator = generator
        self.counting = False
        self.drop = 0.0
        """The channel that earlier tasks have used most is kept with a probability of exp(−drop)."""
        self.register_buffer("counts", torch.zeros(channels, dtype=torch.int64))
        self.register_buffer("earlier", torch.zeros(channels, dtype=torch.int64))

    def forward(self, x_BCHW: Tensor) -> Tensor:  # noqa: N803
        largest = x_BCHW.detach().amax((2, 3))  # [B, C]
        if self.drop and self.earlier.any():
            chance = torch.rand(largest.shape, generator=self.generator).to(largest.device)
            largest = largest.masked_fill(chance >= self.kept(), -torch.inf)
        winners = largest.topk(count_of(self.share, largest.shape[1]), dim=1).indices
        won = torch.zeros_like(largest, dtype=torch.bool).scatter(1, winners, True) & (largest > 0)
        if self.counting:
            self.counts += won.sum(0)
        return x_BCHW * won[:, :, None, None]

    def kept(self) -> Tensor:
        """[C]: with which probability each channel is not dropped."""
        return (-self.drop * self.earlier / self.earlier.max().clamp_min(1)).exp()

    def most_active(self, share: float) -> Tensor:
        """[C]: where those channels are that have won most in the task at hand, as many as make up this share."""
        chosen = torch.zeros_like(self.counts, dtype=torch.bool)
        chosen[self.counts.argsort(descending=True, stable=True)[: count_of(share, len(chosen))]] = True
        return chosen

    def end_task(self) -> None:
        """Count anew; what was counted is an earlier task's."""
        self.earlier += self.counts
        self.counts.zero_()


def count_of(share: float, channels: int) -> int:
    return max(1, int(share * channels))


class KWinnerBlock(ResidualBlock):
    """A residual block that goes on with k winners after its first convolution, and after the shortcut is added."""

    def __init__(self, block: ResidualBlock, generator: Generator) -> None:
        nn.Module.__init__(self)
        filters = cast(nn.BatchNorm2d, block.second[1]).num_features
        self.first, self.second, self.shortcut, self.stride = block.first, block.second, block.shortcut, block.stride
        self.first.append(KWinners(filters, SHARE, generator))
        self.outer = KWinners(filters, SHARE, generator)

    @property
    def inner(self) -> KWinners:
        return cast(KWinners, self.first[2])

    def before_relu(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(super().before_relu(x))
        return out


class KWinnerNet(ResNet):
    """
    >>> net = KWinnerNet(width=1 / 8)
    >>> len(net.layers()), len(net.contested())  # of layers 2 to 4, a convolution's weight and its norm's two
    (16, 36)
    """

    def build(self, channels: int, filters: list[int]) -> None:
        super().build(channels, filters)
        blocks = [KWinnerBlock(cast(ResidualBlock, block), self.generator) for block in self.blocks]
        self.blocks = nn.Sequential(*blocks)

    def layers(self) -> list[KWinners]:
        return [module for module in self.modules() if isinstance(module, KWinners)]

    def contested(self) -> list[tuple[nn.Parameter, KWinners]]:
        """Parameters that tasks share out among them, each with a row a filter, and who decides which of those win.

        They are those of all layers but the first; stem, shortcuts and head are everybody's.
        """
        return [
            (parameter, winners)
            for block in cast(list[KWinnerBlock], list(self.blocks))[BLOCKS:]
            for convolution, winners in ((block.first, block.inner), (block.second, block.outer))
            for parameter in convolution.parameters()
        ]

    def first_sight(self, x: Tensor, drop: float = 0.0) -> Tensor:
        """Logits of pictures of the task at hand: winners are counted, and the last layer drops what others have won.

        As in SCoMMER that layer alone: what comes before it is of use to all tasks.
        """
        layers = self.layers()
        for layer in layers:
            layer.counting = True
        for layer in layers[-2 * BLOCKS :]:
            layer.drop = drop
        try:
            logits: Tensor = self(x)
            return logits
        finally:
            for layer in layers:
                layer.counting, layer.drop = False, 0.0

    def end_task(self) -> None:
        for layer in self.layers():
            layer.end_task()
