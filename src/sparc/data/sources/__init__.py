"""The data sets: one file each, found by its being here."""

from sparc.data.progress import Progress
from sparc.data.sources.folder import Folder
from sparc.data.sources.source import Source
from sparc.discovery import Registry

_registry: Registry[Source] = Registry(__name__, Source, "data set")  # type: ignore[type-abstract]


def names() -> list[str]:
    """What `find` knows; a folder of one's own pictures is a `Folder`.

    >>> "digits" in names()
    True
    """
    return list(_registry.classes)


def find(name: str) -> Source:
    return _registry.find(name)()


__all__ = ["Folder", "Progress", "Source", "find", "names"]
