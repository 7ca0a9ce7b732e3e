"""What holds for every data set, whoever adds one: nothing here knows them by name."""

import inspect
from pathlib import Path

import pytest

from sparc.cli.main import main
from sparc.data import benchmarks
from sparc.data.sources import Source, find, names
from sparc.data.sources.stored import StoredSource
from sparc.errors import InputError

EVERY = pytest.mark.parametrize("source", [find(name) for name in names()], ids=names())
STORED = [name for name in names() if isinstance(find(name), StoredSource)]


@EVERY
def test_it_says_what_it_is(source: Source) -> None:
    assert isinstance(find(source.name), type(source))
    assert source.name.isidentifier()
    assert source.name.islower()
    assert source.title.isprintable()
    assert inspect.getmodule(type(source)).__doc__


@EVERY
def test_it_is_a_benchmark_by_its_bare_name(source: Source) -> None:
    benchmark = benchmarks.find(source.name)
    assert (benchmark.name, benchmark.source) == (source.name, source.name)
    assert benchmark.fetchable() is source.fetchable()


@EVERY
def test_it_is_listed(source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks"]) == 0
    assert source.name in capsys.readouterr().out


@EVERY
def test_without_files_and_network_it_loads_or_says_what_to_do(source: Source, tmp_path: Path, cache: Path) -> None:
    if source.present(tmp_path):
        splits = source.load(tmp_path)
        assert splits.train.class_names == splits.test.class_names
        for part, again in zip(splits, source.load(), strict=True):
            assert min(part.counts()) > 0
            assert part.fingerprint() == again.fingerprint()
        return
    with pytest.raises(InputError) as caught:
        source.load(tmp_path)
    assert str(caught.value).startswith(f"{source.title} is neither in {tmp_path} nor in {cache}, and ")
    assert str(caught.value).endswith(f": put {source.accepts} into {tmp_path}")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", STORED)
def test_a_stored_one_is_known_by_its_folder_and_its_number_of_classes(name: str, tmp_path: Path) -> None:
    source = find(name)
    assert isinstance(source, StoredSource)
    assert source.classes > 1
    assert source.accepts
    assert source.name in source.folders
    assert all(source.goes_by(folder) for folder in source.folders)
    assert not source.present(tmp_path)


@pytest.mark.parametrize("name", STORED)
def test_a_download_is_pinned(name: str) -> None:
    source = find(name)
    assert isinstance(source, StoredSource)
    assert source.fetchable() is (source.remote is not None)
    if source.remote is not None:
        assert source.remote.url.startswith("https://")
        assert len(bytes.fromhex(source.remote.sha256)) == 32
        assert source.remote.size > 0
        assert source.remote.filename in source.accepts


@pytest.mark.parametrize("name", STORED)
def test_a_data_folder_that_is_not_there_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, message in ((tmp_path / "gone", "does not exist"), (tmp_path / "file", "is not a folder")):
        for ask in (find(name).load, find(name).present):
            with pytest.raises(InputError, match=f"{path}, {message}"):
                ask(path)
        monkeypatch.setenv("SPARC_DATA", str(path))
        with pytest.raises(InputError, match=f"SPARC_DATA names, {path}, {message}"):
            find(name).load()
