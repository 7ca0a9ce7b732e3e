"""`--fit`: pictures that are no squares, from learning to asking."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.errors import InputError
from sparc.model_file import load

QUICK = ["--width", "0.125", "--depth", "1", "--epochs", "1", "--patches", "64"]
OLD = Path(__file__).parent.parent / "version-2.sparc"


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Wide pictures that differ at their ends alone."""
    for name, colour in (("red", (255, 0, 0)), ("blue", (0, 0, 255))):
        (tmp_path / "wide" / name).mkdir(parents=True)
        for number in range(6):
            picture = Image.new("RGB", (90, 30), (90 + number, 90, 90))
            picture.paste(colour, (0, 0, 20, 30))
            picture.paste(colour, (70, 0, 90, 30))
            picture.save(tmp_path / "wide" / name / f"{number}.png")
    return tmp_path / "wide"


def test_it_is_settled_when_a_model_is_made(wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.sparc"
    learn = ["learn", str(wide), "--model", str(model), *QUICK]
    assert main([*learn, "--fit", "pad"]) == 0
    assert load(model).info.shape.fit == "pad"
    assert load(model).info.shape.side == 64, "by the longer side"
    before = model.read_bytes()
    capsys.readouterr()
    assert main([*learn, "--name", "again", "--fit", "crop"]) == 2
    assert f"--fit of {model} is pad for good: leave it out" in capsys.readouterr().err
    assert model.read_bytes() == before
    assert main([*learn, "--name", "again"]) == 0
    assert load(model).info.shape.fit == "pad"
    assert main([*learn, "--name", "third", "--fit", "stretch"]) == 2
    assert "--fit" in capsys.readouterr().err


def test_what_a_model_was_made_with_is_shown(wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.sparc"
    assert main(["learn", str(wide), "--model", str(model), *QUICK, "--fit", "pad"]) == 0
    capsys.readouterr()
    for path, fit, words in ((model, "pad", "padded with the mean colour of its edge"), (OLD, "crop", "centre square")):
        assert main(["inspect", str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["fit"] == fit
        for verb in ("inspect", "card"):
            assert main([verb, str(path)]) == 0
            assert words in " ".join(capsys.readouterr().out.split())


def test_only_a_padded_picture_shows_its_ends(wide: Path, tmp_path: Path) -> None:
    """Both ways to ask agree, from Python and by a file."""
    paths = [wide / name / "0.png" for name in ("blue", "red")]
    for fit, differ in (("crop", False), ("pad", True)):
        classifier = ContinualClassifier(width=1 / 8, depth=1, epochs=1, patches=64, picture_fit=fit).learn(wide)
        blue, red = classifier.predict_proba(paths)
        assert np.allclose(blue, red) is not differ
        classifier.save(tmp_path / "m.sparc")
        loaded = ContinualClassifier.load(tmp_path / "m.sparc")
        assert loaded.picture_fit == fit
        opened = [Image.open(path) for path in paths]
        assert np.array_equal(loaded.predict_proba(opened), [blue, red])
        listed = ContinualClassifier(width=1 / 8, depth=1, epochs=1, patches=64, picture_fit=fit).learn(
            opened * 3, ["a", "b"] * 3
        )
        assert listed.model_.info.shape == classifier.model_.info.shape


def test_another_fit_is_refused(wide: Path) -> None:
    with pytest.raises(InputError, match="--fit stretch is not known: choose crop, pad"):
        ContinualClassifier(width=1 / 8, picture_fit="stretch").learn(wide)
