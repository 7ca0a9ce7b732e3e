"""Files of older versions, each of which a sparc of that version has made."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save as to_bytes

from sparc.data.imageset import Splits
from sparc.errors import InputError
from sparc.learner import learn
from sparc.methods.sparc.chorus import Chorus
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import load, save, tensors_of
from sparc.model_input import InputShape
from sparc.nn.described import Shrinkage
from sparc.predictor import scores
from sparc.stored_model import digest_of, expected_tensors, voices
from tests.examples import blobs
from tests.models import INFO

OLDER = Path(__file__).parent
SPARC: dict[str, Any] = {"inherit": "nothing", "statistics": 0, "mirror": False}


@pytest.mark.parametrize(
    ("version", "flip", "last", "settings", "answers"),
    [
        (1, False, "class 3", SPARC, [2.37512398, -1.01148891, 1.69561183, 0.97118556]),
        (2, True, "d", SPARC, [3.60933685, 17.75855064, 0.87622619, 0.40951219]),
        (3, True, "d", {"statistics": 6}, [-0.10989904, 13.80389309, 0.33870265, -1.6481055]),
        (5, True, "d", {"statistics": 6, "patches": 6}, [-0.63649642, -19.70827866, -0.76790428, -4.2740016]),
        (
            7,
            True,
            "d",
            {"statistics": 6, "patches": 6, "weigh": True},
            [-0.69535309, -37.74766922, -0.69182587, -21.8799324],
        ),
    ],
)
def test_a_file_of_an_older_version_answers_as_it_did_and_goes_on(
    tmp_path: Path, version: int, flip: bool, last: str, settings: dict[str, Any], answers: list[float]
) -> None:
    old = load(OLDER / f"version-{version}.sparc")
    assert old.version == version
    assert old.info.settings == ChorusSettings(
        width=1 / 16, depth=1, alpha=0.9, kappa=4.0, **{"patches": 0, "weigh": False, **settings}
    )
    assert old.info.era == (7 if version == 7 else 1)
    assert old.info.shape == InputShape(1, (8, 8))
    assert (old.info.seed, old.info.flip, old.info.classes[-1]) == (7, flip, last)
    images = blobs(1, 4, seed=3).images
    np.testing.assert_allclose(scores(old, images)[0], answers, rtol=1e-5, atol=1e-5)
    pictures = replace(blobs(4, 2, seed=1), class_names=("class 8", "class 9"))
    longer = learn(old, Splits(pictures, pictures), "third", replace(Chorus.recipe, epochs=1))
    save(longer, tmp_path / "new.sparc")
    again = load(tmp_path / "new.sparc")
    assert again.info == longer.info
    assert again.version == 8
    assert again.info.checks
    assert np.array_equal(scores(again, images), scores(longer, images))


def test_an_older_model_that_version_7_taught_on(tmp_path: Path) -> None:
    old = load(OLDER / "version-5.sparc")
    about = {**asdict(old.info), "early": True}
    del about["era"]
    tensors = tensors_of(old.net)
    digest = digest_of({name: tensor.numpy() for name, tensor in tensors.items()}, about)
    described = json.dumps({"version": 7, "sha256": digest, "about": about})
    (tmp_path / "model.sparc").write_bytes(to_bytes(tensors, {"sparc-model": described}))
    again = load(tmp_path / "model.sparc")
    assert again.info == old.info
    images = blobs(3, 4, seed=3).images
    assert np.array_equal(scores(again, images), scores(old, images))


@pytest.mark.parametrize(
    ("era", "shrinkage"), [(1, Shrinkage(2.0, 1.5)), (7, Shrinkage(1.0, 0.6)), (8, Shrinkage(1.0, 0.6))]
)
def test_covariances_of_a_start_are_made_up_as_ever(era: int, shrinkage: Shrinkage) -> None:
    info = replace(INFO, settings=replace(INFO.settings, start="lite0"), era=era)
    tensors = {name: np.zeros(shape) for name, (shape, _) in expected_tensors(info).items()}
    assert voices(info, tensors)["common_voice"].shrinkage == shrinkage


def test_no_era_that_there_was(tmp_path: Path) -> None:
    save(load(OLDER / "version-7.sparc"), tmp_path / "model.sparc")
    content = (tmp_path / "model.sparc").read_bytes()
    (tmp_path / "model.sparc").write_bytes(content.replace(b'"era\\": 7', b'"era\\": 5'))
    with pytest.raises(InputError, match=r"is damaged \(it should describe classes in a way that there was"):
        load(tmp_path / "model.sparc")
