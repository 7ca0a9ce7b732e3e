"""A start that has seen the world: features of a net that others have trained, for pictures of any size."""

from typing import Literal, Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from sparc.nn.efficientnet import FEATURES, pretrained_lite0
from sparc.nn.pretrained import Pretrained

Start = Literal["nothing", "lite0"]
SIDE = 224
"""Pixels that pictures are brought to, which is what the net was trained with. On CIFAR-100 with 20 pictures a class,
54.9, 58.2 and 61.1 % of held-out pictures are right at 128, 160 and 224, for 8, 14 and 25 ms a picture."""
ROOT = 0.003
"""Added before the square root, which is too steep at 0."""


class StartFeatures(Pretrained):
    """From pictures with pixels from 0 to 255 to square roots of the features of EfficientNet-Lite0.

    Roots bring the features, which are never negative, nearer to being Gaussian: a point or two for discriminants.
    """

    def __init__(self, trunk: Pretrained, side: int = SIDE) -> None:
        super().__init__(trunk.net)
        self.side = side
        self.features = FEATURES

    @classmethod
    def named(cls, start: Start, side: int = SIDE) -> Self | None:
        return None if start == "nothing" else cls(pretrained_lite0(), side)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """[B, 1280]"""
        if x.shape[2:] != (self.side, self.side):
            x = interpolate(x, (self.side, self.side), mode="bicubic", align_corners=False).clamp_(0, 255)
        found: Tensor = self.net(x)
        return found.add(ROOT).sqrt_()
