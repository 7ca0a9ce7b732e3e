"""What is learned from: pictures in memory, cut into a stream of tasks."""

from typing import TYPE_CHECKING

from sparc.lazy import lazily

if TYPE_CHECKING:
    from sparc.data.augment import Augment
    from sparc.data.imageset import ImageSet, Splits
    from sparc.data.sources import find as find_source
    from sparc.data.stream import Stream, Task

__all__ = ["Augment", "ImageSet", "Splits", "Stream", "Task", "find_source"]

__getattr__ = lazily(
    __name__,
    {
        "Augment": "augment",
        "ImageSet": "imageset",
        "Splits": "imageset",
        "Stream": "stream",
        "Task": "stream",
        "find_source": "sources:find",
    },
)
