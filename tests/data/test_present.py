"""Whether a set is there is told without reading it, and agrees with what reading it would find."""

from pathlib import Path

import pytest

from sparc.data import sources
from sparc.errors import InputError


@pytest.mark.parametrize("name", [name for name in sources.names() if name != "digits"])
def test_nothing_is_there_in_an_empty_folder(name: str, tmp_path: Path) -> None:
    assert not sources.find(name).present(tmp_path)
    assert sources.find(name).fetchable() is (name != "miniimagenet")


def test_digits_are_always_there() -> None:
    assert sources.find("digits").present()


@pytest.mark.parametrize("where", ["cifar-100-binary.tar.gz", "cifar100/cifar-100-python.tar.gz"])
def test_an_archive_is_there_by_its_name(where: str, tmp_path: Path) -> None:
    (tmp_path / where).parent.mkdir(exist_ok=True)
    (tmp_path / where).touch()
    assert sources.find("cifar100").present(tmp_path)
    assert not sources.find("cifar10").present(tmp_path)


def test_parquet_files_are_told_by_their_headers(tiny_cifar, tmp_path, monkeypatch) -> None:
    tiny_cifar(100).parquet([tmp_path / "train.parquet"], [tmp_path / "test.parquet"])
    assert sources.find("cifar100").present(tmp_path)
    assert not sources.find("cifar10").present(tmp_path)
    assert not sources.find("tinyimagenet").present(tmp_path)
    monkeypatch.setenv("SPARC_DATA", str(tmp_path))
    assert sources.find("cifar100").present()


def test_tinyimagenet_in_each_of_its_forms(tiny_tiny, pack, tmp_path) -> None:
    pack(tmp_path / "folder", tiny_tiny.files())
    (tmp_path / "zip").mkdir()
    (tmp_path / "zip" / "tiny-imagenet-200.zip").touch()
    tiny_tiny.parquet(tmp_path / "parquet" / "train.parquet", tmp_path / "parquet" / "valid.parquet")
    for form in ("folder", "zip", "parquet", "folder/tiny-imagenet-200"):
        assert sources.find("tinyimagenet").present(tmp_path / form)


def test_miniimagenet_by_its_list_and_by_its_folders(tmp_path: Path) -> None:
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "train.csv").touch()
    (tmp_path / "folders" / "n01234567").mkdir(parents=True)
    for form in ("list", "folders"):
        assert sources.find("miniimagenet").present(tmp_path / form)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        sources.find("cifar100").present(tmp_path / "nowhere")
