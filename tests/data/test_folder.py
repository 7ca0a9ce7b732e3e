import os
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparc.data.pictures import LARGEST_SIDE, SMALLEST_SIDE
from sparc.data.sources import Folder
from sparc.data.sources.folder import _chosen
from sparc.data.stream import Stream
from sparc.errors import InputError


@pytest.fixture(scope="session")
def shot(encode):
    """A picture of one colour."""

    def make(colour: int, height: int = 40, width: int = 50) -> bytes:
        return encode(np.full((height, width, 3), colour, np.uint8))

    return make


@pytest.fixture(scope="session")
def zoo(shot) -> dict[str, bytes]:
    return {f"{name}/{n:02}.png": shot(colour) for colour, name in enumerate(["ant", "bee", "cat"]) for n in range(10)}


def test_class_folders(zoo, pack, tmp_path):
    train, test = Folder(pack(tmp_path / "zoo", zoo)).load()
    assert train.class_names == test.class_names == ("ant", "bee", "cat")
    assert train.counts() == [8, 8, 8]
    assert test.counts() == [2, 2, 2]
    for part in (train, test):
        assert part.images.shape[1:] == (3, 32, 32)
        assert part.images[:, 0, 0, 0].tolist() == part.labels.tolist()
    first, second = (Folder(tmp_path / "zoo").load().test.fingerprint() for _ in range(2))
    assert first == second == test.fingerprint()


def test_a_picture_for_testing_never_trains_when_one_is_added(zoo):
    names = [name for name in zoo if name.startswith("ant")]
    before = set(_chosen(names, 0.2))
    for n in range(100):
        assert len(before - set(_chosen([*names, f"ant/new-{n}.png"], 0.2))) <= 1
    assert len(set(_chosen([*names, *(f"ant/new-{n}.png" for n in range(40))], 0.2))) == 10


@settings(max_examples=60)
@given(count=st.integers(1, 60), share=st.floats(0.001, 0.999))
def test_both_parts_have_a_picture_of_every_class_that_has_two(count, share):
    chosen = _chosen([f"a/{n}" for n in range(count)], share)
    assert len(chosen) < count
    assert len(chosen) >= (count >= 2)
    if 1 <= round(share * count) < count:
        assert len(chosen) == round(share * count)


def test_a_class_with_one_picture_is_not_tested_and_so_no_task_of_a_stream(shot, pack, tmp_path):
    pack(tmp_path, {"one/1.png": shot(1), "two/1.png": shot(2), "two/2.png": shot(2)})
    splits = Folder(tmp_path).load()
    assert splits.train.counts() == [1, 1]
    assert splits.test.counts() == [0, 1]
    with pytest.raises(InputError, match="“one” has no test picture"):
        Stream(splits, [1, 1])


@pytest.mark.parametrize("test_name", ["test", "val", "valid", "Test"])
def test_given_split(shot, pack, tmp_path, test_name):
    files = {"train/a/1.png": shot(0), "train/b/1.png": shot(1), "train/b/2.png": shot(1)}
    files |= {f"{test_name}/a/3.png": shot(0), f"{test_name}/b/3.png": shot(1), "labels/notes.txt": b""}
    train, test = Folder(pack(tmp_path, files)).load()
    assert train.class_names == test.class_names == ("a", "b")
    assert train.counts() == [1, 2]
    assert test.counts() == [1, 1]


def test_test_goes_before_val(shot, pack, tmp_path):
    files = {
        f"{part}/a/{n}.png": shot(0) for part, count in (("train", 1), ("val", 2), ("test", 3)) for n in range(count)
    }
    assert Folder(pack(tmp_path, files)).load().test.counts() == [3]


def test_unlabelled_test_pictures_are_left_alone(shot, pack, tmp_path):
    files = {f"train/{name}/{n}.png": shot(0) for name in "ab" for n in range(5)}
    pack(tmp_path / "alone", files)
    train, test = Folder(tmp_path / "alone").load()
    assert train.class_names == ("a", "b")
    assert train.counts() == [4, 4]
    assert test.counts() == [1, 1]


def test_classes_must_be_the_same_in_both_parts(shot, pack, tmp_path):
    files = {"train/a/1.png": shot(0), "train/b/1.png": shot(0), "test/a/1.png": shot(0)}
    with pytest.raises(InputError, match=r"the class “b” is in .*train but not in .*test"):
        Folder(pack(tmp_path, files)).load()


