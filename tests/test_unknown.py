"""“None of these”, and probabilities that can be relied on."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial.distance import mahalanobis
from torch import Generator

from sparc.calibration import (
    BINS,
    TEMPERATURES,
    Check,
    calibration_error,
    checked,
    known_strangeness,
    limit,
    reliability,
    temperature,
)
from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.errors import InputError
from sparc.nn.chorus import Voice
from sparc.nn.described import LEAST

SIDE = 16
CLASSES = ("upright", "slanted", "level", "falling")
Pixels = NDArray[np.uint8]


def stripes(angle: float, count: int, seed: int) -> Pixels:
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    phase = random.uniform(0, 2 * math.pi, (count, 1, 1))
    waves = np.sin(columns * math.cos(angle) + rows * math.sin(angle) + phase)
    grey = 120 + 80 * waves + random.normal(0, 12, (count, SIDE, SIDE))
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, axis=3)


def squares(count: int, seed: int) -> Pixels:
    random = np.random.default_rng(seed)
    cells = random.integers(0, 2, (count, SIDE // 4, SIDE // 4)).repeat(4, 1).repeat(4, 2)
    grey = 60 + 140 * cells + random.normal(0, 12, (count, SIDE, SIDE))
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, axis=3)


def of_class(name: str, count: int, seed: int) -> Pixels:
    return stripes(CLASSES.index(name) * math.pi / len(CLASSES), count, seed)


def taught(count: int = 60) -> ContinualClassifier:
    """In two portions, from patches alone."""
    classifier = ContinualClassifier(start="nothing", flip=False, patches=96)
    for number, names in enumerate((CLASSES[:2], CLASSES[2:])):
        images = np.concatenate([of_class(name, count, seed=number) for name in names])
        classifier.learn(images, np.repeat(names, count))
    return classifier


@pytest.fixture(scope="module")
def classifier() -> ContinualClassifier:
    return taught()


@pytest.fixture
def path(classifier: ContinualClassifier, tmp_path: Path) -> Path:
    classifier.save(tmp_path / "stripes.sparc")
    return tmp_path / "stripes.sparc"


def written(pictures: Pixels, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"{number}.png")
    return folder


def test_known_pictures_pass_and_others_do_not(classifier: ContinualClassifier) -> None:
    known = np.concatenate([of_class(name, 50, seed=9) for name in CLASSES])
    assert classifier.is_known(known).mean() > 0.85
    assert classifier.is_known(squares(100, seed=9)).mean() < 0.15
    passing = [classifier.is_known(known, share).mean() for share in (0.2, 0.5, 0.95)]
    assert passing == sorted(passing)
    assert passing[0] < 0.6
    with pytest.raises(InputError, match="choose above 0 and below 1"):
        classifier.is_known(known, 1.5)


def test_strangeness_is_a_ratio_of_mahalanobis_distances() -> None:
    random = Generator().manual_seed(0)
    features = torch.randn(60, 12, generator=random) * torch.linspace(0.5, 2, 12) + 3
    labels = torch.arange(60) % 3
    features[:, 0] += 2.0 * labels
    voice = Voice(12, 8, seed=1)
    voice.add(features, labels)
    shown = torch.randn(5, 12, generator=random) + 3
    brought = (((shown - voice.shift) * voice.scale).double() @ voice.projection()).numpy()
    means, inverse = voice.gaussians.means.numpy(), np.linalg.inv(voice.gaussians.shrunk_covariance().numpy())
    centre = means.mean(0)

    def squared(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        return float(mahalanobis(a, b, inverse)) ** 2

    usual = float(np.mean([squared(mean, centre) for mean in means])) + LEAST * 8
    expected = [min(squared(row, mean) for mean in means) / (squared(row, centre) + usual) for row in brought]
    assert voice.strangeness()(shown).tolist() == pytest.approx(expected, rel=1e-4)


def test_with_one_class_alone_it_is_the_distance_from_it() -> None:
    voice = Voice(6, 6, seed=0)
    voice.add(torch.randn(50, 6, generator=Generator().manual_seed(0)), torch.zeros(50, dtype=torch.int64))
    near, far, farther = voice.strangeness()(torch.tensor([[0.1], [3.0], [9.0]]).expand(3, 6)).tolist()
    assert near < far < farther < 1


def check(strangeness: Sequence[float] = (), classes: int = 2) -> Check:
    bins = reliability(np.zeros((0, 2)), np.zeros(0, np.int64))
    return Check(classes, (0.0,) * len(TEMPERATURES), bins, bins, tuple(sorted(strangeness)))


def test_the_limit_lets_the_share_pass_over_all_tasks() -> None:
    tasks = [check([number / 100 for number in range(50)]), check([number / 100 for number in range(50, 100)])]
    for share in (0.5, 0.8, 0.95):
        found = limit(known_strangeness(tasks, 2), share)
        assert found is not None
        assert sum(value <= found for task in tasks for value in task.strangeness) == math.ceil(101 * share)
    assert limit([0.1] * 9, 0.95) is None


def test_what_was_said_of_another_number_of_classes_counts_where_it_is_comparable() -> None:
    alone, few, many = check([0.98], classes=1), check([0.5], classes=4), check([0.6], classes=8)
    assert known_strangeness([alone], 1) == [0.98]
    assert known_strangeness([alone, many, few], 9) == [0.5, 0.6]
    assert known_strangeness([alone, many, few], 4) == [0.5]
    assert known_strangeness([alone, many, few], 1) == [0.98]


def test_forgetting_takes_out_what_a_class_has_said() -> None:
    classifier = taught()
    classifier.forget("upright")
    assert [task.check is None for task in classifier.model_.info.tasks] == [True, False]
    classifier.forget("slanted", "falling")
    assert classifier.is_known(of_class("level", 20, seed=9)).all()


def drawn_scores(pictures: int, scale: float) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Scores that would be right as probabilities, times something, and labels drawn by them."""
    random = Generator().manual_seed(4)
    scores = 2 * torch.randn(pictures, 5, generator=random)
    labels = torch.multinomial(scores.softmax(1), 1, generator=random)[:, 0]
    return (scores * scale).numpy(), labels.numpy()


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_probabilities_become_as_large_as_the_model_is_often_right(scale: float) -> None:
    scores, labels = drawn_scores(4000, scale)
    found = checked(scores, labels, None, [])
    assert temperature([found]) == pytest.approx(scale, rel=0.2)
    before, after = calibration_error(found.before), calibration_error(found.after)
    assert before is not None
    assert after is not None
    assert after < 3
    assert scale == 1 or before > 3 * after
    assert sum(each.pictures for each in found.after) == 4000
    assert len(found.after) == BINS


