"""One self-contained ONNX file of a model, for runtimes that know nothing of SPARC.

The graph is written by hand from the folded weights, so that it holds the few operators that the net needs and no
exporter decides otherwise. No file is put in place before onnxruntime gave the same answers from it as the net.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool1d

from sparc import __version__
from sparc.data.augment import Augment
from sparc.errors import InputError
from sparc.files import write_atomic
from sparc.model_file import Model, ModelInfo
from sparc.nn.inference import FoldedConv, FoldedMemory, InferenceNet
from sparc.nn.layout import BLOCKS
from sparc.nn.patches import FEATURES, FLAT, ROOT, THRESHOLD, PatchFeatures
from sparc.nn.readout import GRID, HEAD_WEIGHT, TEMPERATURE
from sparc.predictor import best_of_outputs

FORMAT = "sparc-onnx"
VERSION = 1
OPSET, IR_VERSION = 17, 8
"""Of 2022: what runtimes of the last years read."""
LARGEST = 2**31 - 2**20
"""Bytes of weights: a protobuf message ends at 2 GiB."""
TOLERANCE = 1e-4
"""How far a score may lie from the net's own; where scores exceed 10, that times a tenth of the largest."""
BATCH = 32


@dataclass(frozen=True)
class Exported:
    """What was written, and how it did when it was tried."""

    path: Path
    bytes: int
    pictures: int
    """Compared with the net."""
    largest_difference: float
    """Of any score, from the net's own."""
    milliseconds_alone: float
    """Milliseconds a picture, one at a time; onnxruntime, one thread, median."""
    milliseconds_in_batch: float
    """The same in batches of 32."""


def export_onnx(model: Model, path: Path, images: Tensor) -> Exported:
    """Write the model, if it gives the same answers as the net on these uint8 images."""
    try:
        onnx, runtime = import_module("onnx"), import_module("onnxruntime")
    except ImportError as error:
        raise InputError("sparc export needs onnx and onnxruntime: pip install sparc-cl[export]") from error
    shape = model.info.shape
    if images.dtype != torch.uint8 or images.shape[1:] != (shape.channels, *shape.image_size) or not len(images):
        raise InputError(f"an export is tried on at least one uint8 picture of {shape}, not on {_describe(images)}")
    content = _serialized(onnx, model.inference, model.info)
    run = _runner(runtime, content)
    difference = _compare(model, run, images)
    single = _milliseconds(run, images[:1].numpy())
    batch = _milliseconds(run, images[torch.arange(BATCH) % len(images)].numpy())
    try:
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): choose another place") from error
    return Exported(path, len(content), len(images), difference, single, batch)


