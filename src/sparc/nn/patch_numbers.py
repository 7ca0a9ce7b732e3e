"""Numbers of the features of patches, which the net and the graph that answers without torch share."""

from sparc.nn.described import Shrinkage
from sparc.nn.roll import GRID

SIDE = 6
"""Pixels of a patch each way."""
FEATURES = 1536
"""Of a picture."""
PATCH_SHRINKAGE = Shrinkage(half_at=6.0)
"""These features' covariance is less in need of being made up than that of trained ones."""
FLAT = 0.03
"""Added to the variance of a patch, so that noise in flat ones does not count as much as a structure."""
THRESHOLD = 0.25
"""What a filter answers below this is nothing."""
ROOT = 0.01
"""Added before the square root, which is too steep at 0."""


def filter_count(peaks: bool) -> int:
    """How many there are: each of a picture's quarters has of each, and of its opposite, a mean, and with `peaks` a
    peak as well.
    """
    return FEATURES // GRID**2 // (4 if peaks else 2)
