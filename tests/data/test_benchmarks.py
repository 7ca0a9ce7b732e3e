from collections.abc import Callable
from pathlib import Path

import pytest

from sparc.data import sources
from sparc.data.benchmarks import BENCHMARKS, find
from sparc.data.stream import Stream
from sparc.errors import InputError


def test_the_papers_benchmarks_are_there() -> None:
    tasks = {
        "seq-digits": 5,
        "seq-cifar10": 5,
        "seq-cifar100-5": 5,
        "seq-cifar100-10": 10,
        "seq-cifar100-20": 20,
        "seq-cifar100-50": 50,
        "seq-tinyimagenet": 10,
        "seq-miniimagenet": 20,
    }
    assert {name: BENCHMARKS[name].tasks for name in tasks} == tasks


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_of_a_data_set_that_is_there(name: str) -> None:
    benchmark = find(name)
    assert benchmark is BENCHMARKS[name]
    assert benchmark.source in sources.names()
    assert benchmark.fetchable() is sources.find(benchmark.source).fetchable()
    assert (benchmark.mean is None) == (benchmark.std is None)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown benchmark “seq-cifar-100-5”: did you mean seq-cifar100-5"):
        find("seq-cifar-100-5")


def test_a_path_that_is_not_there_is_refused_as_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        find(str(tmp_path / "nothing"))


def test_a_data_set_can_be_run_by_its_bare_name() -> None:
    assert find("digits").load().train.class_names == tuple("0123456789")


@pytest.mark.parametrize(("classes", "tasks"), [(1, 1), (3, 1), (4, 2), (10, 5), (30, 5)])
def test_a_folder_has_two_classes_a_task_where_it_can(tmp_path: Path, classes: int, tasks: int) -> None:
    assert len(find(str(tmp_path)).task_sizes(classes)) == tasks


def test_a_first_task_may_have_more_classes_than_the_others() -> None:
    assert find("seq-cifar100-50+10").task_sizes(100) == (50, *[5] * 10)
    assert find("seq-cifar100-5").task_sizes(100) == (20,) * 5


def test_a_folder_is_normalized_by_its_first_task(picture_folder: Callable[..., Path]) -> None:
    benchmark = find(str(picture_folder(classes=4)))
    splits = benchmark.load()
    assert splits.train.size == (32, 32)
    augment = benchmark.augment(Stream(splits, [2, 2])[0])
    values = splits.train.images[splits.train.labels < 2].double() / 255
    assert augment.mean == pytest.approx(values.mean((0, 2, 3)).tolist())


def test_image_size_is_a_folders(picture_folder: Callable[..., Path]) -> None:
    assert find(str(picture_folder(side=70))).load(image_size=48).train.size == (48, 48)
    with pytest.raises(InputError, match="--image-size is for a folder"):
        find("seq-digits").load(image_size=48)


def test_digits_statistics_are_the_data_sets_own() -> None:
    benchmark = find("seq-digits")
    images = benchmark.load().train.images.double() / 255
    assert benchmark.mean == (round(images.mean().item(), 4),)
    assert benchmark.std == (round(images.std(correction=0).item(), 4),)


def test_whether_the_pictures_are_there(tmp_path: Path) -> None:
    assert find("seq-digits").present()
    assert not find("seq-cifar100-5").present(tmp_path)
    assert find("seq-cifar100-5").fetchable()
    assert not find("seq-miniimagenet").fetchable()
    (tmp_path / "cifar-100-binary.tar.gz").touch()
    assert find("seq-cifar100-20").present(tmp_path)


def test_damaged_pictures_are_not_there_and_a_wrong_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "cifar100").mkdir()
    for part in ("train", "test"):
        (tmp_path / "cifar100" / f"{part}.parquet").write_bytes(b"not parquet")
    assert not find("seq-cifar100-5").present(tmp_path)
    with pytest.raises(InputError, match="nowhere"):
        find("seq-cifar100-5").present(tmp_path / "nowhere")
