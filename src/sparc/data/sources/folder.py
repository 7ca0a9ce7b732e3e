"""Anybody's pictures: a folder, or an archive, that holds one folder for each class."""

import contextlib
import hashlib
import math
import statistics
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from sparc.data.imageset import LARGEST_SIDE, SMALLEST_SIDE, ImageSet, Splits, check_no_class_is_empty
from sparc.data.pictures import Fit, decode, decode_all, square_side, square_side_of, themselves
from sparc.data.progress import Progress, no_progress
from sparc.data.skipped import Skipped
from sparc.data.sources.source import Source
from sparc.data.tree import Tree
from sparc.errors import InputError, UnreadableError

Classes = Mapping[str, Sequence[str]]
"""The pictures of each class, by its name, as paths relative to the folder."""

_TEST_FOLDERS = ("test", "val", "valid", "validation")
_MEASURED = 500
"""How many pictures' headers are looked at to choose a size."""
_LAYOUT = "put the pictures of each class into a folder named after the class, such as cat/1.jpg and dog/1.jpg"


class Folder(Source):
    """A folder, a zip or a tar of class folders with pictures of any size and kind.

    If it holds `train` and `test` (else `val`, `valid`, `validation`) with class folders, these are the split, else
    `test_share` of each class, a fifth by default, is held out for testing: at least one picture, and never all. Which
    pictures these are depends on their names alone, so that a picture does not move from testing to training when
    others are added beside it, save for one or two at the edge of the share.

    Of a class with a single picture nothing can be held out: it has no test picture, so that a `Stream`, which tests
    every class, refuses it.

    Pictures that cannot be read are added to `skipped`; without such a list the first of them is an error. They count
    when a class is split, so that the others stay where they are when one is repaired or removed.

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
        classes = class_folders(tree)
        test = {name: _chosen(pictures, self.test_share) for name, pictures in classes.items()}
        train = {name: sorted({*pictures} - {*test[name]}) for name, pictures in classes.items()}
        return self._read((tree, train), (tree, test), self._size(tree, classes), progress, may_lack=True)

    def _given(self, train: Tree, test: Tree, progress: Progress) -> Splits:
        train_classes, test_classes = class_folders(train), class_folders(test)
        for name in sorted(train_classes.keys() ^ test_classes.keys()):
            has, lacks = (train, test) if name in train_classes else (test, train)
            raise InputError(f"the class “{name}” is in {has} but not in {lacks}: both must hold the same classes")
        return self._read((train, train_classes), (test, test_classes), self._size(train, train_classes), progress)

    def _size(self, tree: Tree, classes: Classes) -> int:
        return self.size or _usual_size(tree, classes, self.fit, strict=self.skipped is None)

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


def part_folders(tree: Tree) -> dict[str, Tree]:
    """The folders `train`, `test` and so on, by their names in small letters, that hold class folders."""
    found = {folder.name.lower(): folder for folder in tree.folders()}
    return {name: found[name] for name in ("train", *_TEST_FOLDERS) if name in found and found[name].folders()}


def split_of(tree: Tree) -> tuple[Tree, Tree | None]:
    """Where the class folders to learn from are, and those to test with if somebody has set such aside."""
    parts = part_folders(tree)
    test = _test_part(parts)
    if "train" in parts and test:
        return parts["train"], test
    only_train = [folder.name for folder in tree.folders()] == ["train"] and "train" in parts
    return parts["train"] if only_train else tree, None


def folder_to_test(tree: Tree) -> Tree:
    """Where the class folders to test with are: in its `test` (or `val`, …) where it is split, else itself."""
    return _test_part(part_folders(tree)) or tree


def _test_part(parts: Mapping[str, Tree]) -> Tree | None:
    return next((parts[name] for name in _TEST_FOLDERS if name in parts), None)


def class_folders(tree: Tree) -> Classes:
    """The classes, sorted by name; pictures in folders inside a class folder are of that class."""
    classes: dict[str, list[str]] = {_class_name(folder): [] for folder in tree.folders()}
    pictures = tree.pictures()
    if not classes:
        what = "pictures but no folders of classes" if pictures else "neither pictures nor folders of classes"
        raise InputError(f"{tree} holds {what}: {_LAYOUT}")
    for picture in pictures:
        if "/" in picture:
            classes[_class_name(tree / picture.split("/", 1)[0])].append(picture)
    if not any(classes.values()):
        raise InputError(f"{tree} holds folders but no pictures in them: {_LAYOUT}")
    check_no_class_is_empty(classes, map(len, classes.values()), str(tree))
    return dict(sorted(classes.items()))


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
    """The pictures, class after class, decoded and brought to one size, or what `keep` makes of them.

    Those that cannot be read are added to `skipped`; without such a list the first of them is an error. A class that
    has none left is one in any case, unless some `may_lack` pictures.
    """
    chosen = [picture for pictures in classes.values() for picture in pictures]
    contents = ((tree.file(name), content) for name, content in tree.read(chosen))
    places = {tree.file(name): index for index, name in enumerate(chosen)} if tree.is_tar else None
    lost: dict[int, Skipped] = {}
    pass_over = None if skipped is None else lost
    images = decode_all(contents, len(chosen), size, progress, fit=fit, skipped=pass_over, places=places, keep=keep)
    counts = torch.tensor([len(pictures) for pictures in classes.values()])
    labels = torch.arange(len(classes)).repeat_interleave(counts)
    if skipped is not None and lost:
        skipped += [lost[index] for index in sorted(lost)]
        labels = labels[[index not in lost for index in range(len(chosen))]]
        if not may_lack:
            _check_some_are_left(tree, tuple(classes), labels, lost)
    return ImageSet(images, labels, tuple(classes), (3, size, size))


def _check_some_are_left(tree: Tree, classes: Sequence[str], labels: Tensor, lost: Mapping[int, Skipped]) -> None:
    first = lost[min(lost)]
    if not len(labels):
        raise InputError(f"no picture in {tree} can be read, {first.path} for one: {first.reason}")
    for name, count in zip(classes, labels.bincount(minlength=len(classes)).tolist(), strict=True):
        if not count:
            raise InputError(f"no picture of the class “{name}” in {tree} can be read: repair some, or remove it")


def _class_name(folder: Tree) -> str:
    try:
        folder.name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the folder {str(folder)!a} has a name that is not UTF-8: rename it") from error
    return unicodedata.normalize("NFC", folder.name)


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
                images.append(torch.tensor(decode(content, name, side, fit)).movedim(2, 0))
    found = torch.stack(images) if images else torch.empty(0, 3, side, side, dtype=torch.uint8)
    return found, int(statistics.median(sides or [0]))


def _usual_size(tree: Tree, classes: Classes, fit: Fit, *, strict: bool) -> int:
    pictures = [picture for members in classes.values() for picture in members]
    sides = []
    for measure in _measures(tree, pictures[:: math.ceil(len(pictures) / _MEASURED)], fit):
        try:
            sides.append(measure())
        except UnreadableError:
            if strict:
                raise
    return suitable_size(sides)


def _measures(tree: Tree, chosen: Sequence[str], fit: Fit) -> Iterator[Callable[[], int]]:
    """What gives the side of each picture: by its header, which in an archive does not come without the rest."""
    if tree.packed is None:
        yield from (partial(square_side, tree.path / name, fit) for name in chosen)
        return
    for name, content in tree.read(chosen):
        yield partial(square_side_of, content, tree.file(name), fit)


def suitable_size(sides: Sequence[int]) -> int:
    """The median, down to a multiple of 32 and within 32 to 96, where small nets learn in minutes.

    >>> [suitable_size(sides) for sides in ([20], [48], [70, 500, 90], [4000], [])]
    [32, 32, 64, 96, 32]
    """
    return min(max(int(statistics.median(sides or [0])) // 32 * 32, 32), 96)
