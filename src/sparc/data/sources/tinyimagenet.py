"""TinyImageNet: 200 classes of ImageNet at 64 × 64 pixels; its validation pictures are what it is tested on.

Y. Le, X. Yang: Tiny ImageNet Visual Recognition Challenge, Stanford CS 231N, 2015.
"""

from functools import partial
from pathlib import Path

import torch

from sparc.data import parquet
from sparc.data.archive import names, read, walk
from sparc.data.download import Remote
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import decode_all, is_picture
from sparc.data.progress import Progress
from sparc.data.sources.stored import Reader, StoredSource
from sparc.errors import InputError

SIZE = 64
_WNIDS = "wnids.txt"
_ANNOTATIONS = "val/val_annotations.txt"


class TinyImageNet(StoredSource):
    """Classes go by their WordNet ids, in sorted order."""

    name = "tinyimagenet"
    title = "TinyImageNet"
    classes = 200
    side = SIZE
    train_pictures = 100_000
    folders = frozenset({"tinyimagenet", "tinyimagenet200"})
    accepts = "tiny-imagenet-200.zip, its unpacked folder or its parquet files"
    remote = Remote(
        "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
        248_100_043,
    )
    copies = parquet.Copies(("", "data"), "image", "label", "val", SIZE)

    def find(self, folder: Path) -> Reader | None:
        for path in (folder / "tiny-imagenet-200.zip", folder / "tiny-imagenet-200", folder):
            if path.is_file() or (path / _WNIDS).is_file():
                return Reader(partial(_read_official, path), [path])
        found = self.find_parquet(folder, self.copies)
        return found and found._replace(read=partial(_read_sorted, found))


def _read_sorted(reader: Reader, progress: Progress) -> Splits:
    return Splits(*map(_with_sorted_classes, reader.read(progress)))


def _read_official(path: Path, progress: Progress) -> Splits:
    """From the archive or its unpacked folder."""
    wnids = tuple(sorted(_text(path, _WNIDS).split()))
    truth: dict[str, str] = {}
    for line in _text(path, _ANNOTATIONS).splitlines():
        picture, wnid, *_ = [*line.split("\t"), ""]
        truth[picture] = wnid
    train: dict[str, str] = {}
    test: dict[str, str] = {}
    for name in names(path, is_picture):
        match name.split("/"):
            case [*_, "train", wnid, "images", _]:
                train[name] = wnid
            case [*_, "val", "images", picture]:
                test[name] = truth.pop(picture, "")
    if truth:
        raise InputError(f"{path} lacks the picture val/images/{min(truth)}: fetch it again")
    return Splits(_part(path, train, wnids, progress), _part(path, test, wnids, progress))


def _text(path: Path, member: str) -> str:
    for _, content in walk(path, lambda name: name == member or name.endswith(f"/{member}")):
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}:{member} is not text: fetch it again") from error
    raise InputError(f"{path} lacks {member}: fetch it again")


def _part(path: Path, wnid_of: dict[str, str], wnids: tuple[str, ...], progress: Progress) -> ImageSet:
    label_of = {wnid: label for label, wnid in enumerate(wnids)}
    for name, wnid in wnid_of.items():
        if wnid not in label_of:
            raise InputError(f"{path}:{name} is of no class that {_WNIDS} lists: fetch the set again")
    pictures = ((f"{path}:{name}", content) for name, content in read(path, wnid_of))
    images = decode_all(pictures, len(wnid_of), SIZE, progress, fit=None)
    return ImageSet(
        torch.from_numpy(images), torch.tensor([label_of[wnid] for wnid in wnid_of.values()], dtype=torch.int64), wnids
    )


def _with_sorted_classes(images: ImageSet) -> ImageSet:
    """The same pictures, labelled by the sorted order whatever order the parquet file has."""
    return images.relabelled(sorted(range(len(images.class_names)), key=images.class_names.__getitem__))
