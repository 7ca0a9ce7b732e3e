import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from safetensors.torch import save_file

from sparc.data.imageset import Splits
from sparc.edit import forget
from sparc.errors import InputError
from sparc.files import locked
from sparc.learner import learn, new_model
from sparc.methods.sparc.chorus import Chorus
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import LearnedTask, load, save
from sparc.model_input import InputShape
from sparc.predictor import scores
from tests.examples import blobs
from tests.models import INFO, learned_task, untaught

SOURCE = Path(__file__).parent.parent / "src"


SMALL = replace(INFO, shape=InputShape(3, (16, 16)), settings=ChorusSettings(width=1 / 16, depth=2))
PETS = (learned_task("pets", "cat", "собака", "鳥"), learned_task("more", "cat"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(untaught(*PETS, info=SMALL), tmp_path / "pets.sparc")
    return tmp_path / "pets.sparc"


def description(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    described: dict[str, object] = json.loads(header["__metadata__"]["sparc-model"])
    return described


def rewritten(path: Path, text: str) -> Path:
    """The same weights with another description."""
    path.write_bytes(to_bytes(from_bytes(path.read_bytes()), {"sparc-model": text}))
    return path


def changed(path: Path, **change: object) -> Path:
    """The same weights with something else said of them."""
    described = description(path)
    about: dict[str, object] = described["about"]  # type: ignore[assignment]
    return rewritten(path, json.dumps({**described, "about": {**about, **change}}))


def test_a_model_comes_back_as_it_was(path: Path) -> None:
    first = load(path)
    assert first.info == replace(SMALL, tasks=PETS)
    assert all(memory.frozen for memory in first.net.memories())
    save(first, path.with_name("again.sparc"))
    assert path.with_name("again.sparc").read_bytes() == path.read_bytes()


def test_a_class_learned_twice_is_one_class(path: Path) -> None:
    info = load(path).info
    assert info.classes == ("cat", "собака", "鳥")
    assert [info.labels(task) for task in info.tasks] == [[0, 1, 2], [0]]


def test_a_model_without_tasks_is_a_model(tmp_path: Path) -> None:
    save(untaught(), tmp_path / "empty.sparc")
    assert load(tmp_path / "empty.sparc").info.classes == ()


def test_what_is_there_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no model .*none\.sparc: make one with sparc learn"):
        load(tmp_path / "none.sparc")
    with pytest.raises(InputError, match="is a folder: name a model file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a device or a pipe: name a model file"):
        load(tmp_path / "pipe")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_a_file_that_was_cut_off(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"pets\.sparc (is not a model, or was cut off|cannot be read)"):
        load(path)


def test_a_newer_version(path: Path) -> None:
    with pytest.raises(InputError, match="is of version 9, and this sparc reads 1 to 8: update sparc"):
        load(rewritten(path, json.dumps({**description(path), "version": 9})))


def test_statistics_come_back_to_the_bit(tmp_path: Path) -> None:
    pictures = [replace(blobs(5, 3, seed), class_names=(f"{seed}a", f"{seed}b", f"{seed}c")) for seed in range(2)]
    taught = new_model(pictures[0], ChorusSettings(width=1 / 16, statistics=8), seed=0)
    for number, each in enumerate(pictures):
        taught = learn(taught, Splits(each, each), f"task {number}", replace(Chorus.recipe, epochs=1))
    taught = forget(taught, tasks=["task 0"])
    save(taught, tmp_path / "model.sparc")
    again = load(tmp_path / "model.sparc")
    kept, loaded = taught.net.voices.state_dict(), again.net.voices.state_dict()
    assert kept["0.gaussians.scatters"].dtype == torch.float64
    assert kept["0.seed"] == 1, "of the memory that was the second"
    assert kept.keys() == loaded.keys()
    assert all(torch.equal(kept[name], loaded[name]) for name in kept)
    assert np.array_equal(scores(again, pictures[1].images), scores(taught, pictures[1].images))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("counts", 0, "not of the pictures that it has learned from"),
        ("counts", -7, "not of the pictures that it has learned from"),
        ("counts", 8, "not of the pictures that it has learned from"),
        ("scatters", -1.0, "of no pictures that there can be"),
        ("scatters", 1e308, "of no pictures that there can be"),
        ("means", 1e300, "of no pictures that there can be"),
    ],
)
def test_statistics_that_cannot_be(tmp_path: Path, name: str, value: float, sentence: str) -> None:
    """Whatever their checksum says."""
    broken = untaught(*PETS, info=SMALL)
    getattr(broken.net.all_voices()[1].gaussians, name).fill_(value)
    save(broken, tmp_path / "broken.sparc")
    with pytest.raises(InputError, match=sentence):
        load(tmp_path / "broken.sparc")


@pytest.mark.parametrize(("name", "value"), [("seed", -1), ("scale", 0.0), ("scale", -1.0)])
@pytest.mark.parametrize("tasks", [(), PETS])
def test_seeds_and_scales_that_cannot_be(tmp_path: Path, tasks: Sequence[LearnedTask], name: str, value: float) -> None:
    broken = untaught(*tasks, info=SMALL)
    getattr(broken.net.all_voices()[-1], name).fill_(value)
    save(broken, tmp_path / "broken.sparc")
    with pytest.raises(InputError, match=r"damaged \(its statistics have no seed or scale that there can be\)"):
        load(tmp_path / "broken.sparc")


def test_somebody_elses_safetensors(tmp_path: Path) -> None:
    save_file({"weight": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="is a safetensors file, but no SPARC model"):
        load(tmp_path / "other.safetensors")


def test_a_flipped_bit_in_the_weights(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="its content does not match its checksum"):
        load(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"settings": {"width": 1e4, "depth": 8}}, "damaged"),
        ({"settings": {"width": 16, "depth": 4}}, "too small"),
        ({"settings": {"width": 0, "depth": 2}}, "damaged"),
        ({"settings": {"width": 1, "depth": None}}, "how deep its net is"),
        ({"shape": {"channels": 10**9, "image_size": [16, 16]}}, "channels"),
        ({"settings": {"width": 100, "depth": 1}, "tasks": []}, "small"),
        ({"settings": {"width": 1 / 16, "depth": 2, "alpha": 0.5}}, "its content does not match its checksum"),
        ({"tasks": []}, "does not hold the tensors"),
        ({"tasks": None}, "tasks should be a list"),
        ({"mean": [0.5]}, "a mean and a positive deviation"),
        ({"std": [0.0, 0.0, 0.0]}, "a mean and a positive deviation"),
        ({"settings": {"kappa": "5"}}, "kappa should be a number"),
        ({"settings": {"width": 1 / 16, "depth": 2, "statistics": 4}}, "tensor voices.* is not as the net"),
        ({"settings": {"width": 1 / 16, "depth": 2, "statistics": 0}}, "does not hold the tensors"),
        ({"settings": {"width": 1 / 16, "depth": 2, "statistics": -1}}, "--statistics -1"),
        ({"settings": {"width": 1 / 16, "depth": 2, "statistics": 1.5}}, "statistics should be a whole number"),
        ({"settings": {"width": 64, "depth": 1, "statistics": 10**9}}, "too small"),
        ({"numbered": True}, "classes should be numbers"),
    ],
)
def test_a_description_that_cannot_be(path: Path, change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load(changed(path, **change))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "nonsense", "[" * 100_000, '{"version": 2}']
    + [f'{{"version": {version}, "about": {{"shape": 3}}}}' for version in (1, 2, 3)],
)
def test_a_description_that_is_none(path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"pets\.sparc is damaged"):
        load(rewritten(path, text))


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        ([("pets", ["a", "a", "a"]), ("more", ["cat"])], "every class once"),
        ([("pets", ["a", "b", "c"]), ("pets", ["cat"])], "names of their own"),
        ([("pets", ["a", "b", "c"]), ("more", list(map(str, range(200_000))))], "too small for the net"),
    ],
)
def test_tasks_that_cannot_be(path: Path, tasks: list[tuple[str, list[str]]], sentence: str) -> None:
    usual = asdict(learned_task("any", "any"))
    described = [{**usual, "name": name, "classes": of, "pictures": [1] * len(of)} for name, of in tasks]
    with pytest.raises(InputError, match=sentence):
        load(changed(path, tasks=described))


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    broken = untaught(learned_task("pets", "cat", "dog"), info=SMALL)
    with torch.no_grad():
        broken.net.memories()[0].head.bias[0] = float("nan")
    save(broken, tmp_path / "nan.sparc")
    with pytest.raises(InputError, match="some of its weights are no numbers"):
        load(tmp_path / "nan.sparc")


