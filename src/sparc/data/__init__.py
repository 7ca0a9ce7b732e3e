"""What is learned from: pictures in memory, cut into a stream of tasks."""

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.sources import find as find_source
from sparc.data.stream import Stream, Task

__all__ = ["Augment", "ImageSet", "Splits", "Stream", "Task", "find_source"]
