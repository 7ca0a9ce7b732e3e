"""Numbers of the features of patches, which the net and the graph that answers without torch share."""

from typing import NamedTuple

from sparc.nn.described import Shrinkage
from sparc.nn.roll import GRID

SIDE = 6
"""Pixels of a patch each way."""
PATCH_SHRINKAGE = Shrinkage(half_at=6.0)
"""These features' covariance is less in need of being made up than that of trained ones."""
FLAT = 0.03
"""Added to the variance of a patch, so that noise in flat ones does not count as much as a structure."""
THRESHOLD = 0.25
"""What a filter answers below this is nothing."""
ROOT = 0.01
"""Added before the square root, which is too steep at 0."""


class PatchKind(NamedTuple):
    """What is told of a picture: how much each of its quarters has of each filter, and of its opposite, in the mean."""

    filters: int
    peaks: int
    """The most that there is of each is told as well, in so many cells each way: 1 is the whole picture, 2 are its
    quarters, and 0 nothing."""

    @property
    def features(self) -> int:
        """Of a picture."""
        return 2 * self.filters * (GRID**2 + self.peaks**2)


PATCHES = PatchKind(filters=144, peaks=1)
"""Of new models. With 192 filters half a point more of CIFAR-100's pictures are right by as many features, in a third
more time."""
