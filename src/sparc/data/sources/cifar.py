"""CIFAR-10 and CIFAR-100, from either official archive, packed or unpacked, or from Hugging Face's parquet files.

A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from sparc.data import parquet, pickles
from sparc.data.archive import walk
from sparc.data.download import Remote
from sparc.data.imageset import ImageSet, Splits
from sparc.data.progress import Progress
from sparc.data.sources.stored import StoredSource
from sparc.errors import InputError

SIZE = 32
_PIXELS = 3 * SIZE * SIZE
_BATCHES = [f"data_batch_{number}" for number in range(1, 6)]


@dataclass(frozen=True)
class Layout:
    """An official archive: what it and its folder are called, and its members."""

    archive: str
    folder: str
    train: list[str]
    test: str
    names: str

    def at(self, place: Path) -> Path | None:
        """The archive, its unpacked folder, or `place` itself if it is that folder."""
        if (place / self.archive).is_file():
            return place / self.archive
        if (place / self.folder).is_dir():
            return place / self.folder
        return place if (place / self.names).is_file() else None

    def members(self, path: Path) -> dict[str, bytes]:
        wanted = {*self.train, self.test, self.names}
        found = {}
        for name, content in walk(path, lambda name: name.rsplit("/", 1)[-1] in wanted):
            found[name.rsplit("/", 1)[-1]] = content
        if missing := sorted(wanted - found.keys()):
            raise InputError(f"{path} lacks {', '.join(missing)}: fetch it again")
        return found


class Cifar(StoredSource):
    """What both sets have in common; each says how its files and labels are called."""

    binary: ClassVar[Layout]
    label_bytes: ClassVar[int]
    """Before each picture's pixels; the last of them is the label."""
    python: ClassVar[Layout]
    label_key: ClassVar[bytes]
    names_key: ClassVar[bytes]
    copies: ClassVar[parquet.Copies]

    def read(self, place: Path, progress: Progress) -> Splits | None:
        if path := self.binary.at(place):
            return self._read_binary(path)
        if path := self.python.at(place):
            return self._read_python(path)
        return parquet.read(place, self.copies, self.classes, progress, own=self.goes_by(place.name))

    def lies_in(self, place: Path) -> bool:
        if self.binary.at(place) or self.python.at(place):
            return True
        return parquet.find(place, self.copies, self.classes, own=self.goes_by(place.name)) is not None

    def _read_binary(self, path: Path) -> Splits:
        members = self.binary.members(path)
        try:
            names = tuple(members[self.binary.names].decode().split())
        except UnicodeDecodeError as error:
            raise InputError(f"{path}:{self.binary.names} is not text: fetch it again") from error

        def part(files: list[str]) -> ImageSet:
            tables = [self._records(members[file], f"{path}:{file}") for file in files]
            pixels = [table[:, self.label_bytes :] for table in tables]
            return _image_set(pixels, [table[:, self.label_bytes - 1] for table in tables], names, path)

        return Splits(part(self.binary.train), part([self.binary.test]))

    def _records(self, content: bytes, where: str) -> NDArray[np.uint8]:
        record = self.label_bytes + _PIXELS
        if not content or len(content) % record:
            raise InputError(f"{where} holds {len(content):,} bytes, no multiple of {record:,}: fetch it again")
        return np.frombuffer(content, dtype=np.uint8).reshape(-1, record)

    def _read_python(self, path: Path) -> Splits:
        members = self.python.members(path)
        where = f"{path}:{self.python.names}"
        names = _texts(pickles.load(members[self.python.names], where).get(self.names_key), where)

        def part(files: list[str]) -> ImageSet:
            batches = [self._batch(members[file], f"{path}:{file}") for file in files]
            return _image_set([pixels for pixels, _ in batches], [labels for _, labels in batches], names, path)

        return Splits(part(self.python.train), part([self.python.test]))

    def _batch(self, content: bytes, where: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        batch = pickles.load(content, where)
        pixels, labels = pickles.array(batch.get(b"data"), where), batch.get(self.label_key)
        if (
            not isinstance(labels, list)
            or not all(type(label) is int and 0 <= label < 256 for label in labels)
            or pixels.shape != (len(labels), _PIXELS)
        ):
            raise InputError(f"{where} does not hold one label for each picture of {_PIXELS} bytes: fetch it again")
        return pixels, np.array(labels, dtype=np.uint8)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, bytes) and name.isascii() for name in value):
        raise InputError(f"{where} does not hold the names of the classes: fetch it again")
    return tuple(name.decode() for name in value)


def _image_set(
    pixels: list[NDArray[np.uint8]], labels: list[NDArray[np.uint8]], names: tuple[str, ...], path: Path
) -> ImageSet:
    all_labels = torch.from_numpy(np.concatenate(labels).astype(np.int64))
    if len(all_labels) and int(all_labels.max()) >= len(names):
        raise InputError(f"{path} has a label {int(all_labels.max())} but {len(names)} classes: fetch it again")
    images = torch.from_numpy(np.concatenate(pixels)).view(-1, 3, SIZE, SIZE)
    return ImageSet(images, all_labels, names)


class Cifar10(Cifar):
    name = "cifar10"
    title = "CIFAR-10"
    classes = 10
    folders = frozenset({"cifar10"})
    accepts = "cifar-10-binary.tar.gz, cifar-10-python.tar.gz or its parquet files"
    remote = Remote(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        170_052_171,
    )
    binary = Layout(
        "cifar-10-binary.tar.gz",
        "cifar-10-batches-bin",
        [f"{batch}.bin" for batch in _BATCHES],
        "test_batch.bin",
        "batches.meta.txt",
    )
    label_bytes = 1
    python = Layout("cifar-10-python.tar.gz", "cifar-10-batches-py", _BATCHES, "test_batch", "batches.meta")
    label_key = b"labels"
    names_key = b"label_names"
    copies = parquet.Copies(("", "data", "plain_text"), "img", "label", "test", SIZE)


class Cifar100(Cifar):
    """With the fine labels, of which there are a hundred."""

    name = "cifar100"
    title = "CIFAR-100"
    classes = 100
    folders = frozenset({"cifar100"})
    accepts = "cifar-100-binary.tar.gz, cifar-100-python.tar.gz or its parquet files"
    remote = Remote(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        168_513_733,
    )
    binary = Layout("cifar-100-binary.tar.gz", "cifar-100-binary", ["train.bin"], "test.bin", "fine_label_names.txt")
    label_bytes = 2
    python = Layout("cifar-100-python.tar.gz", "cifar-100-python", ["train"], "test", "meta")
    label_key = b"fine_labels"
    names_key = b"fine_label_names"
    copies = parquet.Copies(("", "data", "cifar100"), "img", "fine_label", "test", SIZE)
