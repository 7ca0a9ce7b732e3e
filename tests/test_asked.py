"""Answers for which only some working memories are asked."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from sparc import graph_cache
from sparc.asking import open_taught
from sparc.cli.main import main
from sparc.data.augment import Augment
from sparc.errors import InputError
from sparc.files import user_cache
from sparc.folded import FoldedModel
from sparc.graph.model import whole_graph
from sparc.model_file import Model, load, save, tensors_of
from sparc.nn import roll
from sparc.nn.roll import ENOUGH
from tests.models import learned_task
from tests.test_export import model as taught_model
from tests.test_onnx_model import (
    SETTINGS,
    TAUGHT_AGAIN,
    Pixels,
    pictures,
    saved_birds,
    saved_pictures,
    untrained,
    without,
)

FIVE = tuple((f"{task}.a", f"{task}.b") for task in range(5))
WITH_PATCHES = [name for name, settings in SETTINGS.items() if settings.patches]


def chosen(posterior: Tensor, classes: list[list[int]], share: float) -> list[int]:
    """Memories in the order of what is likely, until they have the share of it."""
    mass = [float(posterior[own].sum()) for own in classes]
    asked: list[int] = []
    for number in sorted(range(len(mass)), key=lambda number: -mass[number]):
        if sum(mass[other] for other in asked) < share * sum(mass):
            asked.append(number)
    return sorted(asked)


@torch.no_grad()
def expected(model: Model, images: Pixels, share: float) -> tuple[Tensor, list[int]]:
    """By readouts of only the memories that are asked, and how many these are; heads count as all do together."""
    says = [head.say for head in model.net.readout().heads]
    counts_of_all = {by_trust: roll.head_counts(says, by_trust) for by_trust in (False, True)}
    with patch.object(roll, "head_counts", lambda heads, by_trust: counts_of_all[by_trust]):
        return _expected(model, images, share)


def _expected(model: Model, images: Pixels, share: float) -> tuple[Tensor, list[int]]:
    views = Augment(model.info.mean, model.info.std).normalize(torch.from_numpy(images))
    readout, features = model.net.readout(), model.net.pooled(views)
    scores, counts = [], []
    for picture, posterior in enumerate(readout.posteriors(features)[-1].exp()):
        asked = chosen(posterior, model.net.head_classes(), share)
        voices = [readout.discriminants[number] for number in asked] if model.net.statistics else []
        heads = [readout.heads[number] for number in asked]
        some = replace(readout, heads=heads, discriminants=[*voices, readout.discriminants[-1]])
        scores.append(some([features[number][picture : picture + 1] for number in (*asked, -1)]))
        counts.append(len(asked))
    return torch.cat(scores), counts


def unlike(model: Model) -> Model:
    """With classes that are not alike by patches, though each was taught with the same pictures."""
    voice = model.net.common_voice
    assert voice is not None
    means = voice.gaussians.means
    means += 0.3 * means.std() * torch.randn(means.shape, generator=Generator().manual_seed(0)).double()
    return model


@pytest.mark.parametrize("classes", [FIVE, TAUGHT_AGAIN], ids=["five tasks", "taught again"])
@pytest.mark.parametrize("name", WITH_PATCHES)
def test_who_is_not_asked_has_no_say(tmp_path: Path, name: str, classes: tuple[tuple[str, ...], ...]) -> None:
    """Of working memories that are trusted differently, and none of them fully."""
    save(unlike(taught_model(classes, settings=SETTINGS[name], enough=ENOUGH // 2)), tmp_path / "model.sparc")
    model, images = load(tmp_path / "model.sparc"), pictures(30)
    all_counts = set()
    for share in (0.1, 0.6, 0.9):
        scores, strangeness = open_taught(tmp_path / "model.sparc", ask=share).answer(images)
        wanted, counts = expected(model, images, share)
        np.testing.assert_allclose(scores, wanted.numpy(), atol=1e-3)
        np.testing.assert_allclose(strangeness, model.answer(images)[1], rtol=1e-3, atol=1e-4)
        all_counts |= set(counts)
    assert len(all_counts) > 1, "pictures differ in how many are asked"


@pytest.mark.parametrize("name", WITH_PATCHES)
def test_where_all_are_asked_answers_are_as_ever(tmp_path: Path, name: str) -> None:
    save(unlike(taught_model(FIVE, settings=SETTINGS[name])), tmp_path / "model.sparc")
    images = pictures(20)
    share = 1 - 1e-6
    _, counts = expected(load(tmp_path / "model.sparc"), images, share)
    everybody = np.array(counts) == len(FIVE)
    assert everybody.any()
    scores, wanted = (open_taught(tmp_path / "model.sparc", ask=each).answer(images)[0] for each in (share, 1.0))
    np.testing.assert_allclose(scores[everybody], wanted[everybody], atol=1e-4)


def test_pictures_alone_are_answered_as_with_others(tmp_path: Path) -> None:
    save(unlike(taught_model(FIVE, settings=SETTINGS["chorus"])), tmp_path / "model.sparc")
    ready, images = open_taught(tmp_path / "model.sparc", ask=0.5), pictures(7)
    together = ready.answer(images)[0]
    alone = np.concatenate([ready.answer(images[number : number + 1])[0] for number in range(7)])
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_who_is_not_asked_is_not_computed() -> None:
    model = taught_model(FIVE, settings=SETTINGS["chorus"])
    tensors = {name: tensor.numpy() for name, tensor in tensors_of(model.net).items()}
    graph = whole_graph(FoldedModel.of(model.info, tensors), ask=0.5).graph
    assert sum(node.op_type == "If" for node in graph.node) == len(FIVE)
    assert not [node.name for node in graph.node if node.op_type == "Conv" and "patches" not in node.name]


def test_classes_that_no_memory_was_trained_with(tmp_path: Path) -> None:
    """They are told by statistics, and a picture of theirs is still shown to the likeliest of the others."""
    model = unlike(taught_model(FIVE, settings=SETTINGS["chorus"]))
    late = replace(learned_task("late", "x", "y"), pictures=(8, 8), seen=None)
    info = replace(model.info, tasks=(*model.info.tasks, late))
    model.net.add_portion(2)
    features = [torch.rand(16, len(voice.shift)) for voice in model.net.all_voices()]
    model.net.add_statistics(features, torch.tensor([10, 11]).repeat(8))
    save(Model(model.net, info), tmp_path / "model.sparc")
    images = pictures(20)
    wanted, _ = expected(load(tmp_path / "model.sparc"), images, 0.5)
    scores, _ = open_taught(tmp_path / "model.sparc", ask=0.5).answer(images)
    np.testing.assert_allclose(scores, wanted.numpy(), atol=1e-3)


@pytest.fixture
def model_and_folder(tmp_path: Path) -> tuple[Path, Path]:
    return saved_birds(tmp_path), saved_pictures(tmp_path)


def test_on_the_command_line(model_and_folder: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    model, folder = map(str, model_and_folder)
    assert main(["predict", model, folder, "--json", "--ask", "0.5"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 6
    assert main(["test", model, folder, "--json", "--ask", "0.5"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures"] == 6
    kept = user_cache() / graph_cache.FOLDER
    assert not kept.exists(), "what is forgotten is dropped from one graph alone"
    for wrong in ("0", "1.5", "nan"):
        assert main(["predict", model, folder, "--ask", wrong]) == 2
        assert "choose above 0, and up to 1" in capsys.readouterr().err
    assert main(["predict", model, folder, "--ask", "0.5", "--task", "task 0"]) == 2
    assert "leave --ask out" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_without_onnxruntime(model_and_folder: tuple[Path, Path], tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-m", "sparc", "predict", *map(str, model_and_folder), "--ask", "0.5"]
    environment = without(module, tmp_path / "none")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert f"--ask 0.5 is for onnxruntime alone, and {module} is not installed: leave it out" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_models_in_which_nothing_can_be_chosen(tmp_path: Path) -> None:
    save(taught_model(settings=SETTINGS["no patches"]), tmp_path / "model.sparc")
    with pytest.raises(InputError, match="no features that all classes have in common"):
        open_taught(tmp_path / "model.sparc", ask=0.5)
    untrained(3, pictures(60, 3, (16, 16)), start="nothing").save(tmp_path / "statistics.sparc")
    save(taught_model(FIVE[:1], settings=SETTINGS["chorus"]), tmp_path / "one.sparc")
    for name in ("statistics.sparc", "one.sparc"):
        with pytest.raises(InputError, match="has no working memories to choose from: leave --ask out"):
            open_taught(tmp_path / name, ask=0.5)
