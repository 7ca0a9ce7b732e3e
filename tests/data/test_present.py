"""Whether a set is there is told without reading it, and agrees with what reading it would find."""

from pathlib import Path

import pytest

from sparc.data import sources


def test_digits_are_always_there() -> None:
    assert sources.find("digits").present()


def test_miniimagenet_has_no_download() -> None:
    assert not sources.find("miniimagenet").fetchable()
    assert sources.find("tinyimagenet").fetchable()


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
