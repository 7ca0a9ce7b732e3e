"""A plain convolutional net: no batch norm, no shortcut, so that what a unit says follows from the units it reads.

Two layers of two 3×3 convolutions, each layer halving the map, and a hidden layer: 64-64, 128-128, 1024 at width 1, as
in NISPA and its comparison with CLNP.
"""

import math
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import max_pool2d, relu
from torch.nn.utils import skip_init

from sparc.nn.functions import channels_last
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head

LAYERS = 2
"""Of two convolutions each."""


class PlainConv(GrowingNet):
    """
    >>> net = PlainConv()
    >>> net.add_classes(100)
    >>> sum(parameter.numel() for parameter in net.parameters())
    8752292
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(channels, image_size, width, LAYERS, generator)
        self.pixels = math.prod(side // 2**LAYERS for side in image_size)
        """Of the last map."""
        filters = self.convolution(-1).out_channels
        self.hidden = skip_init(nn.Linear, filters * self.pixels, 8 * filters)
        self.head = Head(8 * filters, 0, self.generator)
        for layer in self.layers:
            start(layer, self.generator)

    def build(self, channels: int, filters: list[int]) -> None:
        outputs = [out for out in filters for _ in range(2)]
        # Torch's own start would draw from the global generator.
        self.convolutions = nn.ModuleList(
            skip_init(nn.Conv2d, before, after, 3, padding=1) for before, after in pairwise([channels, *outputs])
        )

    def convolution(self, number: int) -> nn.Conv2d:
        found = self.convolutions[number]
        assert isinstance(found, nn.Conv2d)
        return found

    @property
    def layers(self) -> list[nn.Conv2d | nn.Linear]:
        """All that have units, the head not among them."""
        return [*map(self.convolution, range(len(self.convolutions))), self.hidden]

    def features(self, x: Tensor, activations: list[Tensor] | None = None) -> Tensor:
        """What the head sees: the hidden layer; all layers' activations are put into `activations` on the way."""
        found = [] if activations is None else activations
        x = channels_last(x)
        for number in range(len(self.convolutions)):
            x = relu(self.convolution(number)(x))
            x = max_pool2d(x, 2) if number % 2 else x
            found.append(x)
        found.append(relu(self.hidden(x.flatten(1))))
        return found[-1]


@torch.no_grad()
def start(layer: nn.Conv2d | nn.Linear, generator: Generator) -> None:
    weight, bias = layer.parameters()
    weight.copy_(first_weights(weight, generator))
    nn.init.zeros_(bias)


def first_weights(like: Tensor, generator: Generator) -> Tensor:
    """What a layer's weights start from: normal, of a size that keeps what comes through a ReLU as large as it was."""
    drawn = torch.empty(like.shape, device=generator.device)
    return nn.init.kaiming_normal_(drawn, generator=generator).to(like.device)
