import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

import sparc.export
from sparc.data.augment import Augment
from sparc.errors import InputError
from sparc.export import Exported, export_onnx
from sparc.folded import FoldedModel
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import Model, ModelInfo, load
from sparc.model_input import InputShape
from sparc.nn.patches import PatchFeatures
from sparc.nn.roll import ENOUGH
from tests.models import learned_task

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

CLASSES = (("crow", "Möwe"), ("heron", "crow", "wren"), ("crow",))
"""The crow was learned three times."""


SPARC = ChorusSettings(width=0.25, depth=2, inherit="nothing", statistics=0, mirror=False, patches=0)
CHORUS = ChorusSettings(width=0.25, depth=2)


def model(
    classes: tuple[tuple[str, ...], ...] = CLASSES,
    channels: int = 3,
    settings: ChorusSettings = CHORUS,
    size: tuple[int, int] = (16, 12),
    enough: int = ENOUGH,
) -> Model:
    """The last working memory has learned from `enough` pictures, those before it from fewer."""
    tasks = tuple(
        replace(
            learned_task(f"task {number}", *names),
            pictures=(8,) * len(names),
            seen=(number + 1) * enough // len(classes),
            weights=(0.7, 0.4 + number, 0.5) if settings.statistics else None,
        )
        for number, names in enumerate(classes)
    )
    info = ModelInfo(
        InputShape(channels, size), settings, (0.4, 0.5, 0.45)[:channels], (0.25, 0.2, 0.3)[:channels], tasks
    )
    net = info.new_net(Generator().manual_seed(5))
    for number, (task, portion) in enumerate(zip(tasks, info.roll.portions, strict=True)):
        names, labels = task.classes, torch.tensor(portion.classes)
        memory = net.train().add_task(len(names), portion.classes, task.seen or 0, portion.weights)
        views = Augment((0.5,) * channels, (0.25,) * channels).normalize(pictures(8 * len(names), channels, size=size))
        with torch.no_grad():
            net.task_logits(views, number)
            memory.eval()
            memory.head.weight.mul_(5)
            memory.head.bias.sub_(net.task_logits(views, number).mean(0))  # so that every class wins somewhere
            if isinstance(net.common, PatchFeatures) and not number:
                net.common.draw(views, net.generator)
            if net.all_voices():
                features = net.pooled(views)[-len(net.all_voices()) :]
                net.add_statistics(features, labels[torch.arange(len(views)) % len(names)])
        memory.freeze()
    return Model(net.eval(), info)


def pictures(count: int, channels: int = 3, seed: int = 0, size: tuple[int, int] = (16, 12)) -> Tensor:
    random = Generator().manual_seed(seed)
    return torch.randint(256, (count, channels, *size), generator=random, dtype=torch.uint8)


def expected(model: Model, images: Tensor) -> np.ndarray:
    with torch.no_grad():
        scores: Tensor = model.net(Augment(model.info.mean, model.info.std).normalize(images))
    return scores.numpy()


