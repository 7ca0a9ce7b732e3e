"""Folders of pictures, on the disk or inside an archive, listed and read in the same way."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sparc.data import archive
from sparc.data.pictures import is_hidden, is_picture
from sparc.errors import InputError, UnreadableError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True)
class Tree:
    """A folder of folders and files."""

    path: Path
    """The folder, or the archive."""
    inside: str = ""
    """Which folder of the archive; ends with `/` unless it is all of it."""
    packed: tuple[str, ...] | None = None
    """The names of all files in the archive; None of a folder on the disk."""

    @classmethod
    def at(cls, path: "Path | str | Tree") -> "Tree":
        """A folder, or what is in an archive: if a single folder on top holds everything, what is in that."""
        if isinstance(path, Tree):
            return path
        path = Path(path)
        if not is_archive(path):
            return cls(path)
        packed = archive.names(path, lambda _: True)
        for name in packed:
            parts = re.split(r"[/\\]", name)
            if ".." in parts or re.fullmatch("(?:[A-Za-z]:)?", parts[0]):
                raise InputError(f"{path} holds a file “{name}”, which would lie outside of it: pack it anew")
        whole = cls(path, packed=tuple(packed))
        tops, pictures = whole.folders(), whole.pictures()
        one_holds_all = len(tops) == 1 and pictures and all(name.count("/") > 1 for name in pictures)
        return tops[0] if one_holds_all else whole

    def __str__(self) -> str:
        return str(self.path) if not self.inside else f"{self.path}:{self.inside[:-1]}"

    def __truediv__(self, name: str) -> "Tree":
        """A folder in this one."""
        if self.packed is None:
            return Tree(self.path / name)
        return Tree(self.path, f"{self.inside}{name}/", self.packed)

    @property
    def name(self) -> str:
        return self.inside[:-1].rpartition("/")[2] or self.path.name

    @property
    def is_tar(self) -> bool:
        """Its files are read in the order in which they were packed, not in the one that is asked for."""
        return self.packed is not None and self.path.suffix.lower() != ".zip"

    def file(self, name: str) -> str:
        """A file's path, for people."""
        return str(self.path / name) if self.packed is None else f"{self.path}:{self.inside}{name}"

    def folders(self) -> list["Tree"]:
        """The folders that are not hidden, sorted; in an archive those without a file are passed over."""
        if self.packed is not None:
            tops = {name.split("/")[0] for name in self._packed_below() if "/" in name}
            return [self / name for name in sorted(tops) if not is_hidden(name)]
        try:
            children = sorted(self.path.iterdir())
        except OSError as error:
            raise InputError(
                f"{self} cannot be read ({error.strerror}): name a folder of class folders, or a zip or tar of them"
            ) from error
        return [self / child.name for child in children if not is_hidden(child.name) and child.is_dir()]

    def pictures(self) -> list[str]:
        """The names of all pictures, at any depth."""
        if self.packed is None:
            return archive.names(self.path, is_picture)
        return [name for name in self._packed_below() if is_picture(name)]

    def read(self, chosen: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        """Name and content of files, or what is wrong with them."""
        for name, content in archive.read_each(self.path, (self.inside + name for name in chosen)):
            yield name.removeprefix(self.inside), content

    def _packed_below(self) -> list[str]:
        packed = self.packed or ()
        return [name.removeprefix(self.inside) for name in packed if name.startswith(self.inside)]


def is_archive(path: Path) -> bool:
    """Whether it is a file that goes by the name of an archive."""
    return path.name.lower().endswith(ARCHIVES) and path.is_file()


def title(path: Path) -> str:
    """What a folder, or an archive without its suffix, is called."""
    if not is_archive(path):
        return path.resolve().name
    suffix = next(suffix for suffix in ARCHIVES if path.name.lower().endswith(suffix))
    return path.name[: -len(suffix)]
