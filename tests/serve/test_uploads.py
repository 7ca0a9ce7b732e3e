"""What comes with a request, by names that lead nowhere."""

import pytest

from sparc.data.class_folders import class_folders
from sparc.errors import InputError
from sparc.serve.upload_tree import Upload
from sparc.serve.uploads import Sent, by_class, class_name


def test_all_pictures_of_one_name_are_kept() -> None:
    sent = [
        Sent("cat", "a.png", b"1"),
        Sent("cat", "x/a.png", b"2"),
        Sent("cat", "a.png", b"3"),
        Sent("dog", "a.png", b"4"),
    ]
    sent += [
        Sent("dog", "", b"5"),
        Sent("dog", "blob", b"6"),
        Sent("dog", "blob", b"7"),
        Sent(" dog ", "a (2).png", b"8"),
    ]
    found = by_class([*sent, Sent("dog", "a.png", b"9")])
    assert sorted(found.values()) == [str(number).encode() for number in range(1, 10)]
    assert list(found)[:4] == ["cat/a.png", "cat/a (2).png", "cat/a (3).png", "dog/a.png"]


def test_a_class_with_a_dot_stays_one_class() -> None:
    found = by_class([Sent("v1.0", "blob", b"1"), Sent("v1.0", "blob", b"2"), Sent("v1.0", "a.png", b"3")])
    assert list(found) == ["v1.0/blob", "v1.0/blob (2)", "v1.0/a.png"]


def test_many_pictures_of_one_name_take_no_time() -> None:
    assert len(by_class(Sent("cat", "blob", b"") for _ in range(20_000))) == 20_000


def test_paths_are_only_names() -> None:
    found = by_class([Sent("..", "../../etc/passwd", b"1"), Sent("~", "C:\\windows\\x.png", b"2")])
    assert list(found) == ["../passwd", "~/x.png"]
    upload = Upload.of(found)
    assert class_folders(upload) == {"..": ["../passwd"], "~": ["~/x.png"]}
    assert list(upload.read(["../passwd"])) == [("../passwd", b"1")]


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\nb", "a\x00", "x" * 201, "\ud800"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InputError, match="no name for a"):
        class_name(name)


def test_classes_named_like_parts_of_a_split_are_classes() -> None:
    upload = Upload.of(by_class([Sent("train", "1.png", b""), Sent("test", "1.png", b""), Sent(".hidden", "1", b"")]))
    assert list(class_folders(upload)) == [".hidden", "test", "train"]
