import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from sparc.data.sources import find
from sparc.errors import InputError

BOTH = pytest.mark.parametrize("classes", [10, 100])
ARCHIVES = {
    (10, "python"): ("cifar-10-python.tar.gz", "cifar-10-batches-py"),
    (10, "binary"): ("cifar-10-binary.tar.gz", "cifar-10-batches-bin"),
    (100, "python"): ("cifar-100-python.tar.gz", "cifar-100-python"),
    (100, "binary"): ("cifar-100-binary.tar.gz", "cifar-100-binary"),
}


def check(splits, tiny) -> None:
    for part, pixels, labels in (
        (splits.train, tiny.train, tiny.train_labels),
        (splits.test, tiny.test, tiny.test_labels),
    ):
        assert np.array_equal(part.images.numpy(), pixels)
        assert part.labels.tolist() == labels
        assert part.class_names == tuple(tiny.names)
        assert part.images.is_contiguous()
        assert part.labels.dtype == torch.int64


@BOTH
@pytest.mark.parametrize("layout", ["python", "binary"])
@pytest.mark.parametrize("where", ["{archive}", "cifar{classes}/{archive}", "CIFAR-{classes}/{archive}"])
def test_official_archive(tiny_cifar, pack, tmp_path, classes, layout, where):
    tiny = tiny_cifar(classes)
    archive, _ = ARCHIVES[classes, layout]
    pack(tmp_path / where.format(archive=archive, classes=classes), tiny.files(layout))
    check(find(f"cifar{classes}").load(tmp_path), tiny)


@BOTH
@pytest.mark.parametrize("layout", ["python", "binary"])
@pytest.mark.parametrize("where", ["", "cifar_{classes}"])
def test_unpacked_folder(tiny_cifar, pack, tmp_path, classes, layout, where):
    tiny = tiny_cifar(classes)
    pack(tmp_path / where.format(classes=classes), tiny.files(layout))
    check(find(f"cifar{classes}").load(tmp_path), tiny)
    _, folder = ARCHIVES[classes, layout]
    check(find(f"cifar{classes}").load(tmp_path / where.format(classes=classes) / folder), tiny)


@BOTH
@pytest.mark.parametrize("where", ["", "data", "cifar{classes}", "cifar{classes}/data", "cifar-{classes}/{inside}"])
def test_parquet(tiny_cifar, tmp_path, classes, where):
    tiny = tiny_cifar(classes)
    inside = {10: "plain_text", 100: "cifar100"}[classes]
    folder = tmp_path / where.format(classes=classes, inside=inside)
    shards = [folder / f"train-0000{n}-of-00002.parquet" for n in range(2)]
    tiny.parquet(shards, [folder / "test.parquet"])
    check(find(f"cifar{classes}").load(tmp_path), tiny)


def test_both_sets_side_by_side(tiny_cifar, pack, tmp_path):
    for classes in (10, 100):
        pack(tmp_path / f"cifar-{classes}-binary.tar.gz", tiny_cifar(classes).files("binary"))
    for classes in (10, 100):
        check(find(f"cifar{classes}").load(tmp_path), tiny_cifar(classes))


@pytest.mark.parametrize("layout", ["python", "binary"])
@BOTH
def test_a_missing_member_is_named(tiny_cifar, pack, tmp_path, layout, classes):
    archive, _ = ARCHIVES[classes, layout]
    files = tiny_cifar(classes).files(layout)
    for name in [name for name in files if "coarse" not in name]:
        path = pack(tmp_path / archive, {other: content for other, content in files.items() if other != name})
        with pytest.raises(InputError, match=f"{archive} lacks {name.split('/')[1]}: fetch it again"):
            find(f"cifar{classes}").load(tmp_path)
        path.unlink()


@pytest.mark.parametrize("layout", ["python", "binary"])
def test_an_archive_cut_off_is_named(tiny_cifar, pack, tmp_path, layout):
    archive, _ = ARCHIVES[100, layout]
    path = pack(tmp_path / archive, tiny_cifar(100).files(layout))
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(InputError, match=f"{archive} cannot be read"):
        find("cifar100").load(tmp_path)


def test_records_of_another_length(tiny_cifar, pack, tmp_path):
    files = tiny_cifar(100).files("binary")
    files["cifar-100-binary/test.bin"] = files["cifar-100-binary/test.bin"][:-1]
    pack(tmp_path, files)
    with pytest.raises(InputError, match=r"cifar-100-binary:test\.bin holds .* no multiple of 3,074"):
        find("cifar100").load(tmp_path)


def test_labels_out_of_range(tiny_cifar, pack, tmp_path):
    files = tiny_cifar(10).files("binary")
    name = "cifar-10-batches-bin/data_batch_1.bin"
    pack(tmp_path, files | {name: b"\x0a" + files[name][1:]})
    with pytest.raises(InputError, match="cifar-10-batches-bin has a label 10 but 10 classes"):
        find("cifar10").load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"data": np.zeros((3, 3072), np.uint8)}, "one label for each picture"),
        ({b"data": np.zeros((200, 3072), np.float32)}, "no table of bytes"),
        ({b"data": np.zeros((200, 3000), np.uint8)}, "one label for each picture of 3072 bytes"),
        ({b"fine_labels": ["1"] * 200}, "one label for each picture"),
        ({b"fine_labels": [300] * 200}, "one label for each picture"),
        ({b"fine_labels": None}, "one label for each picture"),
    ],
)
def test_a_python_batch_that_is_none(tiny_cifar, pack, tmp_path, change, message):
    files = tiny_cifar(100).files("python")
    train = pickle.loads(files["cifar-100-python/train"])
    pack(tmp_path, files | {"cifar-100-python/train": pickle.dumps(train | change, 2)})
    with pytest.raises(InputError, match=f"cifar-100-python:train .*{message}"):
        find("cifar100").load(tmp_path)


