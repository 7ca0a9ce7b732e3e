"""EfficientNet-Lite0 on paper: its blocks, and its weights with batch norms folded into them, in numpy.

Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019; the Lite form of 2020
has ReLU6 everywhere and no squeeze-and-excitation. Weights, padding and normalization are its authors'.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEM = 32
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""Blocks, kernel, stride of the first block, how many times wider within a block, filters."""
FEATURES = 1280
MEAN, DEVIATION = 127.0, 128.0
"""Of pixels from 0 to 255, in all three channels."""
EPSILON = 1e-3
"""Of the batch norms."""


class Block(NamedTuple):
    """Wider by a point-wise convolution, a depth-wise one, and narrow again."""

    channels: int
    filters: int
    kernel: int
    stride: int
    wider: int

    @property
    def adds_input(self) -> bool:
        """Where it has the shape of the output."""
        return self.stride == 1 and self.channels == self.filters


def blocks() -> Iterator[Block]:
    channels = STEM
    for count, kernel, first_stride, wider, filters in STAGES:
        for stride in (first_stride, *[1] * (count - 1)):
            yield Block(channels, filters, kernel, stride, wider)
            channels = filters


def folded(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Weight and bias of every convolution, from weights by the names they have in `lite0_weights`."""
    found = _folded("_conv_stem", "_bn0", weights, "stem") | _folded("_conv_head", "_bn1", weights, "head")
    for number, block in enumerate(blocks()):
        for name, norm in (("expand", "_bn0"), ("depthwise", "_bn1"), ("project", "_bn2")):
            if name != "expand" or block.wider > 1:
                theirs = f"_blocks.{number}."
                found |= _folded(f"{theirs}_{name}_conv", theirs + norm, weights, f"blocks.{number}.{name}")
    return found


def _folded(
    conv: str, norm: str, weights: Mapping[str, NDArray[np.float32]], name: str
) -> dict[str, NDArray[np.float32]]:
    """Batch norm of given statistics is a scale and a shift; in double precision, so that nothing is lost to it."""
    mean, variance, scale, shift = (
        weights[f"{norm}.{each}"].astype(np.float64) for each in ("running_mean", "running_var", "weight", "bias")
    )
    scale = scale / np.sqrt(variance + EPSILON)
    return {
        f"{name}.weight": (weights[f"{conv}.weight"] * scale[:, None, None, None]).astype(np.float32),
        f"{name}.bias": (shift - mean * scale).astype(np.float32),
    }