def run(path: Path, images: Tensor) -> tuple[np.ndarray, np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    scores, probabilities = session.run(["scores", "probabilities"], {"images": images.numpy()})
    return scores, probabilities


@pytest.fixture(scope="module", params=[SPARC, CHORUS], ids=["sparc", "chorus"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Exported]:
    birds = model(settings=request.param)
    path = tmp_path_factory.mktemp("export") / "birds.onnx"
    return birds, export_onnx(birds, path, pictures(40))


@pytest.mark.parametrize("batch", [1, 7])
def test_onnxruntime_agrees_at_any_batch(exported: tuple[Model, Exported], batch: int) -> None:
    birds, done = exported
    images = pictures(batch, seed=batch)
    scores, probabilities = run(done.path, images)
    wanted = expected(birds, images)
    assert scores.shape == (batch, 4)
    np.testing.assert_allclose(scores, wanted, atol=1e-4)
    np.testing.assert_allclose(probabilities, torch.from_numpy(wanted).softmax(1), atol=1e-4)


def test_a_class_learned_again_speaks_with_its_largest_output(exported: tuple[Model, Exported]) -> None:
    birds, done = exported
    if birds.net.all_voices():
        return
    images = pictures(60, seed=9)
    views = Augment(birds.info.mean, birds.info.std).normalize(images)
    with torch.no_grad():
        logits = torch.stack([birds.net.task_logits(views, task)[:, row] for task, row in ((0, 0), (1, 1), (2, 0))], 1)
    assert len(logits.argmax(1).unique()) > 1, "more than one of the three should win somewhere"
    np.testing.assert_allclose(run(done.path, images)[0][:, 0], logits.amax(1), atol=1e-4)


def test_what_is_said_of_it(exported: tuple[Model, Exported]) -> None:
    _, done = exported
    assert done.bytes == done.path.stat().st_size
    assert done.pictures == 40
    assert 0 < done.largest_difference <= 1e-4
    assert done.milliseconds_alone > 0
    assert done.milliseconds_in_batch > 0


def test_what_the_file_says(exported: tuple[Model, Exported]) -> None:
    written = onnx.load(exported[1].path)
    onnx.checker.check_model(written, full_check=True)
    facts = {fact.key: fact.value for fact in written.metadata_props}
    assert json.loads(facts["classes"]) == ["crow", "Möwe", "heron", "wren"]
    assert json.loads(facts["tasks"]) == ["task 0", "task 1", "task 2"]
    assert json.loads(facts["image_size"]) == [16, 12]
    assert facts["fit"] == "crop"
    assert (facts["format"], facts["version"]) == ("sparc-onnx", "1")
    assert facts["producer"].startswith("sparc ")
    assert [entry.version for entry in written.opset_import] == [17]
    (given,) = written.graph.input
    assert given.name == "images"
    assert given.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    sides = given.type.tensor_type.shape.dim
    assert [side.dim_param or side.dim_value for side in sides] == ["batch", 3, 16, 12]


def test_what_was_exported_is_no_model(exported: tuple[Model, Exported]) -> None:
    with pytest.raises(
        InputError, match=r"birds\.onnx is an ONNX file, and not a model: name the file that sparc learn made"
    ):
        load(exported[1].path)


def test_the_file_is_all_that_is_needed(exported: tuple[Model, Exported], tmp_path: Path) -> None:
    birds, done = exported
    (tmp_path / "alone.onnx").write_bytes(done.path.read_bytes())
    np.save(tmp_path / "images.npy", pictures(2).numpy())
    script = (
        "import sys, numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession('alone.onnx', providers=['CPUExecutionProvider'])\n"
        "numpy.save('scores.npy', session.run(['scores'], {'images': numpy.load('images.npy')})[0])\n"
        "assert 'torch' not in sys.modules and 'sparc' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), expected(birds, pictures(2)), atol=1e-4)


def test_one_task_one_channel_one_picture(tmp_path: Path) -> None:
    birds = model((("even", "odd"),), channels=1)
    done = export_onnx(birds, tmp_path / "new" / "tiny.onnx", pictures(1, 1))
    np.testing.assert_allclose(run(done.path, pictures(3, 1))[0], expected(birds, pictures(3, 1)), atol=1e-4)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("statistics", [0, 20, 384])
@pytest.mark.parametrize(("size", "depth"), [((13, 9), 3), ((11, 17), 2), ((9, 8), 1)])
def test_odd_sizes_and_all_settings(
    tmp_path: Path, mirror: bool, statistics: int, size: tuple[int, int], depth: int
) -> None:
    settings = ChorusSettings(width=0.125, depth=depth, statistics=statistics, mirror=mirror)
    birds = model(settings=settings, size=size)
    done = export_onnx(birds, tmp_path / "birds.onnx", pictures(9, size=size))
    scores = run(done.path, pictures(5, seed=1, size=size))[0]
    np.testing.assert_allclose(scores, expected(birds, pictures(5, seed=1, size=size)), atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_the_net_is_left_alone(tmp_path: Path, training: bool) -> None:
    birds = model()
    birds.net.train(training)
    before = {name: value.clone() for name, value in birds.net.state_dict().items()}
    export_onnx(birds, tmp_path / "birds.onnx", pictures(4))
    torch.testing.assert_close(dict(birds.net.state_dict()), before, atol=0, rtol=0)
    assert birds.net.training == training


def test_another_answer_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    birds = model()
    path = tmp_path / "birds.onnx"
    path.write_bytes(b"the old one")
    # A fold that forgets something is what the comparison is there for.
    fold = FoldedModel.of

    def forgetful(*given: Any) -> FoldedModel:
        folded = fold(*given)
        folded.convs[2].bias[1] += 0.01
        return folded

    monkeypatch.setattr(FoldedModel, "of", forgetful)
    with pytest.raises(InputError, match="does not answer as the net does"):
        export_onnx(birds, path, pictures(4))
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("birds.onnx", b"the old one")]


def test_scores_that_are_no_numbers_are_not_written(tmp_path: Path) -> None:
    birds = model()
    with torch.no_grad():
        birds.net.memories()[1].head.weight[0, 0] = torch.nan
    with pytest.raises(InputError, match="does not answer"):
        export_onnx(birds, tmp_path / "birds.onnx", pictures(4))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["a-file/birds.onnx", "a-folder"])
def test_a_place_that_cannot_be_written(tmp_path: Path, path: str) -> None:
    (tmp_path / "a-file").touch()
    (tmp_path / "a-folder" / "full").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot be written .*: choose another place"):
        export_onnx(model(), tmp_path / path, pictures(1))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a-file", "a-folder"]


@pytest.mark.parametrize(
    "images", [pictures(0), pictures(2, 1), pictures(2).float(), pictures(2)[:, :, :8]], ids=lambda x: str(x.shape)
)
def test_pictures_that_do_not_fit(tmp_path: Path, images: Tensor) -> None:
    with pytest.raises(InputError, match="at least one uint8 picture of 3 × 16 × 12"):
        export_onnx(model(), tmp_path / "birds.onnx", images)
    assert not list(tmp_path.iterdir())


def test_more_than_a_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparc.export, "LARGEST", 10_000)
    with pytest.raises(InputError, match="at most 2 GiB"):
        export_onnx(model(), tmp_path / "birds.onnx", pictures(1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    sentence = r"sparc export needs onnx and onnxruntime: pip install onnx onnxruntime"
    with pytest.raises(InputError, match=sentence):
        export_onnx(model(), tmp_path / "birds.onnx", pictures(1))
    assert not list(tmp_path.iterdir())
