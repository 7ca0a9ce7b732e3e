"""A start that has seen the world: features of a net that others have trained, for pictures of any size."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from sparc.nn import feature_cache
from sparc.nn.batched import CHUNK
from sparc.nn.efficientnet import pretrained_lite0
from sparc.nn.lite0 import FEATURES
from sparc.nn.pretrained import Pretrained
from sparc.nn.start_numbers import ROOT, SIDE, Start


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
    def look(self, images: Tensor, cache: bool) -> Tensor:
        """[N, 1280] of uint8 pictures; with a `cache`, those of pictures that were seen lately are not found anew."""
        if not len(images):
            return torch.empty(0, self.features)
        chunks = images.contiguous().split(CHUNK)
        return torch.cat([self._recalled(chunk) if cache else self(chunk) for chunk in chunks])

    def _recalled(self, images: Tensor) -> Tensor:
        keys = [self._key(image) for image in images]

        def compute(new: list[int]) -> NDArray[np.float32]:
            found: Tensor = self(images[new])
            return found.numpy()

        return torch.from_numpy(feature_cache.recalled(keys, self.features, compute))

    def _key(self, image: Tensor) -> bytes:
        """By the pixels, and by all that the last bits of features depend on."""
        machine = torch.__version__, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()
        digest = hashlib.sha256(repr((self.side, tuple(image.shape), *machine)).encode() + self._weights)
        digest.update(image.numpy().tobytes())
        return digest.digest()

    @cached_property
    def _weights(self) -> bytes:
        return self.digest()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.__dict__.pop("_weights", None)
        return super()._apply(fn, recurse)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """[B, 1280] of pictures; features that were found before are handed on."""
        if x.ndim == 2:
            return x
        if x.shape[2:] != (self.side, self.side):
            x = interpolate(x.float(), (self.side, self.side), mode="bicubic", align_corners=False).clamp_(0, 255)
        found: Tensor = self.net(x)
        return found.add(ROOT).sqrt_()