def test_weights_of_another_kind(path: Path) -> None:
    content = path.read_bytes()
    tensors = from_bytes(content)
    tensors["semantic.filters.0"] = tensors["semantic.filters.0"].to(torch.float16)
    path.write_bytes(to_bytes(tensors, {"sparc-model": json.dumps(description(path))}))
    with pytest.raises(InputError, match=r"tensor semantic\.filters\.0 is not as the net"):
        load(path)


def test_heads_of_another_size_than_described(path: Path) -> None:
    tasks = [asdict(each) for each in load(path).info.tasks]
    tasks[1] |= {"classes": ["a", "b"], "pictures": [1, 1]}
    with pytest.raises(InputError, match=r"tensor working\.1\.head\.\w+ is not as the net"):
        load(changed(path, tasks=tasks))


class Harm:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch harmed",)


def test_a_pickle_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pickle.sparc").write_bytes(pickle.dumps(Harm()))
    torch.save({"weight": torch.zeros(3)}, "torch.sparc")
    for name in ("pickle.sparc", "torch.sparc"):
        with pytest.raises(InputError, match=f"{name} is not a model"):
            load(Path(name))
    assert not Path("harmed").exists()


def test_no_load_path_knows_pickle() -> None:
    """One module reads CIFAR's archives, with a reader that can build arrays and nothing else; one reads the weights of
    a package, which it knows by their digest, with a reader that looks up nothing but four names of its own.
    """
    reads = ["pickle", "torch.load", "joblib", "np.load", "numpy.load", "marshal", "shelve", "eval(", "exec("]
    found = {
        (file.name, word)
        for file in SOURCE.rglob("*.py")
        for line in file.read_text().splitlines()
        for word in reads
        if word in line.replace(".eval(", "").replace("pickles", "")
    }
    assert {name for name, _ in found} <= {"pickles.py", "cifar.py", "lite0_weights.py"}, found
    assert not [word for _, word in found if word != "pickle"], found
    assert "find_class" in (SOURCE / "sparc" / "nn" / "lite0_weights.py").read_text()


