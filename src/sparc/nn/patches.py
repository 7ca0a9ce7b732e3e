"""Features that nobody trains: where a picture looks like the usual patches of the first pictures there were.

Coates, Lee and Ng, "An Analysis of Single-Layer Networks in Unsupervised Feature Learning", 2011. Filters are averages
of many whitened patches that are alike, so no piece of a picture is kept. They are the same for all classes of all
tasks, and classes which were never seen together can be compared in them. On held-out pictures of 60 classes of
CIFAR-100, in 768 features, 51 % are named right by discriminants; 49 % with single patches as filters, 45 % with random
directions, and 4 points less where every second place is left out. The most that the whole of a picture has of a filter
is told beside the means: with 100 and 20 pictures of each of 14 classes 69.4 and 57.2 % are right so, with 144 filters,
68.6 and 56.9 with 96 and the most of each quarter, and 68.8 and 54.8 by the means of 192 alone (four draws).

Shapes: B batch, C channels, N filters, F features.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, adaptive_max_pool2d, conv2d, normalize

from sparc.nn.functions import channels_last
from sparc.nn.patch_numbers import FLAT, PATCHES, ROOT, SIDE, THRESHOLD, PatchKind
from sparc.nn.roll import GRID

ROUNDS = 10
"""In which averages of patches are made."""
MAP_BYTES = 4 << 20
"""The largest map at any time: so many pictures are taken at once."""
DRAWN = 30_000
"""Patches from which the whitening and the filters are computed, at most."""
REGULARIZATION = 0.1
"""Added to the variances that whitening divides by."""


class PatchFeatures(nn.Module):
    """How much of each filter, and of its opposite, a picture has in its quarters, and at the most as its kind says.

    >>> patches = PatchFeatures(channels=1)
    >>> patches.draw(torch.rand(20, 1, 9, 9), Generator().manual_seed(0))
    >>> patches(torch.rand(3, 1, 9, 9)).shape
    torch.Size([3, 1440])
    """

    filters: Tensor
    """[N, C, 6, 6], for patches of mean 0 and variance 1."""
    bias: Tensor
    """[N]"""

    def __init__(self, channels: int, mirror: bool = False, kind: PatchKind = PATCHES) -> None:
        """With `mirror` features are the mean over a picture and its mirror image."""
        super().__init__()
        self.mirror = mirror
        self.kind = kind
        self.register_buffer("filters", torch.zeros(kind.filters, channels, SIDE, SIDE))
        self.register_buffer("bias", torch.zeros(kind.filters))

    @torch.no_grad()
    def draw(self, images: Tensor, generator: Generator) -> None:
        """Make filters from patches at random places of these pictures, normalized, [B, C, H, W]."""
        height, width = (side - SIDE + 1 for side in images.shape[2:])
        count = min(DRAWN, max(len(self.filters), len(images) * height * width))
        pictures, rows, columns = (
            torch.randint(choices, (count, 1), generator=generator) for choices in (len(images), height, width)
        )
        rows, columns = rows + torch.arange(SIDE), columns + torch.arange(SIDE)
        patches = images[pictures[:, :, None], :, rows[:, :, None], columns[:, None, :]]
        patches = patches.movedim(3, 1).flatten(1).double()
        patches = (patches - patches.mean(1, keepdim=True)) / (patches.var(1, keepdim=True) + FLAT).sqrt()
        mean = patches.mean(0)
        values, vectors = torch.linalg.eigh((patches - mean).T @ (patches - mean) / count)
        whitening = vectors * (values.clamp_min(0) + REGULARIZATION).rsqrt() @ vectors.T
        filters = _centroids((patches - mean) @ whitening, len(self.filters)) @ whitening
        self.bias.copy_(-filters @ mean)
        # A patch's own mean is taken off by filters that add up to 0.
        self.filters.copy_((filters - filters.mean(1, keepdim=True)).view_as(self.filters))

    def forward(self, x: Tensor) -> Tensor:
        """[B, F]"""
        at_once = max(1, MAP_BYTES // (x.element_size() * len(self.filters) * x.shape[2] * x.shape[3]))
        found = torch.cat([self._features(piece) for piece in x.split(at_once)])
        if self.mirror:
            found = (found + torch.cat([self._features(piece.flip(3)) for piece in x.split(at_once)])) / 2
        return found

    def _features(self, x: Tensor) -> Tensor:
        # Filters do not see brightness; without it rounding errors are smaller, most of all where a picture is flat.
        x = channels_last(x - x.mean((1, 2, 3), keepdim=True))
        values = self.filters[0].numel()
        mean = torch.full_like(self.filters[:1], 1 / values)
        variance = (conv2d(x.square(), mean) - conv2d(x, mean).square()).clamp_min(0) * (values / (values - 1))
        found = conv2d(x, self.filters) * (variance + FLAT).rsqrt() + self.bias[:, None, None]
        above = [(side - THRESHOLD).relu_() for side in (found, -found)]
        parts = [adaptive_avg_pool2d(side, GRID).flatten(1) for side in above]
        if self.kind.peaks:
            parts += [adaptive_max_pool2d(side, self.kind.peaks).flatten(1) for side in above]
        return (torch.cat(parts, dim=1) + ROOT).sqrt_()


def _centroids(points: Tensor, count: int) -> Tensor:
    """[N, D] directions around which most of the points gather, on either side (Coates and Ng, 2012)."""
    centroids = normalize(points[:count])
    for _ in range(ROUNDS):
        nearness = points @ centroids.T
        nearest = nearness.abs().argmax(1)
        along = nearness.gather(1, nearest[:, None])
        centroids = normalize(centroids.index_add(0, nearest, along * points))
    return centroids
