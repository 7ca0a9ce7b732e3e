"""The nets that a method with one net for all tasks can stand on."""

from typing import Literal

from torch import Generator, Tensor, nn

from sparc.nn.functions import channels_last
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head
from sparc.nn.layout import layout
from sparc.nn.resnet import ResNet
from sparc.nn.separable import SeparableConv
from sparc.nn.sparc import Block

Backbone = Literal["resnet", "separable"]


def new_backbone(
    kind: Backbone,
    channels: int,
    image_size: tuple[int, int],
    width: float,
    depth: int | None,
    generator: Generator,
) -> GrowingNet:
    net = ResNet if kind == "resnet" else SeparableNet
    return net(channels, image_size, width, depth, generator)


class SeparableNet(GrowingNet):
    """SPARC's working memory as one net for all tasks, with no semantic memory beside it.

    At width 2.5 it has as many filters as SPARC has for five tasks, 160-320-640-1280: the net that the paper gives to
    SPARC's rivals, with 7.85 M parameters, their third decimal cut off.

    >>> net = SeparableNet(width=2.5)
    >>> net.add_classes(100)
    >>> sum(parameter.numel() for parameter in net.parameters())
    7855487
    """

    def build(self, channels: int, filters: list[int]) -> None:
        stem, *rest = layout(channels, filters, shared=0)
        self.stem = SeparableConv(stem.channels, stem.own, stem.shared, stem.stride, self.generator)
        self.blocks = nn.ModuleList(
            Block(first, second, self.generator) for first, second in zip(rest[::2], rest[1::2], strict=True)
        )
        self.head = Head(rest[-1].own, 0, self.generator)

    def features(self, x: Tensor) -> Tensor:
        nobody = x.new_empty(0)
        x = self.stem(channels_last(x), nobody).relu_()
        for block in self.blocks:
            x = block(x, (nobody, nobody))
        return x.mean((2, 3))