class _Graph:
    """Nodes and weights in the making; every node has one output, which has its name."""

    def __init__(self, onnx: ModuleType, net: InferenceNet, image_size: tuple[int, int]) -> None:
        self.onnx = onnx
        self.net = net
        self.image_size = image_size
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, name: str, value: Tensor) -> str:
        self.weights.append(self.onnx.numpy_helper.from_array(value.detach().cpu().contiguous().numpy(), name))
        return name

    def node(self, name: str, operator: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def separable(self, name: str, x: str, conv: FoldedConv) -> str:
        depthwise = self.weight(f"{name}.depthwise.weight", conv.depthwise)
        pointwise = self.weight(f"{name}.pointwise.weight", conv.pointwise[:, :, None, None])
        bias = self.weight(f"{name}.pointwise.bias", conv.bias)
        strides, group = [conv.stride] * 2, len(conv.depthwise)
        x = self.node(f"{name}.depthwise", "Conv", x, depthwise, pads=[1] * 4, strides=strides, group=group)
        return self.node(f"{name}.pointwise", "Conv", x, pointwise, bias)

    def linear(self, name: str, x: str, weight: Tensor, bias: Tensor) -> str:
        kept = self.weight(f"{name}.weight", weight), self.weight(f"{name}.bias", bias)
        return self.node(name, "Gemm", x, *kept, transB=1)

    def maps(self, name: str, x: str, memory: FoldedMemory) -> tuple[str, str]:
        """The last map of a working memory, and the one that goes into its last layer."""
        stem, *rest = memory.convs
        x = self.node(f"{name}.stem", "Relu", self.separable(f"{name}.stem.conv", x, stem))
        before, blocks = x, zip(memory.shortcuts, rest[::2], rest[1::2], strict=True)
        for number, (shortcut, first, second) in enumerate(blocks):
            before = x if number == len(memory.shortcuts) - BLOCKS else before
            block = f"{name}.block{number}"
            out = self.node(f"{block}.first", "Relu", self.separable(f"{block}.first.conv", x, first))
            out = self.separable(f"{block}.second.conv", out, second)
            if shortcut is not None:
                weight = self.weight(f"{block}.shortcut.weight", shortcut)
                x = self.node(f"{block}.shortcut", "Conv", x, weight, strides=[2, 2], group=len(shortcut) // 2)
            x = self.node(block, "Relu", self.node(f"{block}.sum", "Add", out, x))
        return x, before

    def outputs(self, x: str) -> str:
        """From normalized pictures to the net's outputs."""
        if self.net.mirror:
            backwards = self.weight("backwards", torch.arange(self.image_size[1]).flip(0))
            x = self.node("both", "Concat", x, self.node("mirrored", "Gather", x, backwards, axis=3), axis=0)
        heads, described = [], []
        for number, memory in enumerate(self.net.memories()):
            name = f"memory{number}"
            last, before = self.maps(name, x, memory)
            # Not GlobalAveragePool, which adds up the pixels one by one: discriminants are not happy with that.
            last = self.node(f"{name}.pool", "ReduceMean", last, axes=[2, 3], keepdims=0)
            last = self.features(f"{name}.features", last, memory.head_weight.shape[1])
            heads.append(self.linear(f"{name}.head", last, memory.head_weight, memory.head_bias))
            if self.net.quarters:
                described.append(self.with_quarters(name, last, before, number))
        if self.net.patches is not None:
            described.append(self.patches("patches", x, self.net.patches))
        logits = self.node("logits", "Concat", *heads, axis=1)
        if not self.net.readout.discriminants:
            return logits
        classes = sum(len(bias) for _, bias in self.net.heads)
        posteriors, answers = [], torch.zeros(1, classes)
        for x, (weight, bias) in zip(described, self.net.readout.discriminants, strict=True):
            posteriors.append(self.posterior(x, weight, bias, classes - len(bias)))
            answers[:, classes - len(bias) :] += 1
        mean = self.node("mean", "Mul", self.node("sum", "Sum", *posteriors), self.weight("shares", 1 / answers))
        return self.node("outputs", "Add", self.scaled("weighed", logits, HEAD_WEIGHT), mean)

    def features(self, name: str, x: str, count: int) -> str:
        """A row of numbers a picture, the mean of its own and its mirror image's where that is there."""
        if not self.net.mirror:
            return self.node(name, "Flatten", x)
        halves = self.weight(f"{name}.halves", torch.tensor([2, -1, count]))
        return self.node(name, "ReduceMean", self.node(f"{name}.both", "Reshape", x, halves), axes=[0], keepdims=0)

    def with_quarters(self, name: str, last: str, before: str, number: int) -> str:
        """All features of a working memory: its last map's, and those of the map before it."""
        layers = len(self.net.shortcuts) // BLOCKS
        if layers == 1:
            return last
        count = self.net.readout.discriminants[number][0].shape[1] - self.net.heads[number][0].shape[1]
        sides = [-(-side // 2 ** (layers - 2)) for side in self.image_size]
        x = self.features(f"{name}.before", self.quarters(f"{name}.quarters", before, sides), count)
        return self.node(f"{name}.all", "Concat", last, x, axis=1)

    def quarters(self, name: str, x: str, sides: Sequence[int]) -> str:
        """A map averaged over its quarters.

        Those of odd maps overlap, which no pooling of ONNX does: columns are averaged, and rows then.
        """
        height, width = (adaptive_avg_pool1d(torch.eye(side), GRID) for side in sides)
        x = self.node(f"{name}.columns", "MatMul", x, self.weight(f"{name}.width", width))
        return self.node(name, "MatMul", self.weight(f"{name}.height", height.T), x)

    def patches(self, name: str, x: str, patches: PatchFeatures) -> str:
        """Features of patches, as `PatchFeatures` has them."""
        x = self.node(f"{name}.centred", "Sub", x, self.node(f"{name}.level", "ReduceMean", x, axes=[1, 2, 3]))
        filters = patches.filters
        values = filters[0].numel()
        average = self.weight(f"{name}.average", torch.full_like(filters[:1], 1 / values))
        mean, square = self.node(f"{name}.mean", "Conv", x, average), self.node(f"{name}.square", "Mul", x, x)
        variance = self.node(
            f"{name}.variance",
            "Sub",
            self.node(f"{name}.squares", "Conv", square, average),
            self.node(f"{name}.squared", "Mul", mean, mean),
        )
        variance = self.scaled(
            f"{name}.positive", self.node(f"{name}.clamped", "Relu", variance), values / (values - 1)
        )
        deviation = self.node(f"{name}.deviation", "Sqrt", self.shifted(f"{name}.flat", variance, FLAT))
        found = self.node(f"{name}.found", "Conv", x, self.weight(f"{name}.filters", filters))
        found = self.node(f"{name}.normalized", "Div", found, deviation)
        found = self.node(f"{name}.sum", "Add", found, self.weight(f"{name}.bias", patches.bias[:, None, None]))
        both = self.node(f"{name}.both", "Concat", found, self.node(f"{name}.opposite", "Neg", found), axis=1)
        both = self.node(f"{name}.above", "Relu", self.shifted(f"{name}.threshold", both, -THRESHOLD))
        sides = [side - size + 1 for side, size in zip(self.image_size, filters.shape[2:], strict=True)]
        quarters = self.shifted(f"{name}.rooted", self.quarters(f"{name}.quarters", both, sides), ROOT)
        return self.features(f"{name}.features", self.node(f"{name}.root", "Sqrt", quarters), FEATURES)

    def scaled(self, name: str, x: str, factor: float) -> str:
        return self.node(name, "Mul", x, self.weight(f"{name}.factor", torch.tensor(factor)))

    def shifted(self, name: str, x: str, shift: float) -> str:
        return self.node(name, "Add", x, self.weight(f"{name}.shift", torch.tensor(shift)))

    def posterior(self, features: str, weight: Tensor, bias: Tensor, unknown: int) -> str:
        """What discriminants say of each class; of the first ones, which they do not know, 0."""
        x = self.linear(f"{features}.discriminants", features, weight / TEMPERATURE, bias / TEMPERATURE)
        x = self.node(f"{features}.posterior", "LogSoftmax", x, axis=1)
        unknown_first = self.weight(f"{features}.unknown", torch.tensor([0, unknown, 0, 0]))
        return self.node(f"{features}.padded", "Pad", x, unknown_first)


def _serialized(onnx: ModuleType, net: InferenceNet, info: ModelInfo) -> bytes:
    if (size := _bytes(net)) > LARGEST:
        raise InputError(
            f"an ONNX file holds at most 2 GiB, and this model is of {size / 2**30:.1f} GiB: keep it as is"
        )
    graph = _Graph(onnx, net, info.shape.image_size)
    # The numbers of Augment.normalize, in its order.
    shift = graph.weight("shift", torch.tensor(info.mean)[:, None, None].mul(255))
    scale = graph.weight("scale", torch.tensor(info.std)[:, None, None].mul(255).reciprocal())
    x = graph.node("floats", "Cast", "images", to=onnx.TensorProto.FLOAT)
    x = graph.node("normalized", "Mul", graph.node("centred", "Sub", x, shift), scale)
    x = graph.outputs(x)
    rounds = [
        graph.node(f"outputs{number}", "Gather", x, graph.weight(f"indices{number}", indices), axis=1)
        for number, indices in enumerate(_rounds(info.class_of_output))
    ]
    scores = graph.node("scores", "Max", *rounds)
    graph.node("probabilities", "Softmax", scores, axis=1)

    tensor, (floats, octets) = onnx.helper.make_tensor_value_info, (onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8)
    inputs = [tensor("images", octets, ["batch", info.shape.channels, *info.shape.image_size])]
    outputs = [tensor(name, floats, ["batch", len(info.classes)]) for name in ("scores", "probabilities")]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "sparc", inputs, outputs, graph.weights),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="sparc",
        producer_version=__version__,
    )
    facts = {
        "format": FORMAT,
        "version": str(VERSION),
        "producer": f"sparc {__version__}",
        "classes": json.dumps(info.classes, ensure_ascii=False),
        "tasks": json.dumps([task.name for task in info.tasks], ensure_ascii=False),
        "image_size": json.dumps(info.shape.image_size),
        "fit": info.shape.fit,
    }
    onnx.helper.set_model_props(model, facts)
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


def _rounds(class_of_output: Sequence[int]) -> list[Tensor]:
    """The outputs to take for each class, in as many rounds as the class with the most outputs has.

    >>> _rounds([0, 1, 0])
    [tensor([0, 1]), tensor([2, 1])]
    """
    outputs: list[list[int]] = [[] for _ in range(max(class_of_output) + 1)]
    for index, label in enumerate(class_of_output):
        outputs[label].append(index)
    return [torch.tensor([own[n % len(own)] for own in outputs]) for n in range(max(map(len, outputs)))]


def _runner(runtime: ModuleType, content: bytes) -> Callable[[np.ndarray], np.ndarray]:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(images: np.ndarray) -> np.ndarray:
        scores: np.ndarray = session.run(["scores"], {"images": images})[0]
        return scores

    return run


@torch.no_grad()
def _compare(model: Model, run: Callable[[np.ndarray], np.ndarray], images: Tensor) -> float:
    """The largest difference of a score; a refusal where it is too large, or where another class would win."""
    largest = 0.0
    for batch in images.split(BATCH):
        expected = _expected(model, batch)
        scores = torch.from_numpy(run(batch.numpy()))
        difference = (scores - expected).abs().max().item()
        lost = (expected.amax(1) - expected.gather(1, scores.argmax(1, keepdim=True))[:, 0]).max().item()
        allowed = TOLERANCE * max(1.0, expected.abs().max().item() / 10)
        # So written that a score which is no number fails.
        if not (difference <= allowed and lost <= allowed):
            raise InputError(
                f"the ONNX model does not answer as the net does (a score differs by {difference:g}), "
                "so nothing was written: check the model with sparc inspect"
            )
        largest = max(largest, difference)
    return largest


def _expected(model: Model, images: Tensor) -> Tensor:
    """The net's own scores, the largest output of each class."""
    logits: Tensor = model.net(Augment(model.info.mean, model.info.std).normalize(images))
    return best_of_outputs(model.info, logits)


def _milliseconds(run: Callable[[np.ndarray], np.ndarray], images: np.ndarray) -> float:
    """Per picture, the median of up to 20 runs in about a second."""
    seconds: list[float] = []
    run(images)
    while len(seconds) < 3 or (len(seconds) < 20 and sum(seconds) < 1):
        start = time.perf_counter()
        run(images)
        seconds.append(time.perf_counter() - start)
    return 1000 * median(seconds) / len(images)


def _bytes(net: InferenceNet) -> int:
    convs = [tensor for conv in net.convs for tensor in (conv.depthwise, conv.pointwise, conv.bias)]
    shortcuts = [weight for weight in net.shortcuts if weight is not None]
    layers = [tensor for layer in (*net.heads, *net.readout.discriminants) for tensor in layer]
    patches = [] if net.patches is None else [net.patches.filters]
    return sum(tensor.nbytes for tensor in (*convs, *shortcuts, *layers, *patches))


def _describe(images: Tensor) -> str:
    return f"{len(images)} of {' × '.join(map(str, images.shape[1:]))} in {str(images.dtype).split('.')[-1]}"
