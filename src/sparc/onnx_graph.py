"""An inference net as an ONNX graph, written by hand: the few operators that it needs, and nothing an exporter adds."""

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool1d

from sparc.nn.efficientnet import DEVIATION, MEAN, EfficientNetLite0, InvertedResidual, SameConv
from sparc.nn.inference import FoldedConv, FoldedMemory, InferenceNet
from sparc.nn.layout import BLOCKS
from sparc.nn.patches import FEATURES, FLAT, ROOT, THRESHOLD, PatchFeatures
from sparc.nn.readout import GRID, HEAD_WEIGHT, TEMPERATURE, Layer
from sparc.nn.start import ROOT as START_ROOT
from sparc.nn.start import StartFeatures
from sparc.nn.strangeness import Strangeness

NEVER = -1e30
"""What a head says of a class that it does not speak for; infinities are not everywhere taken well."""


class Graph:
    """Nodes and weights in the making; every node has one output, which has its name."""

    def __init__(self, onnx: ModuleType, net: InferenceNet, image_size: tuple[int, int]) -> None:
        self.onnx = onnx
        self.net = net
        self.image_size = image_size
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.names: set[str] = set()
        self.common_features = ""
        """The node that gives them, once there are scores."""

    def weight(self, name: str, value: Tensor) -> str:
        self.names.add(name)
        self.weights.append(self.onnx.numpy_helper.from_array(value.detach().cpu().contiguous().numpy(), name))
        return name

    def constant(self, name: str, value: float) -> str:
        """A number that several nodes may share."""
        return name if name in self.names else self.weight(name, torch.tensor(value))

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

    def scores(self, x: str) -> str:
        """From normalized pictures to a score for every class, as `Readout` has it."""
        readout, common = self.net.readout, self.net.common
        logits, described = [], []
        both = self.with_mirrored(x) if self.net.mirror else x
        for number, (memory, head) in enumerate(zip(self.net.memories(), readout.heads, strict=True)):
            name = f"memory{number}"
            last, before = self.maps(name, both, memory)
            # Not GlobalAveragePool, which adds up the pixels one by one: discriminants are not happy with that.
            last = self.node(f"{name}.pool", "ReduceMean", last, axes=[2, 3], keepdims=0)
            last = self.features(f"{name}.features", last, head.weight.shape[1])
            logits.append(self.spread(self.linear(f"{name}.head", last, head.weight, head.bias), head, NEVER))
            if self.net.quarters and readout.discriminants:
                described.append(self.with_quarters(name, last, before, readout.discriminants[number], head))
        if isinstance(common, PatchFeatures):
            described.append(self.patches("patches", both, common))
        elif common is not None:
            described.append(start_features(self, "start", x, common, self.image_size))
        posteriors = [
            self.posterior(features, layer) for features, layer in zip(described, readout.discriminants, strict=True)
        ]
        self.common_features = described[-1] if common is not None else ""
        in_portion = self.together("in_portion", logits, posteriors)
        if not posteriors or all(head.trust == 1 for head in readout.heads):
            return in_portion
        among_all = self.together("among_all", logits, posteriors, by_trust=True)
        return self.by_portion(among_all, in_portion)

    def strangeness(self, name: str, strangeness: Strangeness) -> str:
        """How strange a picture is, by its common features."""
        found = self.linear(f"{name}.whitened", self.common_features, *strangeness.layer())
        squares = self.node(f"{name}.squares", "Mul", found, found)
        from_centre = self.node(
            f"{name}.from_centre", "ReduceSum", squares, self.weight(f"{name}.axes", torch.tensor([1])), keepdims=1
        )
        means = strangeness.means
        to_means = self.linear(f"{name}.to_means", found, -2 * means, means.square().sum(1))
        nearest = self.node(f"{name}.least", "ReduceMin", to_means, axes=[1], keepdims=1)
        nearest = self.node(f"{name}.nearest", "Relu", self.node(f"{name}.distance", "Add", nearest, from_centre))
        ratio = self.node(
            f"{name}.ratio", "Div", nearest, self.shifted(f"{name}.usual", from_centre, strangeness.usual)
        )
        return self.node(name, "Squeeze", ratio, f"{name}.axes")

    def together(self, name: str, logits: Sequence[str], posteriors: Sequence[str], by_trust: bool = False) -> str:
        """The most that a head says of a class, and the mean of what those discriminants say that know it."""
        readout, parts = self.net.readout, []
        if logits:
            rest = self.weight(f"{name}.rest", readout.rest(by_trust).clamp_min(NEVER)[None])
            trust = readout.head_trust(by_trust)
            heard = [self.scaled(f"{name}.{each}", each, trust) if by_trust else each for each in logits]
            best = self.node(f"{name}.best", "Max", rest, *heard)
            parts.append(self.scaled(f"{name}.weighed", best, HEAD_WEIGHT) if posteriors else best)
        if posteriors:
            heard = [
                self.scaled(f"{name}.{each}", each, layer.trust) if by_trust else each
                for each, layer in zip(posteriors, readout.discriminants, strict=True)
            ]
            shares = self.weight(f"{name}.shares", 1 / readout.answers(by_trust)[None])
            parts.append(self.node(f"{name}.mean", "Mul", self.node(f"{name}.sum", "Sum", *heard), shares))
        return parts[0] if len(parts) == 1 else self.node(name, "Add", *parts)

    def by_portion(self, among_all: str, in_portion: str) -> str:
        """The score of each class's portion, and in it the class's own."""
        found = []
        for number, portion in enumerate(self.net.readout.portions):
            name = f"portion{number}"
            columns = self.weight(f"{name}.columns", torch.tensor(portion))
            everywhere = self.node(f"{name}.among_all", "Gather", among_all, columns, axis=1)
            mass = self.node(f"{name}.mass", "ReduceLogSumExp", everywhere, axes=[1], keepdims=1)
            own = self.node(f"{name}.own", "Gather", in_portion, columns, axis=1)
            own = self.node(f"{name}.posterior", "LogSoftmax", own, axis=1)
            found.append(self.node(name, "Add", mass, own))
        together = self.node("by_portion", "Concat", *found, axis=1)
        order = torch.tensor([label for portion in self.net.readout.portions for label in portion]).argsort()
        return self.node("in_order", "Gather", together, self.weight("order", order), axis=1)

    def with_mirrored(self, x: str) -> str:
        """All pictures, and then their mirror images."""
        backwards = self.weight("backwards", torch.arange(self.image_size[1]).flip(0))
        return self.node("both", "Concat", x, self.node("mirrored", "Gather", x, backwards, axis=3), axis=0)

    def spread(self, x: str, layer: Layer, otherwise: float) -> str:
        """A column for each of all classes."""
        classes = self.net.readout.classes
        filler = self.weight(f"{x}.filler", torch.tensor(otherwise))
        padded = self.node(f"{x}.padded", "Pad", x, self.weight(f"{x}.pads", torch.tensor([0, 0, 0, 1])), filler)
        columns = torch.full((classes,), len(layer.classes))
        columns[layer.classes] = torch.arange(len(layer.classes))
        return self.node(f"{x}.spread", "Gather", padded, self.weight(f"{x}.columns", columns), axis=1)

    def features(self, name: str, x: str, count: int) -> str:
        """A row of numbers a picture, the mean of its own and its mirror image's where that is there."""
        if not self.net.mirror:
            return self.node(name, "Flatten", x)
        halves = self.weight(f"{name}.halves", torch.tensor([2, -1, count]))
        return self.node(name, "ReduceMean", self.node(f"{name}.both", "Reshape", x, halves), axes=[0], keepdims=0)

    def with_quarters(self, name: str, last: str, before: str, layer: Layer, head: Layer) -> str:
        """All features of a working memory: its last map's, and those of the map before it."""
        layers = len(self.net.shortcuts) // BLOCKS
        if layers == 1:
            return last
        count = layer.weight.shape[1] - head.weight.shape[1]
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

    def posterior(self, features: str, layer: Layer) -> str:
        """What discriminants say of each class; of those that they do not know, 0."""
        x = self.linear(f"{features}.discriminants", features, layer.weight / TEMPERATURE, layer.bias / TEMPERATURE)
        return self.spread(self.node(f"{features}.posterior", "LogSoftmax", x, axis=1), layer, 0.0)


