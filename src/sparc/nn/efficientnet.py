"""EfficientNet-Lite0, which has seen ImageNet: a frozen net from pictures of any size to features.

`lite0.py` says what it is made of. Batch norms are folded into the convolutions, which saves between a fifth and a
third of the time.

Shapes: B batch, C input and N output channels, H × W the map.
"""

import copy
from collections.abc import Mapping
from functools import cache
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import conv2d

from sparc.nn.functions import channels_last
from sparc.nn.lite0 import DEVIATION, FEATURES, MEAN, STAGES, STEM, Block, blocks, folded
from sparc.nn.lite0_weights import lite0_weights
from sparc.nn.pretrained import Pretrained

MAP_BYTES = 16 << 20
"""The largest map at any time: so many pictures are taken at once, 10 of 128 × 128 or 3 of 224 × 224.

On one thread of a shared EPYC, 32 pictures taken by 1, 2, 4, 8, 16 and 32 at once cost 12.1, 9.3, 8.3, 7.7, 7.0 and
8.3 ms each at 128 × 128, and 23, 22, 21, 23, 27 and 30 ms at 224 × 224.
"""


ALONE = 128
"""Pixels from which a picture has the same features, to the bit, by itself and among others; seen from 96 on."""


class SameConv(nn.Module):
    """A convolution that has taken in its batch norm; the map keeps its size but for the stride."""

    def __init__(self, channels: int, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        shape = (filters, channels // groups, kernel, kernel)
        self.weight = nn.Parameter(torch.empty(shape, memory_format=torch.channels_last))
        self.bias = nn.Parameter(torch.empty(filters))
        self.stride = stride
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        # With stride 2, TensorFlow begins a pixel later on an even side than torch does. A pixel more of zeros and an
        # output less at the start is the same, and no copy of the whole map.
        late = [int(self.stride == 2 and size % 2 == 0) for size in x.shape[2:]]
        padding = [self.weight.shape[2] // 2 + each for each in late]
        out = conv2d(x, self.weight, self.bias, self.stride, padding, groups=self.groups)
        return out[:, :, late[0] :, late[1] :]


class InvertedResidual(nn.Module):
    """Wider by a point-wise convolution, a depth-wise one, and narrow again; the input is added where it has the shape.

    Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018.
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        inner = block.channels * block.wider
        self.expand = SameConv(block.channels, inner) if block.wider > 1 else None
        self.depthwise = SameConv(inner, inner, block.kernel, block.stride, groups=inner)
        self.project = SameConv(inner, block.filters)
        self.adds_input = block.adds_input

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.expand is None else self.expand(x).clamp_(0, 6)
        out: Tensor = self.project(self.depthwise(wide).clamp_(0, 6))
        return out.add_(x) if self.adds_input else out


class EfficientNetLite0(nn.Module):
    """From pictures, [B, 3, H, W] with pixels from 0 to 255, to features [B, 1280]; it takes no gradient."""

    def __init__(self) -> None:
        """With weights that mean nothing yet: `of` has those that do."""
        super().__init__()
        self.stem = SameConv(3, STEM, kernel=3, stride=2)
        self.blocks = nn.Sequential(*(InvertedResidual(block) for block in blocks()))
        self.head = SameConv(STAGES[-1][-1], FEATURES)
        self.requires_grad_(False).eval()

    @classmethod
    def of(cls, weights: Mapping[str, NDArray[np.float32]]) -> Self:
        """With weights by the names they have in `lite0_weights`, batch norms apart."""
        net = cls()
        net.load_state_dict({name: torch.from_numpy(value) for name, value in folded(weights).items()})
        return net

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        _, _, height, width = images.shape
        # Of the second block, within: six times its 16 channels, at half the side.
        largest = 4 * 96 * -(-height // 2) * -(-width // 2)
        return torch.cat([self._piece(piece) for piece in images.split(max(1, MAP_BYTES // largest))])

    def _piece(self, images: Tensor) -> Tensor:
        """A small picture alone is taken twice: small maps of one picture are multiplied by another kernel, and the
        last bits of its features should not depend on which others it came with.
        """
        if len(images) == 1 and min(images.shape[2:]) < ALONE:
            return self._features(images.repeat(2, 1, 1, 1))[:1]
        return self._features(images)

    def _features(self, images: Tensor) -> Tensor:
        x = channels_last((images.to(self.stem.weight.dtype) - MEAN) / DEVIATION)
        x = self.blocks(self.stem(x).clamp_(0, 6))
        features: Tensor = self.head(x).clamp_(0, 6).mean((2, 3))
        return features


def pretrained_lite0() -> Pretrained:
    """The net as its authors have trained it on ImageNet, from pictures to 1280 features."""
    return Pretrained(copy.deepcopy(_lite0()))


@cache  # to read and check the weights takes as long as ten pictures
def _lite0() -> EfficientNetLite0:
    return EfficientNetLite0.of(lite0_weights())
