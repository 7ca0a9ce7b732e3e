"""How wide and how deep: the arithmetic that both nets share."""

from sparc.errors import InputError

MAX_DEPTH = 8
MAX_FILTERS = 1 << 13
"""Of a layer; sixteen times ResNet-18's widest."""
BLOCKS = 2
"""Residual blocks a layer, as in ResNet-18."""


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
