"""Pictures in memory as a folder of class folders, so that they are learned and tested as such a folder is."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sparc.data.tree import Tree
from sparc.errors import UnreadableError


class Upload(Tree):
    """Contents by names such as `cat/1.jpg`."""

    contents: Mapping[str, bytes]

    @classmethod
    def of(cls, contents: Mapping[str, bytes]) -> "Upload":
        upload = cls(Path("upload"), packed=tuple(contents))
        object.__setattr__(upload, "contents", contents)
        return upload

    def __str__(self) -> str:
        return "what was sent"

    def __truediv__(self, name: str) -> Tree:
        return _Within(self.path, f"{name}/", self.packed)

    @property
    def is_tar(self) -> bool:
        return False

    def file(self, name: str) -> str:
        return name

    def folders(self) -> list[Tree]:
        return [self / name for name in sorted({name.split("/")[0] for name in self.contents})]

    def pictures(self) -> list[str]:
        return sorted(self.contents, key=lambda name: name.split("/"))

    def read(self, chosen: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        for name in chosen:
            yield name, self.contents[name]


class _Within(Tree):
    """A class's pictures."""

    def __str__(self) -> str:
        return f"“{self.name}”"

    def folders(self) -> list[Tree]:
        return []
