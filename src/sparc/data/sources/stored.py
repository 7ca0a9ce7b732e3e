"""A set that lies in files: where it is looked for, and where it goes when it has to be fetched."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from sparc.data import decoded, parquet
from sparc.data.class_folders import check_no_class_is_empty
from sparc.data.download import DownloadError, Remote, fetch
from sparc.data.imageset import Splits
from sparc.data.progress import Progress, no_progress
from sparc.data.sources.source import Source
from sparc.errors import InputError
from sparc.files import check_writable, clear_parts, locked, make_folder, user_cache

VARIABLE = "SPARC_DATA"


class Reader(NamedTuple):
    """Reads a set that has been found."""

    read: Callable[[Progress], Splits]
    sources: Sequence[Path]
    """The files, or folders, that it is read from."""


class StoredSource(Source):
    """Looks in the folder the user named (or SPARC_DATA names), then in the user's cache, then on the web."""

    classes: ClassVar[int]
    side: ClassVar[int]
    """Of its pictures, in pixels."""
    train_pictures: ClassVar[int]
    """As many as the whole set has to learn from."""
    folders: ClassVar[frozenset[str]]
    """What the set's folder goes by, in small letters and digits alone: people write Tiny-ImageNet_200 as they like."""
    accepts: ClassVar[str]
    """The files it is read from, in words for the user who has to bring them."""
    remote: ClassVar[Remote | None] = None

    @abstractmethod
    def find(self, folder: Path) -> Reader | None:
        """What would read the set from this folder, told without reading all of it; None if it does not lie there."""

    def find_parquet(self, folder: Path, copies: parquet.Copies) -> Reader | None:
        parts = parquet.find(folder, copies, self.classes, own=self.goes_by(folder.name))
        if not parts:
            return None
        return Reader(partial(parquet.read, parts), [shard for part in parts for shard in part.shards])

    def load(self, data: Path | None = None, progress: Progress = no_progress) -> Splits:
        named, cache = _named(data), user_cache()
        for folder in self._folders(named, cache):
            if reader := self.find(folder):
                return self._read(reader, folder, progress)
        return self._fetched(named, cache, progress)

    def present(self, data: Path | None = None) -> bool:
        return any(map(self.find, self._folders(_named(data), user_cache())))

    def fetchable(self) -> bool:
        return self.remote is not None

    def _folders(self, named: Path | None, cache: Path) -> Iterator[Path]:
        """Where the set is looked for, in this order."""
        for root in [cache] if named is None else [named, cache]:
            if root.is_dir():
                yield from sorted(path for path in root.iterdir() if self.goes_by(path.name) and path.is_dir())
                yield root

    def goes_by(self, name: str) -> bool:
        return "".join(filter(str.isalnum, name.lower())) in self.folders

    def _fetched(self, named: Path | None, cache: Path, progress: Progress) -> Splits:
        looked = f"not in {cache}" if named is None else f"neither in {named} nor in {cache}"
        todo = f"put {self.accepts} into {named or cache}"
        if self.remote is None:
            raise InputError(f"{self.title} is {looked}, and it has no official download: {todo}")
        folder = (cache / self.name).resolve()  # links of the user's may lead to folders that are gone
        check_writable(folder.parent, "XDG_CACHE_HOME's")
        make_folder(folder.parent)
        with locked(folder, lambda: progress(f"waiting for {self.title}, which another process fetches", 0, None)):
            try:
                if not self.find(folder):
                    clear_parts(folder)
                    fetch(self.remote, folder, progress)
            except DownloadError as error:
                raise InputError(f"{self.title} is {looked}, and {error}: {todo}") from error
        reader = self.find(folder)
        assert reader is not None
        return self._read(reader, folder, progress)

    def _read(self, reader: Reader, folder: Path, progress: Progress) -> Splits:
        def checked(progress: Progress) -> Splits:
            return self._checked(reader.read(progress), folder)

        return decoded.recalled(self.name, reader.sources, checked, progress)

    def _checked(self, splits: Splits, folder: Path) -> Splits:
        for part, images in splits._asdict().items():
            found = len(images.class_names)
            if found != self.classes:
                raise InputError(
                    f"{folder} holds {found} classes where {self.title} has {self.classes}: fetch the set again, or "
                    f"put the files of another set elsewhere"
                )
            check_no_class_is_empty(images.class_names, images.counts(), f"{folder} ({part})")
        if splits.train.class_names != splits.test.class_names:
            raise InputError(f"{folder} has other class names for training than for testing: fetch the set again")
        return splits


def _named(data: Path | None) -> Path | None:
    named, by = data, "the data folder"
    if data is None and os.environ.get(VARIABLE):
        named, by = Path(os.environ[VARIABLE]).expanduser(), f"the data folder that {VARIABLE} names"
    if named is not None and not named.is_dir():
        state = "is not a folder" if named.exists() else "does not exist"
        raise InputError(f"{by}, {named}, {state}: name the folder in which the data sets lie")
    return named
