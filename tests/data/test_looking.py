"""Where the named sources look, in which order, and what they say when they find nothing."""

import ast
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sparc import data
from sparc.data import sources
from sparc.data.download import Remote
from sparc.data.sources import find, names
from sparc.data.sources.cifar import Cifar100
from sparc.errors import InputError


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="cifar100"):
        find("cifar-100")
    with pytest.raises(InputError, match="digits"):
        find("didgits")
    with pytest.raises(InputError, match="unknown data set “folder”"):
        find("folder")


@pytest.mark.parametrize("name", [name for name in names() if getattr(find(name), "remote", None)])
def test_without_a_network_one_sentence_says_what_to_do(name, tmp_path, cache):
    source = find(name)
    with pytest.raises(InputError) as caught:
        source.load(tmp_path)
    assert str(caught.value).startswith(
        f"{source.title} is neither in {tmp_path} nor in {cache}, and {source.remote.url} could not be reached ("
    )
    assert str(caught.value).endswith(f"): put {source.accepts} into {tmp_path}")
    with pytest.raises(InputError, match=f"^{source.title} is not in {cache}, and .* into {cache}$"):
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


@pytest.fixture
def nearby(tiny_cifar, pack, serve):
    """CIFAR-100, to be fetched from a server of this machine."""
    content = pack(serve.folder / "cifar-100-binary.tar.gz", tiny_cifar(100).files("binary")).read_bytes()
    url = f"https://127.0.0.1:{serve.port}/cifar-100-binary.tar.gz"

    class Nearby(Cifar100):
        remote = Remote(url, hashlib.sha256(content).hexdigest(), len(content))

    return Nearby()


def test_what_is_fetched_is_kept(nearby, cache, monkeypatch):
    steps = []
    train, _ = nearby.load(progress=lambda *step: steps.append(step))
    assert train.counts() == [2] * 100
    content = (cache / "cifar100" / "cifar-100-binary.tar.gz").read_bytes()
    assert hashlib.sha256(content).hexdigest() == nearby.remote.sha256
    assert steps[-1][1:] == (len(content), len(content))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert nearby.load().train.fingerprint() == train.fingerprint()


def test_two_at_once_fetch_a_set_once(nearby, serve, cache):
    waiting = threading.Event()

    def tell(what, done, total):
        if "which another process fetches" in what:
            waiting.set()

    with ThreadPoolExecutor(1) as pool:
        second = []

        def wait_for_the_second(what, done, total):
            if not second:
                second.append(pool.submit(nearby.load, progress=tell))
                assert waiting.wait(60)

        first = nearby.load(progress=wait_for_the_second)
        assert second[0].result().train.fingerprint() == first.train.fingerprint()
    assert len(serve.asked) == 1
    assert [path.name for path in cache.iterdir()] == ["cifar100"]


def test_a_cache_that_cannot_be_written(nearby, serve, cache):
    cache.parent.rmdir()
    cache.parent.touch()
    with pytest.raises(InputError, match=f"XDG_CACHE_HOME's {cache} cannot be written"):
        nearby.load()
    assert serve.asked == []


@pytest.mark.parametrize("link", ["", "cifar100"])
def test_a_link_to_a_folder_that_is_gone_is_filled_again(nearby, cache, tmp_path, link):
    (cache / link).parent.mkdir(parents=True, exist_ok=True)
    (cache / link).symlink_to(tmp_path / "gone" / "away")
    assert nearby.load().train.counts() == [2] * 100
    assert (tmp_path / "gone" / "away").is_dir()


def test_what_a_killed_download_left_is_cleared_away(nearby, cache):
    (cache / "cifar100").mkdir(parents=True)
    (cache / "cifar100" / ".cifar-100-binary.tar.gz.x.part").write_bytes(b"begun")
    nearby.load()
    assert [path.name for path in (cache / "cifar100").iterdir()] == ["cifar-100-binary.tar.gz"]


PARQUET = ["cifar10", "cifar100", "tinyimagenet"]


@pytest.fixture
def put_parquet(tiny_cifar, tiny_tiny):
    """The files of a set in a folder; which set it is can be told by the number of its classes."""

    def put(name, folder):
        if name == "tinyimagenet":
            tiny_tiny.parquet(folder / "train-0.parquet", folder / "val-0.parquet")
        else:
            tiny_cifar(int(name.removeprefix("cifar"))).parquet(
                [folder / "train-0.parquet"], [folder / "test-0.parquet"]
            )

    return put


def test_all_sets_side_by_side_as_parquet(put_parquet, tmp_path):
    for name in PARQUET:
        put_parquet(name, tmp_path / name)
    for name in PARQUET:
        train, test = find(name).load(tmp_path)
        assert len(train.class_names) == len(test.class_names) == find(name).classes


@pytest.mark.parametrize("where", ["", "data", "{other}", "plain_text"])
@pytest.mark.parametrize(("name", "other"), [(name, other) for name in PARQUET for other in PARQUET if name != other])
def test_parquet_of_another_set_does_not_stop_the_search(put_parquet, tmp_path, cache, name, other, where):
    put_parquet(other, tmp_path / where.format(other=other))
    with pytest.raises(InputError, match="is neither in"):
        find(name).load(tmp_path)
    put_parquet(name, cache / name)
    assert len(find(name).load(tmp_path).train.class_names) == find(name).classes


@pytest.mark.parametrize("name", PARQUET)
@pytest.mark.parametrize("where", ["", "data"])
def test_parquet_of_another_set_is_an_error_in_the_set_s_own_folder(put_parquet, tmp_path, name, where):
    for other in set(PARQUET) - {name}:
        root = tmp_path / other
        put_parquet(other, root / name / where)
        for folder in (root, root / name):
            with pytest.raises(InputError, match=f"{root / name / where}.* (does not name|but no|columns)"):
                find(name).load(folder)


@pytest.mark.parametrize("classes", [9, 11])
def test_parquet_of_another_number_of_classes(shard, tmp_path, classes):
    """Such as SVHN's or that of somebody's own set, whose columns are called the same."""
    for folder in (tmp_path / "root", tmp_path / "other" / "cifar10"):
        for part in ("train", "test"):
            shard(folder / f"{part}.parquet", [b""], [0], ["a"] * classes, "img", "label")
    with pytest.raises(InputError, match="is neither in"):
        find("cifar10").load(tmp_path / "root")
    with pytest.raises(InputError, match=rf"train\.parquet names {classes} classes where there should be 10"):
        find("cifar10").load(tmp_path / "other")


def test_parquet_with_other_splits(shard, tmp_path):
    """They would do by their columns, but they are not the split that the set is known for."""
    for folder in (tmp_path / "root", tmp_path / "other" / "cifar10"):
        for part in ("train", "val"):
            shard(folder / f"{part}.parquet", [b""], [0], ["a"] * 10, "img", "label")
    with pytest.raises(InputError, match="is neither in"):
        find("cifar10").load(tmp_path / "root")
    with pytest.raises(InputError, match=r"cifar10 holds train\.parquet but no test\*\.parquet: fetch that as well"):
        find("cifar10").load(tmp_path / "other")


def test_no_sentence_ends_with_a_full_stop():
    """As the program's own, which stand beside them."""
    files = [*Path(data.__file__).parent.glob("*.py"), *Path(sources.__file__).parent.glob("*.py")]
    ends = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error") and node.args:
                ends.append((path.name, ast.unparse(node.args[0])))
    assert len(ends) > 40
    assert [end for end in ends if end[1].rstrip("'\"").endswith(".")] == []
