"""Features that all classes have in common, as nodes: those of patches, and those of a start."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sparc.folded import Patches
from sparc.graph.builder import Graph
from sparc.nn import lite0
from sparc.nn.patch_numbers import FLAT, ROOT, THRESHOLD
from sparc.nn.roll import GRID
from sparc.nn.start_numbers import ROOT as START_ROOT


def quarters(graph: Graph, name: str, x: str, sides: Sequence[int]) -> str:
    """A map averaged over its quarters.

    Those of odd maps overlap, which no pooling of ONNX does: columns are averaged, and rows then.
    """
    height, width = map(_halves, sides)
    x = graph.node(f"{name}.columns", "MatMul", x, graph.weight(f"{name}.width", width))
    return graph.node(name, "MatMul", graph.weight(f"{name}.height", height.T), x)


def _halves(side: int) -> NDArray[np.float32]:
    """[side, 2]: what takes the mean of the first and of the last half of so many numbers, as torch's adaptive pooling.

    >>> _halves(3).T.tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    found = np.zeros((side, GRID), np.float32)
    for cell in range(GRID):
        first, last = cell * side // GRID, -(-(cell + 1) * side // GRID)
        found[first:last, cell] = 1 / (last - first)
    return found


def peaks(graph: Graph, name: str, x: str, sides: Sequence[int], cells: int) -> str:
    """The most that there is in each cell of a grid over a map, where cells lie as those of `quarters` do."""
    return graph.node(
        name,
        "MaxPool",
        x,
        kernel_shape=[-(-side // cells) for side in sides],
        strides=[side // cells for side in sides],
    )


def patch_features(graph: Graph, name: str, x: str, patches: Patches, image_size: tuple[int, int], mirror: bool) -> str:
    """As `PatchFeatures` has them, from normalized pictures, and with `mirror` their mirror images behind them."""
    x = graph.node(f"{name}.centred", "Sub", x, graph.node(f"{name}.level", "ReduceMean", x, axes=[1, 2, 3]))
    filters = patches.filters
    values = filters[0].size
    average = graph.weight(f"{name}.average", np.full_like(filters[:1], 1 / values))
    mean, square = graph.node(f"{name}.mean", "Conv", x, average), graph.node(f"{name}.square", "Mul", x, x)
    variance = graph.node(
        f"{name}.variance",
        "Sub",
        graph.node(f"{name}.squares", "Conv", square, average),
        graph.node(f"{name}.squared", "Mul", mean, mean),
    )
    variance = graph.scaled(f"{name}.positive", graph.node(f"{name}.clamped", "Relu", variance), values / (values - 1))
    deviation = graph.node(f"{name}.deviation", "Sqrt", graph.shifted(f"{name}.flat", variance, FLAT))
    found = graph.node(f"{name}.found", "Conv", x, graph.weight(f"{name}.filters", filters))
    found = graph.node(f"{name}.normalized", "Div", found, deviation)
    found = graph.node(f"{name}.sum", "Add", found, graph.weight(f"{name}.bias", patches.bias[:, None, None]))
    both = graph.node(f"{name}.both", "Concat", found, graph.node(f"{name}.opposite", "Neg", found), axis=1)
    both = graph.node(f"{name}.above", "Relu", graph.shifted(f"{name}.threshold", both, -THRESHOLD))
    sides = [side - size + 1 for side, size in zip(image_size, filters.shape[2:], strict=True)]
    told = graph.node(f"{name}.means", "Flatten", quarters(graph, f"{name}.quarters", both, sides))
    if patches.kind.peaks:
        most = peaks(graph, f"{name}.most", both, sides, patches.kind.peaks)
        told = graph.node(f"{name}.told", "Concat", told, graph.node(f"{name}.peaks", "Flatten", most), axis=1)
    rooted = graph.shifted(f"{name}.rooted", told, ROOT)
    root = graph.node(f"{name}.root", "Sqrt", rooted)
    if not mirror:
        return root
    halves = graph.reshaped(f"{name}.halves", root, 2, -1, patches.kind.features)
    return graph.node(f"{name}.features", "ReduceMean", halves, axes=[0], keepdims=0)


def start_features(
    graph: Graph,
    name: str,
    x: str,
    weights: Mapping[str, NDArray[np.float32]],
    side: int,
    image_size: tuple[int, int],
) -> str:
    """As `StartFeatures` has them, from pixels from 0 to 255."""
    if image_size != (side, side):
        height, width = (_bicubic(each, side) for each in image_size)
        x = graph.node(f"{name}.wide", "MatMul", x, graph.weight(f"{name}.width", width))
        x = graph.node(f"{name}.resized", "MatMul", graph.weight(f"{name}.height", height.T), x)
        x = graph.node(f"{name}.pixels", "Clip", x, graph.constant("black", 0.0), graph.constant("white", 255.0))
    x = graph.shifted(f"{name}.centred", x, -lite0.MEAN)
    x = graph.scaled(f"{name}.normalized", x, 1 / lite0.DEVIATION)
    convs = SameConvs(graph, name, weights, side)
    x = convs("stem", x, stride=2)
    for number, block in enumerate(lite0.blocks()):
        before, own = x, f"blocks.{number}"
        if block.wider > 1:
            x = convs(f"{own}.expand", x)
        x = convs(f"{own}.depthwise", x, stride=block.stride, groups=block.channels * block.wider)
        x = convs(f"{own}.project", x, clipped=False)
        x = graph.node(f"{name}.{own}.sum", "Add", x, before) if block.adds_input else x
    x = convs("head", x)
    x = graph.node(f"{name}.pool", "ReduceMean", x, axes=[2, 3], keepdims=0)
    return graph.node(f"{name}.root", "Sqrt", graph.shifted(f"{name}.rooted", x, START_ROOT))


class SameConvs:
    """Convolutions whose map keeps its side but for the stride, one after another."""

    def __init__(self, graph: Graph, name: str, weights: Mapping[str, NDArray[np.float32]], side: int) -> None:
        self.graph = graph
        self.name = name
        self.weights = weights
        self.side = side

    def __call__(self, conv: str, x: str, stride: int = 1, groups: int = 1, clipped: bool = True) -> str:
        graph, name, weight = self.graph, f"{self.name}.{conv}", self.weights[f"{conv}.weight"]
        out = -(-self.side // stride)
        padding = max((out - 1) * stride + weight.shape[2] - self.side, 0)
        pads = [padding // 2] * 2 + [padding - padding // 2] * 2
        kept = graph.weight(f"{name}.weight", weight), graph.weight(f"{name}.bias", self.weights[f"{conv}.bias"])
        x = graph.node(f"{name}.conv", "Conv", x, *kept, pads=pads, strides=[stride] * 2, group=groups)
        self.side = out
        return graph.node(name, "Clip", x, graph.constant("0", 0.0), graph.constant("6", 6.0)) if clipped else x


def _bicubic(side: int, wanted: int) -> NDArray[np.float32]:
    """[side, wanted]: what brings so many pixels to as many as are wanted, as torch does it and to its last bits; a
    runtime's own way may differ by a hundredth of a pixel's brightness.

    >>> _bicubic(2, 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    at = np.float32(side / wanted) * (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) - np.float32(0.5)
    first = np.floor(at)
    found = np.zeros((side, wanted), np.float32)
    for step in range(-1, 3):
        row = (first.astype(np.int64) + step).clip(0, side - 1)
        np.add.at(found, (row, np.arange(wanted)), _cubic(np.abs(at - first - np.float32(step))))
    return found


def _cubic(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """How much a pixel counts that lies so far away (Keys, 1981)."""
    a = np.float32(-0.75)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, far)
