"""How wide and how deep: the arithmetic that all nets share."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparc.errors import InputError
from sparc.nn.roll import GRID

MAX_DEPTH = 8
MAX_FILTERS = 1 << 13
"""Of a layer; sixteen times ResNet-18's widest."""
BLOCKS = 2
"""Residual blocks a layer, as in ResNet-18."""


@dataclass(frozen=True)
class Unit:
    """One separable convolution of the layout: what goes in, what comes out, and who owns how much of it."""

    channels: int
    own: int
    shared: int
    stride: int


@dataclass(frozen=True)
class ParameterCounts:
    """Who owns how many parameters."""

    tasks: tuple[int, ...]
    """Of each working memory, its head left out."""
    heads: tuple[int, ...]
    """Of each task's head."""
    semantic: int

    @property
    def total(self) -> int:
        return sum(self.tasks) + sum(self.heads) + self.semantic


def layer_filters(width: float, depth: int) -> list[int]:
    """Filters of each layer: 64 at width 1, doubled from layer to layer.

    >>> layer_filters(0.5, 4)
    [32, 64, 128, 256]
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError(f"--depth {depth} gives no net: it must lie between 1 and {MAX_DEPTH}")
    if not width * 64 >= 1:
        raise InputError(f"--width {width:g} gives no filters: it must be at least 1/64")
    if 64 * width * 2 ** (depth - 1) > MAX_FILTERS:
        raise InputError(f"--width {width:g} gives layers of more than {MAX_FILTERS:,} filters: lower it")
    return [int(64 * width) * 2**layer for layer in range(depth)]


def suitable_depth(image_size: tuple[int, int]) -> int:
    """As many layers as leave a 4 × 4 map, at most ResNet-18's four.

    >>> [suitable_depth((side, side)) for side in (8, 16, 32, 64, 84)]
    [2, 3, 4, 4, 4]
    """
    depth = 1
    while depth < 4 and min(image_size) >> depth >= 4:
        depth += 1
    return depth


def layout(channels: int, filters: list[int], shared: float) -> list[Unit]:
    """The separable convolutions of one working memory: the stem, then two a block.

    >>> [(unit.channels, unit.own, unit.shared) for unit in layout(3, [16], 0.5)][:2]
    [(3, 8, 8), (16, 8, 8)]
    """
    if not 0 <= shared < 1:
        raise InputError(f"--shared {shared:g} is not a share of the filters: it must be at least 0 and below 1")

    def unit(channels: int, out: int, stride: int) -> Unit:
        common = round(out * shared)
        if common == out or (common == 0 and shared > 0):
            raise InputError(f"--shared {shared:g} cannot divide {out} filters between two owners: raise --width")
        return Unit(channels, out - common, common, stride)

    units = [unit(channels, filters[0], 1)]
    for layer, out in enumerate(filters):
        for block in range(BLOCKS):
            shrinks = layer > 0 and block == 0
            units.append(unit(out // 2 if shrinks else out, out, 2 if shrinks else 1))
            units.append(unit(out, out, 1))
    return units


def pooled_features(units: Sequence[Unit]) -> int:
    """P: how many features a working memory of this layout has, once they are pooled."""
    filters = [unit.own + unit.shared for unit in units[2 * BLOCKS :: 2 * BLOCKS]]
    return filters[-1] + sum(GRID**2 * count for count in filters[-2:-1])
