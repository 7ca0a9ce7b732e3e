"""The contract of a source: one data set, wherever on the disk or the web it lies."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from sparc.data.imageset import Splits
from sparc.data.progress import Progress, no_progress


class Source(ABC):
    """A data set. A file in this package that defines a subclass with a `name` is a source; nothing else lists it."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def load(self, data: Path | None = None, progress: Progress = no_progress) -> Splits:
        """Find and read the set; `data` is the folder the user named, if any."""

    def present(self, data: Path | None = None) -> bool:
        """Whether it would be read from this machine's disk, as far as can be told without reading all of it."""
        return True

    def fetchable(self) -> bool:
        """Whether it is fetched from the web where it is not present."""
        return True
