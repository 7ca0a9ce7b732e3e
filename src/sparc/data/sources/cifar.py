"""CIFAR-10 and CIFAR-100, from either official archive, packed or unpacked, or from Hugging Face's parquet files.

A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from sparc.data import parquet, pickles
from sparc.data.archive import walk
from sparc.data.download import Remote
from sparc.data.imageset import ImageSet, Splits
from sparc.data.progress import Progress
from sparc.data.sources.stored import Reader, StoredSource
from sparc.errors import InputError

SIZE = 32
_PIXELS = 3 * SIZE * SIZE
_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))

Batch = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""N × 3,072 pixels, and N labels."""


@dataclass(frozen=True)
class Layout(ABC):
    """An official archive: what it and its folder are called, and its members."""

    archive: str
    folder: str
    train: Sequence[str]
    test: str
    names: str
    """The member that names the classes."""

    @abstractmethod
    def class_names(self, content: bytes, where: str) -> tuple[str, ...]:
        """The names in the member `names`."""

    @abstractmethod
    def batch(self, content: bytes, where: str) -> Batch:
        """The pictures in one of the other members."""

    def find(self, folder: Path) -> Path | None:
        """The archive, its unpacked folder, or `folder` itself if it is that folder."""
        if (folder / self.archive).is_file():
            return folder / self.archive
        if (folder / self.folder).is_dir():
            return folder / self.folder
        return folder if (folder / self.names).is_file() else None

    def read(self, path: Path, progress: Progress) -> Splits:
        members = self._members(path)
        names = self.class_names(members[self.names], f"{path}:{self.names}")

        def part(files: Sequence[str]) -> ImageSet:
            batches = [self.batch(members[file], f"{path}:{file}") for file in files]
            pixels = np.concatenate([pixels for pixels, _ in batches])
            labels = np.concatenate([labels for _, labels in batches]).astype(np.int64)
            if labels.max(initial=-1) >= len(names):
                raise InputError(f"{path} has a label {labels.max()} but {len(names)} classes: fetch it again")
            return ImageSet(torch.from_numpy(pixels).view(-1, 3, SIZE, SIZE), torch.from_numpy(labels), names)

        return Splits(part(self.train), part([self.test]))

    def _members(self, path: Path) -> dict[str, bytes]:
        wanted = {*self.train, self.test, self.names}
        found = {}
        for name, content in walk(path, lambda name: name.rsplit("/", 1)[-1] in wanted):
            found[name.rsplit("/", 1)[-1]] = content
        if missing := sorted(wanted - found.keys()):
            raise InputError(f"{path} lacks {', '.join(missing)}: fetch it again")
        return found


@dataclass(frozen=True)
class BinaryLayout(Layout):
    """Records of labels and pixels, and a text with the names of the classes."""

    label_bytes: int
    """Before each picture's pixels; the last of them is the label."""

    def class_names(self, content: bytes, where: str) -> tuple[str, ...]:
        try:
            return tuple(content.decode().split())
        except UnicodeDecodeError as error:
            raise InputError(f"{where} is not text: fetch it again") from error

    def batch(self, content: bytes, where: str) -> Batch:
        record = self.label_bytes + _PIXELS
        if not content or len(content) % record:
            raise InputError(f"{where} holds {len(content):,} bytes, no multiple of {record:,}: fetch it again")
        table = np.frombuffer(content, dtype=np.uint8).reshape(-1, record)
        return table[:, self.label_bytes :], table[:, self.label_bytes - 1]


@dataclass(frozen=True)
class PythonLayout(Layout):
    """Pickled dictionaries."""

    prefix: bytes
    """Of the keys under which the labels and their names lie."""

    def class_names(self, content: bytes, where: str) -> tuple[str, ...]:
        names = pickles.load(content, where).get(self.prefix + b"label_names")
        if not isinstance(names, list) or not all(isinstance(name, bytes) and name.isascii() for name in names):
            raise InputError(f"{where} does not hold the names of the classes: fetch it again")
        return tuple(name.decode() for name in names)

    def batch(self, content: bytes, where: str) -> Batch:
        members = pickles.load(content, where)
        pixels, labels = pickles.array(members.get(b"data"), where), members.get(self.prefix + b"labels")
        if (
            not isinstance(labels, list)
            or not all(type(label) is int and 0 <= label < 256 for label in labels)
            or pixels.shape != (len(labels), _PIXELS)
        ):
            raise InputError(f"{where} does not hold one label for each picture of {_PIXELS} bytes: fetch it again")
        return pixels, np.array(labels, dtype=np.uint8)


class Cifar(StoredSource):
    """What both sets have in common; each says how its files and labels are called."""

    side = SIZE
    train_pictures = 50_000
    layouts: ClassVar[tuple[Layout, ...]]
    copies: ClassVar[parquet.Copies]

    def find(self, folder: Path) -> Reader | None:
        for layout in self.layouts:
            if path := layout.find(folder):
                return Reader(partial(layout.read, path), [path])
        return self.find_parquet(folder, self.copies)


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
    layouts = (
        BinaryLayout(
            "cifar-10-binary.tar.gz",
            "cifar-10-batches-bin",
            [f"{batch}.bin" for batch in _BATCHES],
            "test_batch.bin",
            "batches.meta.txt",
            label_bytes=1,
        ),
        PythonLayout(
            "cifar-10-python.tar.gz", "cifar-10-batches-py", _BATCHES, "test_batch", "batches.meta", prefix=b""
        ),
    )
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
    layouts = (
        BinaryLayout(
            "cifar-100-binary.tar.gz",
            "cifar-100-binary",
            ["train.bin"],
            "test.bin",
            "fine_label_names.txt",
            label_bytes=2,
        ),
        PythonLayout("cifar-100-python.tar.gz", "cifar-100-python", ["train"], "test", "meta", prefix=b"fine_"),
    )
    copies = parquet.Copies(("", "data", "cifar100"), "img", "fine_label", "test", SIZE)
