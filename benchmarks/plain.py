"""One working memory written the usual way: modules, NCHW, a convolution for each owner's filters.

What the fast path is measured against, and what it must agree with but for rounding.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from sparc.nn.layout import BLOCKS, Unit
from sparc.nn.sparc import SparcNet


class PlainSeparable(nn.Module):
    def __init__(self, unit: Unit) -> None:
        super().__init__()
        channels = unit.channels
        self.depthwise = nn.Conv2d(channels, channels, 3, unit.stride, padding=1, groups=channels, bias=False)
        self.own = nn.Conv2d(channels, unit.own, 1, bias=False)
        self.semantic = nn.Conv2d(channels, unit.shared, 1, bias=False) if unit.shared else None
        self.norm = nn.BatchNorm2d(unit.own + unit.shared)

    def forward(self, x: Tensor) -> Tensor:
        x = self.depthwise(x)
        parts = [self.own(x)] if self.semantic is None else [self.own(x), self.semantic(x)]
        out: Tensor = self.norm(torch.cat(parts, dim=1))
        return out


class PlainBlock(nn.Module):
    def __init__(self, first: Unit, second: Unit) -> None:
        super().__init__()
        self.first = PlainSeparable(first)
        self.second = PlainSeparable(second)
        self.shortcut: nn.Module = nn.Identity()
        if first.stride > 1:
            channels = first.channels
            self.shortcut = nn.Conv2d(channels, 2 * channels, 1, stride=2, groups=channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.second(relu(self.first(x))) + self.shortcut(x))


class PlainMemory(nn.Module):
    def __init__(self, units: list[Unit], classes: int) -> None:
        super().__init__()
        stem, *rest = units
        self.stem = PlainSeparable(stem)
        self.blocks = nn.Sequential(
            *(PlainBlock(first, second) for first, second in zip(rest[::BLOCKS], rest[1::BLOCKS], strict=True))
        )
        self.head = nn.Linear(units[-1].own + units[-1].shared, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(relu(self.stem(x)))
        out: Tensor = self.head(x.mean((2, 3)))
        return out

    def separable(self) -> list[PlainSeparable]:
        return [module for module in self.modules() if isinstance(module, PlainSeparable)]


def plain_copy(net: SparcNet, task: int) -> PlainMemory:
    """With the weights of one of the net's working memories; what does not learn there does not learn here."""
    memory = net.memories()[task]
    copy = PlainMemory(net.units, memory.head.out_features).to(memory.head.weight)
    pairs = [(copy.head.weight, memory.head.weight), (copy.head.bias, memory.head.bias)]
    for mine, yours, semantic in zip(copy.separable(), memory.separable(), net.semantic.filters, strict=True):
        pairs += [(mine.depthwise.weight, yours.depthwise), (mine.own.weight, yours.pointwise)]
        pairs += zip(mine.norm.parameters(), yours.norm.parameters(), strict=True)
        if mine.semantic is not None:
            pairs.append((mine.semantic.weight, semantic))
    for block, original in zip(copy.blocks, memory.blocks, strict=True):
        pairs += zip(block.shortcut.parameters(), original.shortcut.parameters(), strict=True)
    with torch.no_grad():
        for parameter, value in pairs:
            parameter.copy_(value)
            parameter.requires_grad_(value.requires_grad)
    return copy
