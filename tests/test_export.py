import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

import sparc.export
from sparc.data.augment import Augment
from sparc.errors import InputError
from sparc.export import Exported, export_onnx
from sparc.model_file import LearnedTask, ModelInfo, Shape
from sparc.nn.sparc import SparcNet

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

CLASSES = (("crow", "Möwe"), ("heron", "crow", "wren"), ("crow",))
"""The crow was learned three times."""


def model(classes: tuple[tuple[str, ...], ...] = CLASSES, channels: int = 3) -> tuple[SparcNet, ModelInfo]:
    shape = Shape(channels, (16, 12), 0.25, 2, 0.5)
    net = shape.new_net(Generator().manual_seed(5))
    tasks = []
    for number, names in enumerate(classes):
        memory = net.train().add_task(len(names))
        views = Augment((0.5,) * channels, (0.25,) * channels).normalize(pictures(8, channels))
        with torch.no_grad():
            net.task_logits(views, number)
            memory.eval()
            memory.head.weight.mul_(5)
            memory.head.bias.sub_(net.task_logits(views, number).mean(0))  # so that every class wins somewhere
        memory.freeze()
        tasks.append(LearnedTask(f"task {number}", names, (4,) * len(names), 0, None, None, "", 1, 1.0, 0.5))
    about = ModelInfo(shape, (0.4, 0.5, 0.45)[:channels], (0.25, 0.2, 0.3)[:channels], 0.99, 5.0, tuple(tasks))
    return net.eval(), about


def pictures(count: int, channels: int = 3, seed: int = 0) -> Tensor:
    random = Generator().manual_seed(seed)
    return torch.randint(256, (count, channels, 16, 12), generator=random, dtype=torch.uint8)


def expected(net: SparcNet, about: ModelInfo, images: Tensor) -> np.ndarray:
    with torch.no_grad():
        logits = net(Augment(about.mean, about.std).normalize(images))
    owners = torch.tensor(about.owners())
    return torch.stack([logits[:, owners == label].amax(1) for label in range(len(about.classes))], 1).numpy()


