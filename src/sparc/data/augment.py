"""Crop, flip and normalize, a whole batch at a time.

Per-sample transforms cost the field ten times as much as one gather a batch.
"""

from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from sparc.data.imageset import ImageSet


class Views(Protocol):
    """How uint8 pictures become what a net takes in: while it learns, and when it is asked."""

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """A random view of each picture, normalized."""

    def normalize(self, images: Tensor) -> Tensor:
        """Each picture as it is, normalized."""


@dataclass(frozen=True)
class Augment:
    """What is done to pictures on their way into a net.

    >>> views = Augment(mean=(0.5,), std=(0.25,), padding=1, flip=True)
    >>> batch = torch.full((2, 1, 8, 8), 255, dtype=torch.uint8)
    >>> views.normalize(batch).unique()
    tensor([2.])
    >>> views(batch, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 1, 8, 8])
    """

    mean: tuple[float, ...]
    """Mean of each channel, on a scale where white is 1."""
    std: tuple[float, ...]
    padding: int = 0
    """Black pixels on every side before a random crop of the old size."""
    flip: bool = False
    """Mirror a picture, left to right, half of the time."""

    @classmethod
    def fitted(cls, images: ImageSet, padding: int = 0, flip: bool = False) -> Self:
        """The augmentation that normalizes by these pictures' own mean and deviation."""
        per_channel = images.images.movedim(1, 0).flatten(1)
        # Counts of the 256 values are exact and need no float copy of the pictures.
        counts = torch.stack([torch.bincount(channel, minlength=256) for channel in per_channel]).double()
        values = torch.arange(256, dtype=torch.float64) / 255
        mean = (counts * values).sum(1) / counts.sum(1)
        std = ((counts * values.square()).sum(1) / counts.sum(1) - mean.square()).clamp_min(0).sqrt()
        std[std == 0] = 1
        return cls(tuple(mean.tolist()), tuple(std.tolist()), padding, flip)

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """A random view of each uint8 picture, normalized."""
        count, _, height, width = images.shape
        if self.padding:
            offsets = torch.randint(2 * self.padding + 1, (2, count), generator=generator)
            windows = pad(images, (self.padding,) * 4).unfold(2, height, 1).unfold(3, width, 1)
            images = windows[torch.arange(count), :, offsets[0], offsets[1]]
        if self.flip:
            mirrored = torch.rand(count, generator=generator) < 0.5
            images = torch.where(mirrored.to(images.device)[:, None, None, None], images.flip(3), images)
        return self.normalize(images)

    def normalize(self, images: Tensor) -> Tensor:
        """uint8 to float, each channel with mean 0 and deviation 1 over the data set."""
        shift = torch.tensor(self.mean, device=images.device)[:, None, None].mul(255)
        scale = torch.tensor(self.std, device=images.device)[:, None, None].mul(255).reciprocal()
        return images.float().sub_(shift).mul_(scale)
