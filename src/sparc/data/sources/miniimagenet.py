"""MiniImageNet: 100 classes of ImageNet with 600 pictures each, here at 84 × 84 pixels.

It comes from few-shot learning, where whole classes are kept for testing; a continual learner has to see every class,
so the usual split into train, val and test is undone and the last sixth of each class's pictures is tested on.

O. Vinyals et al.: Matching Networks for One Shot Learning, 2016; the csv files are of S. Ravi, H. Larochelle, 2017.
"""

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sparc.data.class_folders import Classes, class_folders, part_folders
from sparc.data.imageset import Splits
from sparc.data.progress import Progress
from sparc.data.sources.folder import read_classes
from sparc.data.sources.stored import Reader, StoredSource
from sparc.data.tree import Tree
from sparc.errors import InputError

SIZE = 84
_PARTS = ("train", "val", "test")


class MiniImageNet(StoredSource):
    """From the csv files with `images/`, or from class folders, which may lie in train, val and test folders."""

    name = "miniimagenet"
    title = "MiniImageNet"
    classes = 100
    side = SIZE
    train_pictures = 50_000
    folders = frozenset({"miniimagenet", "miniimagenet84"})
    accepts = "a folder mini-imagenet with train.csv, val.csv, test.csv and images/, or with its class folders,"

    def find(self, folder: Path) -> Reader | None:
        if (folder / "train.csv").is_file():
            lists = [folder / f"{part}.csv" for part in _PARTS]
            return Reader(partial(_read, folder, _from_csv), [*lists, folder / "images"])
        # Class folders are of this set by where they lie, or else by WordNet's numbers, as ImageNet's are.
        inside = [child.name for path in (folder, folder / "train") if path.is_dir() for child in path.iterdir()]
        if self.goes_by(folder.name) or any(re.fullmatch(r"n\d{8}", name) for name in inside):
            return Reader(partial(_read, folder, _from_class_folders), [folder])
        return None


def _read(folder: Path, list_parts: Callable[[Path], dict[str, Classes]], progress: Progress) -> Splits:
    return Splits(*(read_classes(Tree(folder), part, SIZE, progress) for part in _split(list_parts(folder))))


def _from_csv(folder: Path) -> dict[str, Classes]:
    return {part: _listed(folder / f"{part}.csv") for part in _PARTS}


def _from_class_folders(folder: Path) -> dict[str, Classes]:
    parts = part_folders(Tree(folder))
    if not parts:
        return {"": class_folders(Tree(folder))}
    return {
        part: {
            name: [f"{path.name}/{picture}" for picture in pictures] for name, pictures in class_folders(path).items()
        }
        for part, path in parts.items()
    }


def _listed(path: Path) -> Classes:
    """The pictures that a csv file lists, by class, in its order."""
    classes: dict[str, list[str]] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file, strict=True):
                filename, label = row["filename"], row["label"]
                if not label or not filename or not filename.isprintable():
                    raise csv.Error(f"there is a row with {filename!r} and {label!r}")
                classes.setdefault(label, []).append(f"images/{filename}")
    except (OSError, UnicodeError, csv.Error, KeyError) as error:
        raise InputError(
            f"{path} is no list of pictures with the columns filename and label ({error}): fetch the set again"
        ) from error
    return classes


def _split(parts: dict[str, Classes]) -> tuple[Classes, Classes]:
    """Train and test pictures of every class, in the order of class names."""
    match parts:
        case {"train": train, "test": test} if train.keys() == test.keys():
            return dict(sorted(train.items())), dict(sorted(test.items()))
    classes: dict[str, list[str]] = {}
    for part in parts.values():
        for name, pictures in part.items():
            classes.setdefault(name, []).extend(pictures)
    classes = dict(sorted(classes.items()))
    cut = {name: len(pictures) * 5 // 6 for name, pictures in classes.items()}
    return (
        {name: pictures[: cut[name]] for name, pictures in classes.items()},
        {name: pictures[cut[name] :] for name, pictures in classes.items()},
    )