def run(path: Path, images: Tensor) -> tuple[np.ndarray, np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    scores, probabilities = session.run(["scores", "probabilities"], {"images": images.numpy()})
    return scores, probabilities


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[SparcNet, ModelInfo, Exported]:
    net, about = model()
    path = tmp_path_factory.mktemp("export") / "birds.onnx"
    return net, about, export_onnx(net, about, path, pictures(40))


@pytest.mark.parametrize("batch", [1, 7])
def test_onnxruntime_agrees_at_any_batch(exported: tuple[SparcNet, ModelInfo, Exported], batch: int) -> None:
    net, about, done = exported
    images = pictures(batch, seed=batch)
    scores, probabilities = run(done.path, images)
    wanted = expected(net, about, images)
    assert scores.shape == (batch, 4)
    np.testing.assert_allclose(scores, wanted, atol=1e-4)
    np.testing.assert_allclose(probabilities, torch.from_numpy(wanted).softmax(1), atol=1e-4)


def test_a_class_learned_again_speaks_with_its_largest_output(exported: tuple[SparcNet, ModelInfo, Exported]) -> None:
    net, about, done = exported
    images = pictures(60, seed=9)
    with torch.no_grad():
        logits = net(Augment(about.mean, about.std).normalize(images))[:, [0, 3, 5]]
    assert set(logits.argmax(1).tolist()) == {0, 1, 2}, "each of the three should win somewhere"
    np.testing.assert_allclose(run(done.path, images)[0][:, 0], logits.amax(1), atol=1e-4)


def test_what_is_said_of_it(exported: tuple[SparcNet, ModelInfo, Exported]) -> None:
    _, _, done = exported
    assert done.bytes == done.path.stat().st_size
    assert done.pictures == 40
    assert 0 < done.largest_difference <= 1e-4
    assert done.milliseconds_alone > 0
    assert done.milliseconds_in_batch > 0


def test_what_the_file_says(exported: tuple[SparcNet, ModelInfo, Exported]) -> None:
    written = onnx.load(exported[2].path)
    onnx.checker.check_model(written, full_check=True)
    facts = {fact.key: fact.value for fact in written.metadata_props}
    assert json.loads(facts["classes"]) == ["crow", "Möwe", "heron", "wren"]
    assert json.loads(facts["tasks"]) == ["task 0", "task 1", "task 2"]
    assert json.loads(facts["image_size"]) == [16, 12]
    assert (facts["format"], facts["version"]) == ("sparc-onnx", "1")
    assert facts["producer"].startswith("sparc ")
    assert [entry.version for entry in written.opset_import] == [17]
    (given,) = written.graph.input
    assert given.name == "images"
    assert given.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    sides = given.type.tensor_type.shape.dim
    assert [side.dim_param or side.dim_value for side in sides] == ["batch", 3, 16, 12]


def test_the_file_is_all_that_is_needed(exported: tuple[SparcNet, ModelInfo, Exported], tmp_path: Path) -> None:
    net, about, done = exported
    (tmp_path / "alone.onnx").write_bytes(done.path.read_bytes())
    np.save(tmp_path / "images.npy", pictures(2).numpy())
    script = (
        "import sys, numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession('alone.onnx', providers=['CPUExecutionProvider'])\n"
        "numpy.save('scores.npy', session.run(['scores'], {'images': numpy.load('images.npy')})[0])\n"
        "assert 'torch' not in sys.modules and 'sparc' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), expected(net, about, pictures(2)), atol=1e-4)


def test_one_task_one_channel_one_picture(tmp_path: Path) -> None:
    net, about = model((("even", "odd"),), channels=1)
    done = export_onnx(net, about, tmp_path / "new" / "tiny.onnx", pictures(1, 1))
    np.testing.assert_allclose(run(done.path, pictures(3, 1))[0], expected(net, about, pictures(3, 1)), atol=1e-4)


@pytest.mark.parametrize("training", [False, True])
def test_the_net_is_left_alone(tmp_path: Path, training: bool) -> None:
    net, about = model()
    net.train(training)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    export_onnx(net, about, tmp_path / "birds.onnx", pictures(4))
    torch.testing.assert_close(dict(net.state_dict()), before, atol=0, rtol=0)
    assert net.training == training


def test_another_answer_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, about = model()
    path = tmp_path / "birds.onnx"
    path.write_bytes(b"the old one")
    # A fold that forgets something is what the comparison is there for.
    fold = sparc.export.InferenceNet.of

    def forgetful(net: SparcNet) -> object:
        folded = fold(net)
        folded.convs[2].bias[1] += 0.01
        return folded

    monkeypatch.setattr(sparc.export.InferenceNet, "of", forgetful)
    with pytest.raises(InputError, match="does not answer as the net does"):
        export_onnx(net, about, path, pictures(4))
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("birds.onnx", b"the old one")]


def test_scores_that_are_no_numbers_are_not_written(tmp_path: Path) -> None:
    net, about = model()
    with torch.no_grad():
        net.memories()[1].head.weight[0, 0] = torch.nan
    with pytest.raises(InputError, match="does not answer"):
        export_onnx(net, about, tmp_path / "birds.onnx", pictures(4))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["a-file/birds.onnx", "a-folder"])
def test_a_place_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "a-file").touch()
    (tmp_path / "a-folder" / "full").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot be written .*: choose another place"):
        export_onnx(*model(), tmp_path / place, pictures(1))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a-file", "a-folder"]


@pytest.mark.parametrize(
    "images", [pictures(0), pictures(2, 1), pictures(2).float(), pictures(2)[:, :, :8]], ids=lambda x: str(x.shape)
)
def test_pictures_that_do_not_fit(tmp_path: Path, images: Tensor) -> None:
    with pytest.raises(InputError, match="at least one uint8 picture of 3 × 16 × 12"):
        export_onnx(*model(), tmp_path / "birds.onnx", images)
    assert not list(tmp_path.iterdir())


def test_more_than_a_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparc.export, "LARGEST", 10_000)
    with pytest.raises(InputError, match="at most 2 GiB"):
        export_onnx(*model(), tmp_path / "birds.onnx", pictures(1))
    assert not list(tmp_path.iterdir())


def test_without_the_extra(tmp_path: Path) -> None:
    script = (
        "import sys, torch\n"
        "from pathlib import Path\n"
        "from sparc.errors import InputError\n"
        "from sparc.export import export_onnx\n"
        "for missing in ('onnx', 'onnxruntime'):\n"
        "    sys.modules[missing] = None\n"
        "    try:\n"
        "        export_onnx(None, None, Path('birds.onnx'), torch.zeros(1))\n"
        "    except InputError as error:\n"
        "        print(error)\n"
        "    del sys.modules[missing]\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    sentence = "sparc export needs onnx and onnxruntime: pip install sparc-cl[export]"
    assert ran.stdout.splitlines() == [sentence] * 2
    assert not list(tmp_path.iterdir())
