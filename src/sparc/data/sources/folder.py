"""Anybody's pictures: a folder, or an archive, that holds one folder for each class."""

import contextlib
import hashlib
import math
import statistics
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sparc.data.class_folders import Classes, class_folders, read_labelled, split_of, usual_size
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import LARGEST_SIDE, SMALLEST_SIDE, Fit, Kept, Pixels, decode, square_side_of
from sparc.data.progress import Progress, no_progress
from sparc.data.skipped import Skipped
from sparc.data.sources.source import Source
from sparc.data.tree import Tree
from sparc.errors import InputError, UnreadableError


def themselves(images: Tensor) -> Tensor:
    """What is kept of pictures, where that is all of them."""
    return images


class Folder(Source):
    """A folder, a zip or a tar of class folders with pictures of any size and kind.

    If it holds `train` and `test` (else `val`, `valid`, `validation`) with class folders, these are the split, else
    `test_share` of each class, a fifth by default, is held out for testing: at least one picture, and never all. Which
    pictures these are depends on their names alone, so that a picture does not move from testing to training when
    others are added beside it, save for one or two at the edge of the share.

    Of a class with a single picture nothing can be held out: it has no test picture, so that a `Stream`, which tests
    every class, refuses it.

    Pictures that lie in no class folder, and those that cannot be read, are added to `skipped`; without such a list the
    first that cannot be read is an error. These count when a class is split, so that the others stay where they are
    when one is repaired or removed.

    What `keep` makes of each chunk of pictures is held in memory, and not the pictures.
    """

    title = "Folder"

    def __init__(
        self,
        path: Path | str | Tree,
        size: int | None = None,
        test_share: float = 0.2,
        fit: Fit = "crop",
        skipped: list[Skipped] | None = None,
        keep: Callable[[Tensor], Tensor] = themselves,
    ) -> None:
        if size is not None and not SMALLEST_SIDE <= size <= LARGEST_SIDE:
            raise InputError(f"a picture size of {size} is out of range: choose from {SMALLEST_SIDE} to {LARGEST_SIDE}")
        if not 0 < test_share < 1:
            raise InputError(f"a test share of {test_share} is out of range: choose between 0 and 1")
        self.path = path
        self.size = size
        self.test_share = test_share
        self.fit = fit
        self.skipped = skipped
        self.keep = keep

    def load(self, data: Path | None = None, progress: Progress = no_progress) -> Splits:
        """Read the folder; `data` plays no part, as the folder is named already."""
        train, test = split_of(Tree.at(self.path))
        return self._given(train, test, progress) if test else self._held_out(train, progress)

    def _held_out(self, tree: Tree, progress: Progress) -> Splits:
        classes = class_folders(tree, self.skipped)
        test = {name: _chosen(pictures, self.test_share) for name, pictures in classes.items()}
        train = {name: sorted({*pictures} - {*test[name]}) for name, pictures in classes.items()}
        return self._read((tree, train), (tree, test), self._size(tree, classes), progress, may_lack=True)

    def _given(self, train: Tree, test: Tree, progress: Progress) -> Splits:
        train_classes, test_classes = (class_folders(tree, self.skipped) for tree in (train, test))
        for name in sorted(train_classes.keys() ^ test_classes.keys()):
            has, lacks = (train, test) if name in train_classes else (test, train)
            raise InputError(f"the class “{name}” is in {has} but not in {lacks}: both must hold the same classes")
        return self._read((train, train_classes), (test, test_classes), self._size(train, train_classes), progress)

    def _size(self, tree: Tree, classes: Classes) -> int:
        return self.size or usual_size(tree, classes, self.fit, strict=self.skipped is None)

    def _read(
        self,
        train: tuple[Tree, Classes],
        test: tuple[Tree, Classes],
        size: int,
        progress: Progress,
        *,
        may_lack: bool = False,
    ) -> Splits:
        """Both parts, told as one; test classes may lack pictures."""
        first, second = (sum(map(len, classes.values())) for _, classes in (train, test))

        def told(before: int) -> Progress:
            return lambda what, done, _: progress(what, before + done, first + second)

        return Splits(
            read_classes(*train, size, told(0), self.fit, self.skipped, self.keep),
            read_classes(*test, size, told(first), self.fit, self.skipped, self.keep, may_lack=may_lack),
        )


def read_classes(
    tree: Tree,
    classes: Classes,
    size: int,
    progress: Progress,
    fit: Fit = "crop",
    skipped: list[Skipped] | None = None,
    keep: Callable[[Tensor], Tensor] = themselves,
    *,
    may_lack: bool = False,
) -> ImageSet:
    """As `read_labelled`, with tensors."""

    def kept(images: Pixels) -> Kept:
        found: Kept = keep(torch.from_numpy(images)).numpy()
        return found

    images, labels, names = read_labelled(tree, classes, size, progress, fit, skipped, kept, may_lack=may_lack)
    return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), names, (3, size, size))


def _chosen(pictures: Sequence[str], share: float) -> list[str]:
    """The pictures for testing: at least one if there are two, and never all.

    >>> _chosen(["a/1.png"], 0.2), len(_chosen(["a/1.png", "a/2.png"], 0.9)), len(_chosen(list("abcdefghij"), 0.2))
    ([], 1, 2)
    """
    count = min(max(round(share * len(pictures)), 1), len(pictures) - 1)
    by_digest = sorted(pictures, key=lambda name: hashlib.sha256(unicodedata.normalize("NFC", name).encode()).digest())
    return sorted(by_digest[:count])


def some_pictures(tree: Tree, fit: Fit, side: int, count: int) -> tuple[Tensor, int]:
    """A few of a folder's pictures, brought to a small size, and the side of the usual one as it is; whatever cannot be
    read is passed over.
    """
    tree, _ = split_of(tree)
    classes = class_folders(tree)
    pictures = [picture for members in classes.values() for picture in members]
    images, sides = [], []
    for name, content in tree.read(pictures[:: math.ceil(len(pictures) / count)]):
        with contextlib.suppress(UnreadableError):
            sides.append(square_side_of(content, name, fit))
            if isinstance(content, bytes):
                images.append(np.moveaxis(decode(content, name, side, fit), 2, 0))
    found = np.stack(images) if images else np.empty((0, 3, side, side), np.uint8)
    return torch.from_numpy(found), int(statistics.median(sides or [0]))
