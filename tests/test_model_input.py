"""A picture becomes the same input on every way into a model."""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps, ImageStat
from torch import Tensor

import sparc.cli.export
from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.errors import InputError
from sparc.export import Exported
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import Model, load, save
from sparc.model_input import InputShape
from sparc.predictor import scores
from tests.models import INFO, learned_task, untaught

COLOURS = ("red", "green", "blue", "yellow", "#123456", "#fedcba", "white", "black")
CLASSES = ("cat", "dog", "eel")


def reference(picture: Image.Image, shape: InputShape) -> Tensor:
    """What the model should be given, by Pillow alone."""
    kind = "L" if shape.channels == 1 else "RGB"
    if shape.fit == "pad":
        whole = picture.resize((16, round(16 * 24 / 40)), Image.Resampling.BICUBIC, reducing_gap=3.0)
        edge = ImageOps.crop(whole, 1)
        colour = [
            (stat - inner) / (16 * 10 - 14 * 8)
            for stat, inner in zip(ImageStat.Stat(whole).sum, ImageStat.Stat(edge).sum, strict=True)
        ]
        square = Image.new("RGB", (16, 16), tuple(map(round, colour)))
        square.paste(whole, (0, 3))
        return torch.tensor(np.asarray(square.convert(kind))).reshape(16, 16, shape.channels)
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.resize((16, 16), Image.Resampling.BICUBIC, (left, top, left + side, top + side), reducing_gap=3.0)
    return torch.tensor(np.asarray(square.convert(kind))).reshape(16, 16, shape.channels)


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Coloured ones, no squares, each with a corner of another colour."""
    paths = []
    for number, colour in enumerate(COLOURS):
        picture = Image.new("RGB", (40, 24), colour)
        picture.paste(COLOURS[number - 1], (0, 0, 16, 9 + number))
        paths.append(tmp_path / "shown" / "cat" / f"{number}.png")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        picture.save(paths[-1])
    return paths


@pytest.fixture(params=[(1, "crop"), (3, "crop"), (1, "pad"), (3, "pad")], ids=str)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    channels, fit = request.param
    info = replace(
        INFO,
        shape=InputShape(channels, (16, 16), fit),
        settings=ChorusSettings(width=1 / 16, depth=1, statistics=0, patches=0),
        mean=(0.5,) * channels,
        std=(0.25,) * channels,
    )
    made = untaught(learned_task("pets", *CLASSES), info=info)
    with torch.no_grad():
        head, views = made.net.memories()[0].head, torch.linspace(-2, 2, 9)[:, None, None, None]
        head.weight.mul_(30)  # so that small differences between pictures count
        head.bias.sub_(made.net(views.expand(9, channels, 16, 16)).mean(0))  # and every class wins somewhere
    save(made, tmp_path / "pets.sparc")
    return tmp_path / "pets.sparc"


@pytest.fixture
def expected(model: Path, pictures: Sequence[Path]) -> Tensor:
    """Probabilities."""
    loaded = load(model)
    images = [reference(Image.open(path), loaded.info.shape) for path in pictures]
    probabilities = torch.from_numpy(scores(loaded, torch.stack(images).movedim(3, 1).contiguous())).softmax(1)
    assert len(probabilities.argmax(1).unique()) > 1, "or else every input would do"
    return probabilities


def test_predict(model: Path, pictures: list[Path], expected: Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(model), *map(str, pictures), "--top", "3", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = [{each["class"]: each["probability"] for each in row["predictions"]} for row in rows]
    assert [[row[name] for name in CLASSES] for row in found] == [
        pytest.approx(row, rel=1e-4, abs=1e-6) for row in expected.tolist()
    ]


def test_the_classifier(model: Path, pictures: list[Path], expected: Tensor) -> None:
    classifier = ContinualClassifier.load(model)
    for kind in (pictures, [Image.open(path) for path in pictures], str(pictures[0].parent)):
        np.testing.assert_allclose(classifier.predict_proba(kind), expected, atol=1e-5)


def test_test(model: Path, pictures: list[Path], expected: Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(model), str(pictures[0].parent.parent), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["classes"]
    assert found["taken_for"] == Counter(CLASSES[answer] for answer in expected.argmax(1).tolist())


def test_export(model: Path, pictures: list[Path], expected: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Tensor] = []

    def export(loaded: Model, path: Path, images: Tensor) -> Exported:
        compared.append(torch.from_numpy(scores(loaded, images)).softmax(1))
        return Exported(path, 1, len(images), 0.0, 1.0, 1.0)

    monkeypatch.setattr(sparc.cli.export, "export_onnx", export)
    assert main(["export", str(model), str(model.with_suffix(".onnx")), "--pictures", str(pictures[0].parent)]) == 0
    torch.testing.assert_close(compared[0], expected)


def test_learning_goes_on_from_coloured_pictures(model: Path, picture_folder: Callable[..., Path]) -> None:
    folder = picture_folder(classes=2, per_class=3)
    assert main(["learn", str(folder), "--model", str(model), "--epochs", "1"]) == 0
    assert load(model).info.classes == (*CLASSES, "class-0", "class-1")
    taught = ContinualClassifier.load(model).set_params(epochs=1).learn(folder, name="again")
    assert taught.predict(folder).shape == (6,)


@pytest.mark.parametrize(("channels", "image_size"), [(4, (8, 8)), (2, (8, 12)), (1, (9, 8))])
def test_models_of_arrays_take_no_pictures_but_can_be_exported(
    tmp_path: Path,
    pictures: list[Path],
    capsys: pytest.CaptureFixture[str],
    channels: int,
    image_size: tuple[int, int],
) -> None:
    pytest.importorskip("onnxruntime")
    random = np.random.default_rng(0)
    arrays = random.integers(0, 256, (8, *image_size, channels), np.uint8)
    classifier = ContinualClassifier(width=1 / 16, depth=1, epochs=1).fit(arrays, [0, 1] * 4)
    sentence = "not for squares" if image_size[0] != image_size[1] else "not for grey or coloured ones"
    for use in (classifier.predict, classifier.learn):
        with pytest.raises(InputError, match=sentence):
            use(pictures[0].parent.parent)
    model, onnx = tmp_path / "arrays.sparc", str(tmp_path / "arrays.onnx")
    classifier.save(model)
    folder = str(pictures[0].parent.parent)
    for arguments in (
        ["predict", str(model), folder],
        ["test", str(model), folder],
        ["learn", folder, "--model", str(model)],
        ["export", str(model), onnx, "--pictures", folder],
    ):
        assert main(arguments) == 2
        assert f"{model} is for pictures of" in (said := capsys.readouterr().err)
        assert sentence in said
    assert main(["export", str(model), onnx]) == 0


def test_pictures_that_cannot_be_read_are_named(model: Path, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    classifier = ContinualClassifier.load(model)
    for name, sentence in (
        ("text.png", "it cannot be decoded"),
        ("none.png", "there is no such file"),
        ("pipe.png", "neither a file nor a folder"),
        ("empty", "holds no pictures"),
    ):
        with pytest.raises(InputError, match=f"{name}.*{sentence}"):
            classifier.predict(tmp_path / name)


@pytest.mark.parametrize("side", [4, 2000])
def test_sizes_that_no_net_takes_are_refused(pictures: list[Path], side: int) -> None:
    with pytest.raises(InputError, match="sides of 8 to 1024 pixels"):
        ContinualClassifier(image_size=side).learn(pictures, [0, 1] * 4)
