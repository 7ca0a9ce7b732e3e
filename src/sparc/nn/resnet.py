"""The field's ResNet-18 for small pictures: 3×3 stem of stride 1, no max-pool, one head that grows with the classes.

He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import relu
from torch.nn.utils import skip_init

from sparc.errors import InputError
from sparc.nn.head import Head
from sparc.nn.layout import BLOCKS, layer_filters, suitable_depth


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions around a shortcut, which is a 1×1 convolution where the shape changes."""

    def __init__(self, channels: int, filters: int, stride: int, generator: Generator) -> None:
        super().__init__()
        self.first = nn.Sequential(_conv(channels, filters, 3, stride, generator), nn.BatchNorm2d(filters))
        self.second = nn.Sequential(_conv(filters, filters, 3, 1, generator), nn.BatchNorm2d(filters))
        self.shortcut = nn.Sequential()
        if stride > 1 or channels != filters:
            self.shortcut = nn.Sequential(_conv(channels, filters, 1, 1, generator), nn.BatchNorm2d(filters))
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        # A 1×1 convolution of stride 2 reads every second place only. Handed a channels-last map of fewer than 8
        # channels, oneDNN's own writes beyond its memory (torch 2.13).
        seen = x[:, :, :: self.stride, :: self.stride]
        return relu(self.second(relu(self.first(x))) + self.shortcut(seen))


class ResNet(nn.Module):
    """ResNet-18 at width 1 and depth 4.

    >>> net = ResNet()
    >>> net.add_classes(100)
    >>> sum(parameter.numel() for parameter in net.parameters())
    11220132
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 1.0,
        depth: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        filters = layer_filters(width, suitable_depth(image_size) if depth is None else depth)
        self.generator = generator if generator is not None else torch.Generator().manual_seed(0)
        self.stem = nn.Sequential(_conv(channels, filters[0], 3, 1, self.generator), nn.BatchNorm2d(filters[0]))
        inputs = filters[0]
        blocks = []
        for layer, out in enumerate(filters):
            for block in range(BLOCKS):
                blocks.append(ResidualBlock(inputs, out, 2 if layer > 0 and block == 0 else 1, self.generator))
                inputs = out
        self.blocks = nn.Sequential(*blocks)
        self.head = Head(inputs, 0, self.generator)

    @property
    def classes(self) -> int:
        return self.head.out_features

    @torch.no_grad()
    def add_classes(self, classes: int) -> None:
        """Grow the head; the classes it has keep their weights."""
        if classes < 1:
            raise InputError(f"a task has at least one class, not {classes}")
        known = self.head
        self.head = Head(known.in_features, known.out_features + classes, self.generator).to(known.weight.device)
        self.head.weight[: known.out_features] = known.weight
        self.head.bias[: known.out_features] = known.bias

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.blocks(relu(self.stem(x)))
        return maps.mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits

    def get_extra_state(self) -> Tensor:
        """How many classes the head has grown to, so that its weights can be put back into a net that has not."""
        return torch.tensor(self.classes)

    def set_extra_state(self, state: Tensor) -> None:
        missing = int(state) - self.classes
        assert missing >= 0, "a net that has grown further cannot take on this state"
        if missing:
            self.add_classes(missing)


def _conv(channels: int, filters: int, kernel: int, stride: int, generator: Generator) -> nn.Conv2d:
    conv: nn.Conv2d = skip_init(nn.Conv2d, channels, filters, kernel, stride=stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu", generator=generator)
    return conv