@pytest.mark.parametrize("times", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_damaged_files_are_refused_or_read(tmp_path: Path, fuzz: Callable[..., dict[str, float]], times: int) -> None:
    """No traceback, no hang, no memory."""
    save(
        untaught(learned_task("pets", "cat", "dog"), learned_task("more", "bird"), info=SMALL), tmp_path / "pets.sparc"
    )
    report = fuzz("model", [tmp_path / "pets.sparc"], times, seconds=200)
    assert report["tried"] == times
    assert report["refused"] > 0.9 * times
    assert report["megabytes"] < 1024


def test_the_second_to_come_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pets.sparc"
    code = (
        f"import sys; from pathlib import Path; from sparc.files import locked\nwith locked(Path({str(path)!r})): pass"
    )
    with locked(path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another process is at work on" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_lock_of_the_dead_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "pets.sparc"
    code = (
        "import os; from pathlib import Path; from sparc.files import locked\n"
        f"with locked(Path({str(path)!r})): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    with locked(path):
        pass


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(load(path), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["pets.sparc"]


def test_a_kill_while_saving_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    code = (
        "import os; from pathlib import Path\n"
        "from sparc.edit import forget; from sparc.model_file import load, save\n"
        "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
        f"path = Path({str(path)!r}); save(forget(load(path), ['cat']), path)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert path.read_bytes() == before
    assert load(path).info.classes == ("cat", "собака", "鳥")


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(path: Path) -> None:
    mask = os.umask(0o022)
    try:
        save(load(path), path.with_name("new.sparc"))
    finally:
        os.umask(mask)
    assert path.with_name("new.sparc").stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)
    save(load(path), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("link.sparc")
    link.symlink_to(path.name)
    save(untaught(learned_task("other", "ant")), link)
    assert link.is_symlink()
    assert load(path).info.classes == ("ant",)


def test_a_lock_that_is_a_link_is_not_followed(path: Path) -> None:
    mine = path.with_name("mine.txt")
    mine.write_text("keep")
    path.with_name(f".{path.name}.lock").symlink_to(mine)
    with pytest.raises(InputError, match="cannot be locked"), locked(path):
        pass
    assert mine.read_text() == "keep"
