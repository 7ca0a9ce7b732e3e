import numpy as np
import pytest

from sparc.data.sources import find
from sparc.errors import InputError

WNIDS = [f"n{number:08}" for number in range(100)]
PARTS = {"train": WNIDS[36:], "val": WNIDS[20:36], "test": WNIDS[:20]}
PICTURES = 6


@pytest.fixture(scope="session")
def picture(encode):
    """A small picture whose colours tell its class and its number in it."""

    def make(label: int, number: int) -> bytes:
        return encode(np.broadcast_to(np.array([label, number, 0], np.uint8), (9, 12, 3)).copy())

    return make


@pytest.fixture(scope="session")
def csv_files(picture) -> dict[str, bytes]:
    files = {}
    for part, wnids in PARTS.items():
        rows = [f"{wnid}{number}.jpg,{wnid}" for wnid in wnids for number in reversed(range(PICTURES))]
        files[f"{part}.csv"] = ("filename,label\n" + "\n".join(rows) + "\n").encode()
    for label, wnid in enumerate(WNIDS):
        for number in range(PICTURES):
            files[f"images/{wnid}{number}.jpg"] = picture(label, number)
    return files


def folders(picture, prefix) -> dict[str, bytes]:
    return {
        f"{prefix(wnid)}{wnid}/{number}.png": picture(label, number)
        for label, wnid in enumerate(WNIDS)
        for number in range(PICTURES)
    }


def part_of(wnid: str) -> str:
    return next(part for part, wnids in PARTS.items() if wnid in wnids)


def check(splits, test_number: int) -> None:
    train, test = splits
    assert train.class_names == test.class_names == tuple(WNIDS)
    assert train.images.shape == (500, 3, 84, 84)
    assert test.images.shape == (100, 3, 84, 84)
    assert train.counts() == [5] * 100
    assert test.counts() == [1] * 100
    for part in splits:
        assert part.images[:, 0, 40, 40].tolist() == part.labels.tolist()
    assert set(test.images[:, 1, 40, 40].tolist()) == {test_number}


@pytest.mark.parametrize("where", ["mini-imagenet", "miniImageNet", ""])
def test_csv_split(csv_files, pack, tmp_path, where):
    """In the order of the csv files, which here go backwards."""
    pack(tmp_path / where, csv_files)
    check(find("miniimagenet").load(tmp_path), test_number=0)


@pytest.mark.parametrize("where", ["mini-imagenet", ""])
def test_class_folders(picture, pack, tmp_path, where):
    pack(tmp_path / where, folders(picture, lambda wnid: ""))
    check(find("miniimagenet").load(tmp_path), test_number=5)


@pytest.mark.parametrize("where", ["mini_imagenet", ""])
def test_class_folders_in_parts(picture, pack, tmp_path, where):
    pack(tmp_path / where, folders(picture, lambda wnid: f"{part_of(wnid)}/"))
    check(find("miniimagenet").load(tmp_path), test_number=5)


def test_parts_with_the_same_classes_are_the_split(picture, pack, tmp_path):
    files = {}
    for label, wnid in enumerate(WNIDS):
        files[f"train/{wnid}/a.png"] = picture(label, 1)
        files[f"test/{wnid}/b.png"] = picture(label, 2)
        files[f"test/{wnid}/c.png"] = picture(label, 2)
    pack(tmp_path / "mini-imagenet", files)
    train, test = find("miniimagenet").load(tmp_path)
    assert train.counts() == [1] * 100
    assert test.counts() == [2] * 100
    assert set(test.images[:, 1, 40, 40].tolist()) == {2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val.csv": None}, r"val\.csv.*No such file"),
        ({"train.csv": b"file,class\nx,y\n"}, r"train\.csv is no list of pictures with the columns filename and label"),
        ({"train.csv": b"\xff\xfe\x00"}, r"train\.csv is no list"),
        ({"train.csv": b'filename,label\n"x,y'}, r"train\.csv is no list"),
        ({"train.csv": b"filename,label\nx.jpg\n"}, r"train\.csv is no list"),
        ({"train.csv": b"label,filename\nn00000001\n"}, r"train\.csv is no list"),
        ({"train.csv": b"filename,label\n,n00000001\n"}, r"train\.csv is no list"),
        ({"train.csv": b"filename,label\nx\0.jpg,n00000001\n"}, r"train\.csv is no list"),
        ({"images/n000000403.jpg": None}, r"n000000403\.jpg cannot be read \(No such file"),
        ({"images/n000000403.jpg": b""}, r"n000000403\.jpg cannot be decoded"),
        ({"test.csv": b"filename,label\n"}, "holds 80 classes where MiniImageNet has 100"),
    ],
)
def test_what_is_wrong_is_named(csv_files, pack, tmp_path, change, message):
    files = {name: content for name, content in (csv_files | change).items() if content is not None}
    pack(tmp_path / "mini-imagenet", files)
    with pytest.raises(InputError, match=message):
        find("miniimagenet").load(tmp_path)


def test_a_class_with_a_single_picture_cannot_be_split(picture, pack, tmp_path):
    files = folders(picture, lambda wnid: "")
    pack(tmp_path, {name: x for name, x in files.items() if "n00000042" not in name or name.endswith("/0.png")})
    with pytest.raises(InputError, match=r"\(train\) has no picture of the class “n00000042”"):
        find("miniimagenet").load(tmp_path)


def test_other_folders_are_not_taken_for_it(pack, tmp_path):
    pack(tmp_path, {"cifar100/train.txt": b"", "holiday/1.png": b""})
    with pytest.raises(
        InputError, match=r"MiniImageNet is neither in .* no official download: put a folder mini-imagenet"
    ):
        find("miniimagenet").load(tmp_path)