def test_a_pickle_that_calls_is_refused_and_not_run(tiny_cifar, pack, tmp_path):
    class Attack:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'sprung'}",)

    files = tiny_cifar(100).files("python") | {"cifar-100-python/meta": pickle.dumps(Attack(), 2)}
    pack(tmp_path / "cifar-100-python.tar.gz", files)
    with pytest.raises(
        InputError, match=r"cifar-100-python\.tar\.gz:meta is not a pickle of arrays \(it asks for posix"
    ):
        find("cifar100").load(tmp_path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("names", [None, ["text"] * 100, [b"\xff"] * 100])
def test_names_that_are_none(tiny_cifar, pack, tmp_path, names):
    meta = {"cifar-100-python/meta": pickle.dumps({b"fine_label_names": names}, 2)}
    pack(tmp_path, tiny_cifar(100).files("python") | meta)
    with pytest.raises(InputError, match="names of the classes"):
        find("cifar100").load(tmp_path)


def test_binary_names_that_are_no_text(tiny_cifar, pack, tmp_path):
    pack(tmp_path, tiny_cifar(100).files("binary") | {"cifar-100-binary/fine_label_names.txt": b"\xff\xfe"})
    with pytest.raises(InputError, match="is not text"):
        find("cifar100").load(tmp_path)


def test_too_few_classes_and_an_empty_one(tiny_cifar, pack, tmp_path):
    ten = tiny_cifar(10)
    few = pack(tmp_path / "few", ten.files("binary") | {"cifar-10-batches-bin/batches.meta.txt": b"a\nb\n" * 10})
    with pytest.raises(InputError, match="holds 20 classes where CIFAR-10 has 10"):
        find("cifar10").load(few)
    ten.test_labels[ten.test_labels.index(4)] = 5
    empty = pack(tmp_path / "empty", ten.files("binary"))
    with pytest.raises(InputError, match=r"\(test\) has no picture of the class “kind_04”"):
        find("cifar10").load(empty)


@pytest.fixture
def parquet_100(tiny_cifar, tmp_path) -> tuple[Path, Path]:
    paths = tmp_path / "cifar100" / "train.parquet", tmp_path / "cifar100" / "test.parquet"
    tiny_cifar(100).parquet([paths[0]], [paths[1]])
    return paths


def test_parquet_that_is_cut_off_or_missing(parquet_100, tmp_path):
    train, test = parquet_100
    content = test.read_bytes()
    for broken in (content[:-100], b"", b"PAR1" * 10, content[: len(content) // 3] + content[len(content) // 2 :]):
        test.write_bytes(broken)
        with pytest.raises(InputError, match=r"test\.parquet cannot be read"):
            find("cifar100").load(tmp_path)
    test.unlink()
    with pytest.raises(InputError, match=r"holds train\.parquet but no test\*\.parquet"):
        find("cifar100").load(tmp_path)
    train.rename(test)
    with pytest.raises(InputError, match=r"holds test\.parquet but no train\*\.parquet"):
        find("cifar100").load(tmp_path)


def test_parquet_bytes_flipped_in_the_middle(parquet_100, tmp_path):
    _, test = parquet_100
    content = bytearray(test.read_bytes())
    for offset in range(1000, len(content) // 2, 5000):
        content[offset : offset + 20] = os.urandom(20)
    test.write_bytes(content)
    with pytest.raises(InputError, match=r"test\.parquet"):
        find("cifar100").load(tmp_path)


@pytest.mark.parametrize(
    ("row", "label", "message"),
    [
        (b"no picture", 0, r"test\.parquet, row 1, cannot be decoded"),
        (None, 0, "without a picture or a label"),
        ("good", None, "without a picture or a label"),
        ("good", 100, "labels run from 0 to 100 where 100 classes"),
        ("good", -1, "labels run from -1"),
        ("large", 0, r"test\.parquet, row 1, is 33 × 33 pixels where 32 × 32"),
    ],
)
def test_a_bad_parquet_row(parquet_100, shard, encode, tmp_path, row, label, message):
    pictures = {size: encode(np.zeros((size, size, 3), np.uint8)) for size in (32, 33)}
    row = {"good": pictures[32], "large": pictures[33]}.get(row, row)
    names = [f"kind_{label:02}" for label in range(100)]
    shard(parquet_100[1], [pictures[32], row], [0, label], names, "img", "fine_label")
    with pytest.raises(InputError, match=message):
        find("cifar100").load(tmp_path)


def test_parquet_files_that_name_other_classes(parquet_100, tiny_cifar, tmp_path):
    other = tiny_cifar(100)
    other.names = other.names[::-1]
    other.parquet([tmp_path / "elsewhere" / "train.parquet"], [parquet_100[1]])
    with pytest.raises(InputError, match="other class names for training than for testing"):
        find("cifar100").load(tmp_path)


def test_parquet_with_other_columns(parquet_100, shard, tmp_path):
    shard(parquet_100[1], [b""], [0], ["a"] * 100, "photo", "fine_label")
    with pytest.raises(InputError, match=r"test\.parquet has the columns photo, fine_label, not “img”"):
        find("cifar100").load(tmp_path)