def test_tasks_speak_together_and_few_pictures_say_little() -> None:
    scores, labels = drawn_scores(2000, 4.0)
    halves = [checked(scores[part], labels[part], None, []) for part in (slice(None, 1000), slice(1000, None))]
    assert temperature(halves) == temperature([checked(scores, labels, None, [])])
    certain = checked(np.array([[3.0, 0.0]] * 5), np.zeros(5, np.int64), None, [])
    assert 0.5 < temperature([certain]) < 1
    assert temperature([]) == 1


def test_many_pictures_are_kept_by_some() -> None:
    found = checked(np.random.default_rng(0).normal(size=(999, 3)), np.zeros(999, np.int64), np.linspace(1, 0, 999), [])
    assert len(found.strangeness) == 200
    assert (found.strangeness[0], found.strangeness[-1]) == (0, 1)
    assert found.strangeness[100] == pytest.approx(0.5, abs=0.01)


def predictions(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[bool | None]:
    assert main(["predict", *map(str, arguments), "--json"]) == 0
    return [each["none_of_these"] for each in json.loads(capsys.readouterr().out)]


def test_predict_says_none_of_these(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known, others = written(of_class("level", 20, 8), tmp_path / "known"), written(squares(20, 8), tmp_path / "others")
    assert sum(predictions(capsys, path, known)) <= 4
    assert sum(predictions(capsys, path, others)) >= 16
    assert not any(predictions(capsys, path, others, "--always"))
    assert sum(predictions(capsys, path, known, "--reject", "0.1")) >= 8
    assert main(["predict", str(path), str(others / "0.png")]) == 0
    shown = capsys.readouterr().out
    assert "none of these" in shown
    assert "%" not in shown, "it is none of them, however sure"
    assert main(["predict", str(path), str(others / "0.png"), "--csv"]) == 0
    assert ",yes," in capsys.readouterr().out
    for wrong in (["--reject", "2"], ["--reject", "0.9", "--always"]):
        assert main(["predict", str(path), str(others), *wrong]) == 2
    capsys.readouterr()


def test_test_counts_who_passes(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in CLASSES:
        written(of_class(name, 10, 7), tmp_path / "shown" / name)
    others = written(squares(25, 7), tmp_path / "others" / "deep")
    assert main(["test", str(path), str(tmp_path / "shown"), "--unknown", str(others.parent), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["known_accepted"] > 80
    assert found["unknown_accepted"] < 20
    assert 0 <= found["calibration_error"] < 30
    assert main(["test", str(path), str(tmp_path / "shown"), "--unknown", str(others.parent)]) == 0
    assert "of the unknown, taken for known" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert main(["test", str(path), str(tmp_path / "shown"), "--unknown", str(tmp_path / "empty")]) == 2
    assert "holds no pictures" in capsys.readouterr().err
    assert main(["test", str(path), str(tmp_path / "shown"), "--unknown", str(tmp_path / "missing")]) == 2
    assert "missing: name a folder, or an archive, of pictures of other classes" in capsys.readouterr().err


def test_a_model_that_cannot_tell_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taught(count=8).save(tmp_path / "few.sparc")
    others = written(squares(5, 1), tmp_path / "others")
    assert predictions(capsys, tmp_path / "few.sparc", others) == [None] * 5
    assert main(["predict", str(tmp_path / "few.sparc"), str(others)]) == 0
    assert (
        "“None of these” is never said: it takes 10 held-out pictures that count, and has 4" in capsys.readouterr().err
    )
    assert main(["predict", str(tmp_path / "few.sparc"), str(others), "--reject", "0.9"]) == 2
    assert "it takes 10 held-out pictures that count, and has 4, so teach it more" in capsys.readouterr().err


def test_forget_says_that_it_cannot_tell_any_more(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", str(path), CLASSES[0]]) == 0
    out = capsys.readouterr().out
    assert re.search(r"Of (\d+) held-out pictures, from which it is known what is strange, (?!\1)\d+ still count", out)
    assert "“None of these”" not in out, "the other task's pictures are enough"
    assert main(["forget", str(path), CLASSES[2]]) == 0
    assert (
        "“None of these” is not said any more: it takes 10 held-out pictures that count, and has 0"
        in capsys.readouterr().out
    )


def test_onnx_says_it_as_well(
    classifier: ContinualClassifier, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(path), str(tmp_path / "m.onnx")]) == 0
    capsys.readouterr()
    facts = {each.key: each.value for each in onnx.load(tmp_path / "m.onnx").metadata_props}
    images = np.concatenate((of_class("upright", 9, 3), squares(9, 3)))
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    strange, sure = session.run(["strangeness", "probabilities"], {"images": images.transpose(0, 3, 1, 2)})
    limits = json.loads(facts["none_of_these_above"])
    for share in (0.8, 0.95):
        assert (strange <= limits[str(share)]).tolist() == classifier.is_known(images, share).tolist()
    np.testing.assert_allclose(sure, classifier.predict_proba(images), atol=1e-4)


def test_the_card_and_inspect_say_how_sure_it_is(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", str(path), "--out", str(tmp_path / "CARD.md")]) == 0
    card = (tmp_path / "CARD.md").read_text()
    assert "## How sure it is" in card
    assert "expected calibration error" in card
    assert "It says “none of these”" in card
    capsys.readouterr()
    assert main(["inspect", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["none_of_these_above"] > 0
    assert found["temperature"] in TEMPERATURES
    assert found["calibration_error"] is not None
