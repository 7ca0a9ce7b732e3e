import numpy as np
import pytest

from sparc.data.sources import find
from sparc.errors import InputError


def check(splits, tiny) -> None:
    """Each picture has the colour of its class's number."""
    for part in splits:
        assert part.images.shape == (200, 3, 64, 64)
        assert part.class_names == tuple(tiny.wnids)
        assert part.images.float().mean((1, 2, 3)).round().int().tolist() == part.labels.tolist()
        assert sorted(part.labels.tolist()) == list(range(200))


def below(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.split("/", 1)[1]: content for name, content in files.items()}


@pytest.mark.parametrize("where", ["tiny-imagenet-200.zip", "TinyImageNet/tiny-imagenet-200.zip"])
def test_zip(tiny_tiny, pack, tmp_path, where):
    pack(tmp_path / where, tiny_tiny.files())
    check(find("tinyimagenet").load(tmp_path), tiny_tiny)


@pytest.mark.parametrize("where", ["", "tiny-imagenet-200", "tiny-imagenet", "tiny-imagenet/tiny-imagenet-200"])
def test_folder(tiny_tiny, pack, tmp_path, where):
    pack(tmp_path / where, below(tiny_tiny.files()))
    check(find("tinyimagenet").load(tmp_path), tiny_tiny)


def test_zip_and_folder_are_the_same_to_the_bit(tiny_tiny, pack, tmp_path):
    pack(tmp_path / "a" / "tiny-imagenet-200.zip", tiny_tiny.files())
    pack(tmp_path / "b", tiny_tiny.files())
    packed, unpacked = (find("tinyimagenet").load(tmp_path / root) for root in "ab")
    assert [part.fingerprint() for part in packed] == [part.fingerprint() for part in unpacked]


@pytest.mark.parametrize("where", ["tiny-imagenet", "tinyimagenet/data", ""])
@pytest.mark.parametrize("test", ["valid", "val-00000-of-00001", "validation"])
def test_parquet(tiny_tiny, tmp_path, where, test):
    """Whatever order the file names its classes in, they come out sorted."""
    tiny_tiny.parquet(*(tmp_path / where / f"{part}.parquet" for part in ("train", test)))
    check(find("tinyimagenet").load(tmp_path), tiny_tiny)


@pytest.mark.parametrize("member", ["wnids.txt", "val/val_annotations.txt"])
def test_a_missing_list_is_named(tiny_tiny, pack, tmp_path, member):
    files = tiny_tiny.files()
    del files[f"tiny-imagenet-200/{member}"]
    pack(tmp_path / "tiny-imagenet-200.zip", files)
    with pytest.raises(InputError, match=rf"tiny-imagenet-200\.zip lacks {member}"):
        find("tinyimagenet").load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val/images/val_7.JPEG": None}, r"lacks the picture val/images/val_7\.JPEG"),
        ({"val/images/val_900.JPEG": b""}, r"val_900\.JPEG is of no class that wnids\.txt lists"),
        ({"train/n00000007/images/n00000007_0.JPEG": None}, r"\(train\) has no picture of the class “n00000007”"),
        ({"train/n00000007/images/n00000007_0.JPEG": b"text"}, r"n00000007_0\.JPEG cannot be decoded"),
        ({"train/n99999999/images/x.JPEG": b""}, r"n99999999/images/x\.JPEG is of no class"),
        ({"wnids.txt": b"n00000000"}, "is of no class"),
        ({"wnids.txt": b"\xff\xfe\xfd"}, r"wnids\.txt is not text"),
        ({"val/val_annotations.txt": b"val_0.JPEG\n"}, "is of no class"),
    ],
)
@pytest.mark.parametrize("path", ["tiny-imagenet-200.zip", "."])
def test_what_is_wrong_is_named(tiny_tiny, pack, tmp_path, change, message, path):
    files = tiny_tiny.files() | {f"tiny-imagenet-200/{name}": content for name, content in change.items()}
    pack(tmp_path / path, {name: content for name, content in files.items() if content is not None})
    with pytest.raises(InputError, match=message):
        find("tinyimagenet").load(tmp_path)


def test_another_size_is_an_error(tiny_tiny, pack, encode, tmp_path):
    large = encode(np.zeros((65, 64, 3), np.uint8), "JPEG")
    pack(tmp_path, tiny_tiny.files() | {"tiny-imagenet-200/val/images/val_3.JPEG": large})
    with pytest.raises(InputError, match=r"val_3\.JPEG is 64 × 65 pixels where 64 × 64 are expected"):
        find("tinyimagenet").load(tmp_path)


def test_a_broken_zip_is_named(tmp_path):
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(InputError, match=r"tiny-imagenet-200\.zip cannot be read \(File is not a zip file\)"):
        find("tinyimagenet").load(tmp_path)