def test_names_in_any_script(shot, pack, tmp_path):
    names = ["Äpfel", "猫", "кошка", "كلب", "🦊", "zwei Wörter"]
    files = {f"{unicodedata.normalize('NFD', name)}/{n}.png": shot(0) for name in names for n in range(2)}
    train, _ = Folder(pack(tmp_path, files)).load()
    assert train.class_names == tuple(sorted(names))
    assert all(unicodedata.is_normalized("NFC", name) for name in train.class_names)


def test_what_is_no_picture_is_passed_over(shot, pack, tmp_path):
    files = {f"a/{name}": b"x" for name in ("notes.txt", "Thumbs.db", ".DS_Store", "._1.png", ".cache/2.png")}
    files |= {"overview.png": shot(9), ".git/x.png": b"x", "__MACOSX/a/1.png": b"x"}
    files |= {"a/1.PNG": shot(0), "a/deep/er/2.png": shot(0), "b/1.jpeg": shot(1)}
    train, test = Folder(pack(tmp_path, files)).load()
    assert train.class_names == ("a", "b")
    assert [x + y for x, y in zip(train.counts(), test.counts(), strict=True)] == [2, 1]


def test_only_the_very_name_that_macos_adds_is_passed_over(shot, pack, tmp_path):
    files = {f"{name}/{n}.png": shot(0) for name in ("a", "__MACOSX2", "__MACOSX") for n in range(2)}
    assert Folder(pack(tmp_path, files)).load().train.class_names == ("__MACOSX2", "a")


def test_linked_class_folders(shot, pack, tmp_path):
    pack(tmp_path / "store", {"a/1.png": shot(0), "b/1.png": shot(1)})
    (tmp_path / "subset").mkdir()
    (tmp_path / "subset" / "only").symlink_to(tmp_path / "store" / "a")
    assert Folder(tmp_path / "subset").load().train.class_names == ("only",)


@pytest.mark.parametrize(
    ("sides", "expected"),
    [([(20, 30)], 32), ([(64, 70)], 64), ([(95, 200)], 64), ([(500, 400)], 96), ([(40, 40), (70, 80), (70, 300)], 64)],
)
def test_the_size_follows_the_pictures(shot, pack, tmp_path, sides, expected):
    pack(tmp_path, {f"a/{n}.png": shot(n, *side) for n, side in enumerate(sides)})
    assert Folder(tmp_path).load().train.size == (expected, expected)
    assert Folder(tmp_path, size=48).load().train.size == (48, 48)


def test_a_padded_picture_is_as_large_as_its_longer_side(shot, pack, tmp_path):
    pack(tmp_path, {f"a/{n}.png": shot(n, 40, 70) for n in range(3)})
    assert Folder(tmp_path).load().train.size == (32, 32)
    assert Folder(tmp_path, fit="pad").load().train.size == (64, 64)


def test_what_is_wrong_is_named(shot, pack, tmp_path):
    layout = "put the pictures of each class into a folder named after the class"
    with pytest.raises(InputError, match=r"nowhere cannot be read .No such file"):
        Folder(tmp_path / "nowhere").load()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="Not a directory"):
        Folder(tmp_path / "file").load()
    for files, message in [
        ({}, f"neither pictures nor folders of classes: {layout}"),
        ({"1.png": shot(0)}, f"pictures but no folders of classes: {layout}"),
        ({"a/notes.txt": b""}, f"folders but no pictures in them: {layout}"),
        ({"a/1.png": shot(0), "b/notes.txt": b""}, "has no picture of the class “b”"),
        ({"a/1.png": shot(0), "b/2.png": b"text"}, r"b/2\.png cannot be decoded"),
    ]:
        path = tmp_path / str(abs(hash(message)))
        with pytest.raises(InputError, match=message):
            Folder(pack(path, files)).load()


def test_a_folder_name_that_is_no_text(shot, tmp_path):
    try:
        (tmp_path / os.fsdecode(b"\xff")).mkdir()
    except OSError:
        pytest.skip("the file system takes text alone")
    with pytest.raises(InputError, match=r"\\udcff.*not UTF-8: rename it") as caught:
        Folder(tmp_path).load()
    str(caught.value).encode()


@pytest.mark.parametrize(
    "options", [{"size": 0}, {"size": 7}, {"size": 1025}, {"test_share": 0.0}, {"test_share": 1.0}]
)
def test_options_out_of_range(tmp_path, options):
    with pytest.raises(InputError, match="out of range"):
        Folder(tmp_path, **options)


@pytest.mark.parametrize("size", [SMALLEST_SIDE, LARGEST_SIDE])
def test_sizes_at_the_edge(shot, pack, tmp_path, size):
    assert Folder(pack(tmp_path, {"a/1.png": shot(0)}), size=size).load().train.size == (size, size)
