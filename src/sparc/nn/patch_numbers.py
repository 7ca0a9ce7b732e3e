"""Numbers of the features of patches, which the net and the graph that answers without torch share."""

from sparc.nn.roll import GRID

SIDE = 6
"""Pixels of a patch each way."""
FILTERS = 192
FEATURES = 2 * FILTERS * GRID**2
HALF_AT = 6.0
"""Of `ClassGaussians`: these features' covariance is less in need of being made up than that of trained ones."""
FLAT = 0.03
"""Added to the variance of a patch, so that noise in flat ones does not count as much as a structure."""
THRESHOLD = 0.25
"""What a filter answers below this is nothing."""
ROOT = 0.01
"""Added before the square root, which is too steep at 0."""
