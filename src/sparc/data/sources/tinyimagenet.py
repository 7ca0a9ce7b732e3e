"""TinyImageNet: 200 classes of ImageNet at 64 × 64 pixels; its validation pictures are what it is tested on.

Y. Le, X. Yang: Tiny ImageNet Visual Recognition Challenge, Stanford CS 231N, 2015.
"""

from pathlib import Path

import torch

from sparc.data import parquet
from sparc.data.archive import names, read, walk
from sparc.data.download import Remote
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import decode_all, is_picture
from sparc.data.progress import Progress
from sparc.data.sources.stored import StoredSource
from sparc.errors import InputError

SIZE = 64
_WNIDS = "wnids.txt"
_ANNOTATIONS = "val/val_annotations.txt"


class TinyImageNet(StoredSource):
    """Classes go by their WordNet ids, in sorted order."""

    name = "tinyimagenet"
    title = "TinyImageNet"
    classes = 200
    folders = frozenset({"tinyimagenet", "tinyimagenet200"})
    accepts = "tiny-imagenet-200.zip, its unpacked folder or its parquet files"
    remote = Remote(
        "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
        248_100_043,
    )
    copies = parquet.Copies(("", "data"), "image", "label", "val", SIZE)

    def read(self, place: Path, progress: Progress) -> Splits | None:
        if path := _official(place):
            return _read_official(path, progress)
        splits = parquet.read(place, self.copies, self.classes, progress, own=self.goes_by(place.name))
        return splits and Splits(_sorted_classes(splits.train), _sorted_classes(splits.test))

    def lies_in(self, place: Path) -> bool:
        if _official(place):
            return True
        return parquet.find(place, self.copies, self.classes, own=self.goes_by(place.name)) is not None


def _official(place: Path) -> Path | None:
    """The archive, its unpacked folder, or `place` itself if it is that folder."""
    for path in (place / "tiny-imagenet-200.zip", place / "tiny-imagenet-200", place):
        if path.is_file() or (path / _WNIDS).is_file():
            return path
    return None


def _read_official(path: Path, progress: Progress) -> Splits:
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
    places = {wnid: place for place, wnid in enumerate(wnids)}
    for name, wnid in wnid_of.items():
        if wnid not in places:
            raise InputError(f"{path}:{name} is of no class that {_WNIDS} lists: fetch the set again")
    pictures = ((f"{path}:{name}", content) for name, content in read(path, wnid_of))
    images = decode_all(pictures, len(wnid_of), SIZE, progress, resize=False)
    return ImageSet(images, torch.tensor([places[wnid] for wnid in wnid_of.values()], dtype=torch.int64), wnids)


def _sorted_classes(images: ImageSet) -> ImageSet:
    """The same pictures, labelled by the sorted order whatever order the parquet file has."""
    order = sorted(range(len(images.class_names)), key=images.class_names.__getitem__)
    place = torch.empty(len(order), dtype=torch.int64)
    place[order] = torch.arange(len(order))
    return ImageSet(images.images, place[images.labels], tuple(images.class_names[label] for label in order))
