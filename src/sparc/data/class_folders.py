"""Pictures in folders of their classes, on the disk or inside an archive: found, and read as arrays."""

import math
import statistics
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparc.data.pictures import Fit, Kept, Pixels, decode_all, square_side, square_side_of, themselves
from sparc.data.progress import Progress
from sparc.data.skipped import Skipped
from sparc.data.tree import Tree
from sparc.errors import InputError, UnreadableError

Classes = Mapping[str, Sequence[str]]
"""The pictures of each class, by its name, as paths relative to the folder."""

_TEST_FOLDERS = ("test", "val", "valid", "validation")
_MEASURED = 500
"""How many pictures' headers are looked at to choose a size."""
_STRAY = "lies beside the folders of classes, and in none of them"
_LAYOUT = "put the pictures of each class into a folder named after the class, such as cat/1.jpg and dog/1.jpg"


class Labelled(NamedTuple):
    """Pictures, or what is kept of them, with their classes."""

    images: Kept
    labels: NDArray[np.int64]
    """Indices into `class_names`."""
    class_names: tuple[str, ...]


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


def class_folders(tree: Tree, skipped: list[Skipped] | None = None, *, strict: bool = False) -> Classes:
    """The classes, sorted by name; pictures in folders inside a class folder are of that class.

    Pictures beside the class folders are of none, and are added to `skipped`; `strict` refuses them.
    """
    classes: dict[str, list[str]] = {_class_name(folder): [] for folder in tree.folders()}
    pictures = tree.pictures()
    if not classes:
        what = "pictures but no folders of classes" if pictures else "neither pictures nor folders of classes"
        raise InputError(f"{tree} holds {what}: {_LAYOUT}")
    for picture in pictures:
        if "/" in picture:
            classes[_class_name(tree / picture.split("/", 1)[0])].append(picture)
        elif strict:
            raise InputError(f"{tree.file(picture)} {_STRAY}: move it into one, or take it away")
        elif skipped is not None:
            skipped.append(Skipped(tree.file(picture), f"it {_STRAY}"))
    if not any(classes.values()):
        raise InputError(f"{tree} holds folders but no pictures in them: {_LAYOUT}")
    check_no_class_is_empty(classes, map(len, classes.values()), str(tree))
    return dict(sorted(classes.items()))


def of_folders_alone(classes: Classes) -> list[str]:
    """Those classes all of whose pictures lie in folders inside the class's own, which may be the classes meant."""
    return [name for name, pictures in classes.items() if all(picture.count("/") > 1 for picture in pictures)]


def check_no_strays(tree: Tree) -> None:
    """Refuse a folder, split or not, in which pictures lie beside the class folders."""
    for part in split_of(tree):
        if part is not None:
            class_folders(part, strict=True)


def check_no_class_is_empty(class_names: Iterable[str], counts: Iterable[int], where: Path | str) -> None:
    for name, count in zip(class_names, counts, strict=True):
        if count == 0:
            raise InputError(f"{where} has no picture of the class “{name}”: add some, or remove the class")


def read_labelled(
    tree: Tree,
    classes: Classes,
    size: int,
    progress: Progress,
    fit: Fit = "crop",
    skipped: list[Skipped] | None = None,
    keep: Callable[[Pixels], Kept] = themselves,
    *,
    may_lack: bool = False,
) -> Labelled:
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
    labels = np.repeat(np.arange(len(classes)), [len(pictures) for pictures in classes.values()])
    if skipped is not None and lost:
        skipped += [lost[index] for index in sorted(lost)]
        if not may_lack:
            _check_some_are_left(tree, tuple(classes), labels, lost)
        labels = labels[[index not in lost for index in range(len(chosen))]]
    return Labelled(images, labels, tuple(classes))


def _check_some_are_left(
    tree: Tree, classes: Sequence[str], labels: NDArray[np.int64], lost: Mapping[int, Skipped]
) -> None:
    """`labels` are of all pictures, those that were lost among them."""
    for label, name in enumerate(classes):
        pictures = np.flatnonzero(labels == label).tolist()
        if all(index in lost for index in pictures):
            which = f" of the class “{name}”" if len(lost) < len(labels) else ""
            first = lost[pictures[0]]
            raise InputError(f"no picture{which} in {tree} can be read, {first.path} for one: {first.reason}")


def _class_name(folder: Tree) -> str:
    try:
        folder.name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the folder {str(folder)!a} has a name that is not UTF-8: rename it") from error
    return unicodedata.normalize("NFC", folder.name)


def usual_size(tree: Tree, classes: Classes, fit: Fit, *, strict: bool) -> int:
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
