"""Where the named sources look, in which order, and what they say when they find nothing."""

import hashlib
import inspect

import pytest

from sparc.data.download import Remote
from sparc.data.sources import Folder, Source, find, names
from sparc.data.sources.cifar import Cifar10, Cifar100
from sparc.errors import InputError

STORED = ["cifar10", "cifar100", "miniimagenet", "tinyimagenet"]


def test_every_source_is_found_by_its_name():
    assert names() == sorted([*STORED, "digits"])
    for name in names():
        source = find(name)
        assert isinstance(source, Source)
        assert source.name == name
        assert source.title
        assert not inspect.isabstract(type(source))
    assert issubclass(Folder, Source)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="cifar100"):
        find("cifar-100")
    with pytest.raises(InputError, match="digits"):
        find("didgits")
    with pytest.raises(InputError, match="unknown data set “folder”"):
        find("folder")


@pytest.mark.parametrize("name", STORED)
def test_a_data_folder_that_is_not_there(name, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    for path, message in ((tmp_path / "gone", "does not exist"), (tmp_path / "file", "is not a folder")):
        with pytest.raises(InputError, match=f"{path}, {message}"):
            find(name).load(path)
        monkeypatch.setenv("SPARC_DATA", str(path))
        with pytest.raises(InputError, match=f"SPARC_DATA names, {path}, {message}"):
            find(name).load()


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "tinyimagenet"])
def test_without_a_network_one_sentence_says_what_to_do(name, tmp_path, cache):
    source = find(name)
    with pytest.raises(InputError) as caught:
        source.load(tmp_path)
    assert str(caught.value).startswith(
        f"{source.title} is neither in {tmp_path} nor in {cache}, and {source.remote.url} could not be reached ("
    )
    assert str(caught.value).endswith(f"): put {source.accepts} into {tmp_path}.")
    assert source.remote.filename in source.accepts
    with pytest.raises(InputError, match=f"^{source.title} is not in {cache}, and .* into {cache}.$"):
        source.load()


def test_the_named_folder_goes_before_the_variable_and_that_before_the_cache(
    tiny_cifar, pack, tmp_path, cache, monkeypatch
):
    def put(root, colour):
        tiny = tiny_cifar(10)
        tiny.train[:] = colour
        pack(root / "cifar-10-binary.tar.gz", tiny.files("binary"))

    def seen(data=None):
        return int(find("cifar10").load(data).train.images[0, 0, 0, 0])

    put(cache, 1)
    assert seen() == 1
    (tmp_path / "empty").mkdir()
    assert seen(tmp_path / "empty") == 1
    put(tmp_path / "variable", 2)
    monkeypatch.setenv("SPARC_DATA", str(tmp_path / "variable"))
    assert seen() == 2
    put(tmp_path / "named", 3)
    assert seen(tmp_path / "named") == 3


def test_the_home_folder_has_the_cache_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match=f"CIFAR-10 is not in {tmp_path}/.cache/sparc, and"):
        find("cifar10").load()


def test_what_is_fetched_is_kept(tiny_cifar, pack, serve, cache, monkeypatch):
    content = pack(serve.folder / "cifar-100-binary.tar.gz", tiny_cifar(100).files("binary")).read_bytes()
    url = f"https://127.0.0.1:{serve.port}/cifar-100-binary.tar.gz"

    class Nearby(Cifar100):
        remote = Remote(url, hashlib.sha256(content).hexdigest(), len(content))

    steps = []
    train, _ = Nearby().load(progress=lambda *step: steps.append(step))
    assert train.counts() == [2] * 100
    assert (cache / "cifar100" / "cifar-100-binary.tar.gz").read_bytes() == content
    assert steps[-1][1:] == (len(content), len(content))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert Nearby().load().train.fingerprint() == train.fingerprint()


def test_what_is_pinned():
    for source in (Cifar10, Cifar100, type(find("tinyimagenet"))):
        assert source.remote.url.startswith("https://")
        assert len(bytes.fromhex(source.remote.sha256)) == 32
        assert 160_000_000 < source.remote.size < 260_000_000
