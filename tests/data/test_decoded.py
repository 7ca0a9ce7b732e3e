"""A set is decoded once, and whatever becomes of what is kept, pictures are the same."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sparc.data import decoded
from sparc.data.imageset import Splits
from sparc.data.sources import find
from sparc.data.sources.cifar import BinaryLayout
from sparc.errors import InputError
from sparc.files import user_cache


@pytest.fixture(autouse=True)
def _small_sets_count(monkeypatch):
    monkeypatch.setattr(decoded, "SMALLEST", 0)


@pytest.fixture
def reads(monkeypatch) -> Callable[[], int]:
    """How often an archive was read since it was last asked."""
    counts = []
    read = BinaryLayout.read
    monkeypatch.setattr(BinaryLayout, "read", lambda *given: counts.append(1) or read(*given))

    def since() -> int:
        total = len(counts)
        counts.clear()
        return total

    return since


@pytest.fixture
def data(tiny_cifar, pack, tmp_path) -> Path:
    pack(tmp_path / "data" / "cifar-10-binary.tar.gz", tiny_cifar(10).files("binary"))
    return tmp_path / "data"


def load(data: Path) -> Splits:
    return find("cifar10").load(data)


def files() -> list[Path]:
    return sorted((user_cache() / decoded.FOLDER).glob("cifar10-*"))


def same(one: Splits, other: Splits) -> bool:
    return all(a.fingerprint() == b.fingerprint() for a, b in zip(one, other, strict=True))


def test_a_set_is_decoded_once(data, reads):
    first = load(data)
    assert reads() == 1
    again = load(data)
    assert reads() == 0
    assert same(first, again)
    assert again.train.images.is_contiguous()
    (file,) = files()
    assert file.stat().st_mode & 0o077 == 0, "nobody else's to read"


def test_whoever_writes_to_the_pictures_changes_them_for_nobody_else(data):
    first = load(data)
    expected = first.train.fingerprint()
    load(data).train.images.zero_()
    assert first.train.fingerprint() == load(data).train.fingerprint() == expected


def test_it_can_be_switched_off(data, reads, monkeypatch):
    monkeypatch.setenv("SPARC_DECODED", "0")
    load(data)
    load(data)
    assert reads() == 2
    assert not (user_cache() / decoded.FOLDER).exists()


def test_small_sets_are_not_worth_a_file(data, monkeypatch):
    monkeypatch.setattr(decoded, "SMALLEST", 2**20)
    load(data)
    assert not files()


def test_another_file_is_another_set(tiny_cifar, pack, tmp_path, reads):
    """Even where its size, and when it was written, are the same."""
    pack(tmp_path / "data", tiny_cifar(10).files("binary"))
    before = load(tmp_path / "data")
    batch = tmp_path / "data" / "cifar-10-batches-bin" / "data_batch_1.bin"
    content, written = bytearray(batch.read_bytes()), batch.stat()
    content[5] ^= 255
    batch.write_bytes(content)
    os.utime(batch, ns=(written.st_atime_ns, written.st_mtime_ns))
    after = load(tmp_path / "data")
    assert reads() == 2
    assert not same(before, after)
    assert np.array_equal(before.test.images, after.test.images)


def replaced(path: Path, content: bytes) -> None:
    """By another file: nobody writes into one that others have mapped."""
    path.unlink()
    path.write_bytes(content)


def empty(path: Path) -> None:
    replaced(path, b"")


def cut_off(path: Path) -> None:
    replaced(path, path.read_bytes()[: path.stat().st_size // 2])


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    replaced(path, content)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [empty, cut_off, changed, a_folder])
def test_damage_changes_nothing(data, harm):
    first = load(data)
    harm(files()[0])
    assert same(load(data), first)
    assert same(load(data), first)


def test_a_damaged_file_is_made_again(data, reads):
    load(data)
    cut_off(files()[0])
    load(data)
    assert reads() == 2
    load(data)
    assert reads() == 0


def test_a_cache_that_cannot_be_written_is_done_without(data, tmp_path, monkeypatch):
    first = load(data)
    (tmp_path / "no-folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-folder"))
    assert same(load(data), first)


def test_a_broken_archive_is_told_and_nothing_is_kept(data):
    archive = data / "cifar-10-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[:500])
    with pytest.raises(InputError, match="cannot be read"):
        load(data)
    assert not files()


def test_the_oldest_go(tiny_cifar, pack, tmp_path, monkeypatch):
    monkeypatch.setattr(decoded, "MOST", 2)
    places = [tmp_path / str(number) for number in range(3)]
    for place in places:
        pack(place / "cifar-10-binary.tar.gz", tiny_cifar(10).files("binary"))
    load(places[0])
    (oldest,) = files()
    load(places[1])
    for file in files():
        os.utime(file, (2, 2) if file == oldest else (1, 1))  # it was used again since
    load(places[2])
    assert len(files()) == 2
    assert oldest in files()


def decode_slowly(data: Path, counted: Path) -> None:
    """What a worker of a grid does; each that decodes leaves a file."""
    decoded.SMALLEST = 0
    read = BinaryLayout.read

    def slow(*given):
        (counted / str(os.getpid())).touch()
        return read(*given)

    BinaryLayout.read = slow
    load(data)


def test_workers_that_start_at_once_decode_once(data, tmp_path):
    counted = tmp_path / "counted"
    counted.mkdir()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=decode_slowly, args=(data, counted)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert len(list(counted.iterdir())) == 1
    assert len(files()) == 1