def start_features(graph: Graph, name: str, x: str, start: StartFeatures, image_size: tuple[int, int]) -> str:
    """Features of the start, as `StartFeatures` has them."""
    if image_size != (start.side, start.side):
        scales = torch.tensor([1.0, 1.0, *(_scale(side, start.side) for side in image_size)])
        scales_name = graph.weight(f"{name}.scales", scales)
        x = graph.node(f"{name}.resized", "Resize", x, "", scales_name, mode="cubic", cubic_coeff_a=-0.75)
        x = graph.node(f"{name}.pixels", "Clip", x, graph.constant("black", 0.0), graph.constant("white", 255.0))
    x = graph.shifted(f"{name}.centred", x, -MEAN)
    x = graph.scaled(f"{name}.normalized", x, 1 / DEVIATION)
    net = start.net
    assert isinstance(net, EfficientNetLite0)
    side = start.side
    x, side = _same_conv(graph, f"{name}.stem", x, net.stem, side)
    for number, block in enumerate(net.blocks):
        assert isinstance(block, InvertedResidual)
        before, own = x, f"{name}.block{number}"
        if block.expand is not None:
            x, side = _same_conv(graph, f"{own}.expand", x, block.expand, side)
        x, side = _same_conv(graph, f"{own}.depthwise", x, block.depthwise, side)
        x, side = _same_conv(graph, f"{own}.project", x, block.project, side, clipped=False)
        x = graph.node(f"{own}.sum", "Add", x, before) if block.adds_input else x
    x, side = _same_conv(graph, f"{name}.head", x, net.head, side)
    x = graph.node(f"{name}.pool", "ReduceMean", x, axes=[2, 3], keepdims=0)
    return graph.node(f"{name}.root", "Sqrt", graph.shifted(f"{name}.rooted", x, START_ROOT))


def _scale(side: int, wanted: int) -> float:
    """By which a side becomes another, also where runtimes round the product down.

    >>> math.floor(np.float32(_scale(46, 224)) * np.float32(46))
    224
    """
    scale = np.float32(wanted / side)
    while math.floor(scale * np.float32(side)) < wanted:
        scale = np.nextafter(scale, np.float32(np.inf))
    return float(scale)


def _same_conv(graph: Graph, name: str, x: str, conv: SameConv, side: int, clipped: bool = True) -> tuple[str, int]:
    """A convolution whose map keeps its side but for the stride, and that side."""
    kernel, out = conv.weight.shape[2], -(-side // conv.stride)
    padding = max((out - 1) * conv.stride + kernel - side, 0)
    pads = [padding // 2] * 2 + [padding - padding // 2] * 2
    weights = graph.weight(f"{name}.weight", conv.weight), graph.weight(f"{name}.bias", conv.bias)
    x = graph.node(f"{name}.conv", "Conv", x, *weights, pads=pads, strides=[conv.stride] * 2, group=conv.groups)
    return (graph.node(name, "Clip", x, graph.constant("0", 0.0), graph.constant("6", 6.0)) if clipped else x), out
