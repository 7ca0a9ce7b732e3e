"""The field's ResNet-18 for small pictures: 3×3 stem of stride 1, no max-pool, one head that grows with the classes.

He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.
"""

import math

from torch import Generator, Tensor, nn
from torch.nn.functional import relu

from sparc.nn.functions import channels_last
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head
from sparc.nn.layout import BLOCKS


class Conv(nn.Conv2d):
    """A square convolution that keeps the map's size but for its stride, initialised from a generator of our own."""

    def __init__(self, channels: int, filters: int, kernel: int, stride: int, generator: Generator) -> None:
        super().__init__(channels, filters, kernel, stride, padding=kernel // 2, bias=False)
        # torch's own, which the rivals' learning rates were found with.
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5), generator=generator)

    def reset_parameters(self) -> None:
        """Nothing: `nn.Conv2d` would draw from, and so move, the global generator here."""


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions around a shortcut, which is a 1×1 convolution where the shape changes."""

    def __init__(self, channels: int, filters: int, stride: int, generator: Generator) -> None:
        super().__init__()
        self.first = nn.Sequential(Conv(channels, filters, 3, stride, generator), nn.BatchNorm2d(filters))
        self.second = nn.Sequential(Conv(filters, filters, 3, 1, generator), nn.BatchNorm2d(filters))
        self.shortcut = nn.Sequential()
        if stride > 1 or channels != filters:
            self.shortcut = nn.Sequential(Conv(channels, filters, 1, 1, generator), nn.BatchNorm2d(filters))
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.before_relu(x))

    def before_relu(self, x: Tensor) -> Tensor:
        # A 1×1 convolution of stride 2 reads every second pixel only. Handed a channels-last map of fewer than 8
        # channels, oneDNN's own writes beyond its memory (torch 2.13).
        seen = x[:, :, :: self.stride, :: self.stride]
        out: Tensor = self.second(relu(self.first(x))) + self.shortcut(seen)
        return out


class ResNet(GrowingNet):
    """ResNet-18 at width 1 and depth 4.

    >>> net = ResNet()
    >>> net.add_classes(100)
    >>> sum(parameter.numel() for parameter in net.parameters())
    11220132
    """

    def build(self, channels: int, filters: list[int]) -> None:
        self.stem = nn.Sequential(Conv(channels, filters[0], 3, 1, self.generator), nn.BatchNorm2d(filters[0]))
        inputs = filters[0]
        blocks: list[ResidualBlock] = []
        for layer, out in enumerate(filters):
            blocks += residual_layer(inputs, out, 2 if layer > 0 else 1, self.generator)
            inputs = out
        self.blocks = nn.Sequential(*blocks)
        self.head = Head(inputs, 0, self.generator)

    def features(self, x: Tensor, maps: list[Tensor] | None = None) -> Tensor:
        """What the head sees: the last map, averaged over its pixels; `layer_maps` are put into `maps` on the way."""
        # A quarter faster to answer so, and no slower to learn.
        x = self.stem(channels_last(x))
        for number, block in enumerate(self.blocks):
            assert isinstance(block, ResidualBlock)
            if maps is not None and number % BLOCKS == 0:
                maps.append(x)
            x = block.before_relu(relu(x))
        if maps is not None:
            maps.append(x)
        return relu(x).mean((2, 3))

    def layer_maps(self, x: Tensor) -> list[Tensor]:
        """The maps that the stem and each layer end with, all of them before their last ReLU."""
        maps: list[Tensor] = []
        self.features(x, maps)
        return maps


def residual_layer(channels: int, filters: int, stride: int, generator: Generator) -> list[ResidualBlock]:
    """Blocks of as many filters each, of which the first one may shrink the map."""
    first = ResidualBlock(channels, filters, stride, generator)
    return [first, *(ResidualBlock(filters, filters, 1, generator) for _ in range(BLOCKS - 1))]
