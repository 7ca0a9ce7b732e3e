"""What the paper's nets hold and compute, by arithmetic: no net is built, as some of them fit no memory.

The paper does not count in one way. SPARC's numbers are parameters alone. A ResNet-18 of 11.22 M parameters is printed
as 11.23, which is what it has with batch norm's running statistics. PNNs are counted as the field's implementation,
Mammoth's, stores them. What is worked out here is counted as the paper counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from sparc.data.benchmarks import find
from sparc.data.stream import equal_sizes
from sparc.nn.layout import BLOCKS, layer_filters, suitable_depth
from sparc.nn.sparc import layout

CHANNELS = 3
SPARC_FAMILY = frozenset({"sparc", "isolation", "weight-alignment"})
"""Methods with a working memory a task; all others have nets as wide as ResNet-18 is."""


@dataclass(frozen=True)
class Pictures:
    """What a data set of the paper has when it is whole."""

    classes: int
    side: int
    train: int


SETS = {
    "digits": Pictures(10, 8, 1_437),
    "cifar10": Pictures(10, 32, 50_000),
    "cifar100": Pictures(100, 32, 50_000),
    "tinyimagenet": Pictures(200, 64, 100_000),
    "miniimagenet": Pictures(100, 84, 50_000),
}


@dataclass(frozen=True)
class Layout:
    """The shape of a method's net on a stream."""

    sizes: Sequence[int]
    """Classes of each task."""
    side: int
    width: float
    depth: int
    shared: float
    separable: bool
    """Of depth-wise separable convolutions; else a ResNet."""

    @property
    def filters(self) -> list[int]:
        return layer_filters(self.width, self.depth)

    @property
    def classes(self) -> int:
        return sum(self.sizes)


def layout_of(method: str, settings: Mapping[str, Any], benchmark: str) -> Layout:
    known = find(benchmark)
    pictures = SETS[known.source]
    family = method in SPARC_FAMILY
    return Layout(
        sizes=equal_sizes(pictures.classes, known.tasks),
        side=pictures.side,
        width=settings.get("width", 0.5 if family else 1.0),
        depth=settings.get("depth") or suitable_depth((pictures.side, pictures.side)),
        shared=0.0 if method == "isolation" or not family else settings.get("shared", 0.5),
        separable=family or settings.get("backbone") == "separable",
    )


def parameters(method: str, settings: Mapping[str, Any], benchmark: str) -> int | None:
    """How many a method ends with on a stream, counted as the paper counts; None where no way to is known.

    >>> parameters("sparc", {}, "seq-cifar100-5"), parameters("er", {}, "seq-cifar100-5")
    (1039659, 11229752)
    """
    count = _COUNTS.get(method)
    return count(layout_of(method, settings, benchmark)) if count else None


@dataclass(frozen=True)
class Work:
    """What one picture's way through a net asks for."""

    multiply_adds: int
    outputs: int
    """Numbers in the maps that come out of its convolutions."""


def work_of(method: str, settings: Mapping[str, Any], benchmark: str) -> Work:
    """Of the net that is trained, shortcuts and head left out."""
    net = layout_of(method, settings, benchmark)
    side, total, outputs = net.side, 0, 0
    if net.separable:
        for unit in layout(CHANNELS, net.filters, 0):
            side = -(-side // unit.stride)
            total += side * side * unit.channels * (9 + unit.own)
            outputs += side * side * unit.own
        return Work(total, outputs)
    total, outputs = side * side * 9 * CHANNELS * net.filters[0], side * side * net.filters[0]
    for inputs, out, stride in _blocks(net.filters):
        side = -(-side // stride)
        total += side * side * out * 9 * (inputs + out)
        outputs += 2 * side * side * out
    return Work(total, outputs)


def separable_parameters(net: Layout) -> int:
    """A working memory and a head a task, and the semantic memory."""
    units = layout(CHANNELS, net.filters, net.shared)
    semantic = sum(unit.shared * unit.channels for unit in units)
    working = sum(
        (9 + unit.own) * unit.channels  # filters
        + 2 * (unit.own + unit.shared)  # batch norm
        + (2 * unit.channels if unit.stride > 1 else 0)  # shortcut
        for unit in units
    )
    return semantic + sum(working + _head(net, classes) for classes in net.sizes)


def one_separable_parameters(net: Layout) -> int:
    """The same as one net for all tasks."""
    return separable_parameters(Layout([net.classes], net.side, net.width, net.depth, 0, True))


def resnet_parameters(net: Layout, classes: int, statistics: bool = False) -> int:
    """With batch norm's running means and variances, and how many batches each has seen, if those are asked for."""
    body = 9 * CHANNELS * net.filters[0] + 2 * net.filters[0]
    body += sum(_block(*block) for block in _blocks(net.filters))
    return body + _head(net, classes) + (_statistics(net) if statistics else 0)


def progressive_parameters(net: Layout) -> int:
    """PNNs as Mammoth stores them: every column has room for all classes, and copies of all columns before it."""
    tasks, last = len(net.sizes), net.filters[-1]
    body = resnet_parameters(net, 0)
    total = tasks * (body + _head(net, net.classes))
    for older in range(1, tasks):
        side = net.side
        for inputs, out in pairwise(net.filters):
            total += older * inputs * side * side  # a scale for each place of each channel
            total += older * inputs * inputs + inputs + _lateral(inputs, out)
            side = -(-side // 2)
        total += older * last + older * last * last + last + _head(net, net.classes)
        total += older * (body - 2 * net.filters[0])  # the copies use the new column's first batch norm
    return total


def attention_parameters(net: Layout) -> int:
    """TAMiL: two nets, each with an auto-encoder of 64 hidden units a task."""
    features, hidden = net.filters[-1], 64
    attention = 2 * features * hidden + features + hidden
    return 2 * (resnet_parameters(net, net.classes) + len(net.sizes) * attention)


def _nets(number: int, net: Layout) -> int:
    if net.separable:
        return number * one_separable_parameters(net)
    return number * resnet_parameters(net, net.classes, statistics=True)


_COUNTS: dict[str, Callable[[Layout], int]] = {
    **dict.fromkeys(SPARC_FAMILY, separable_parameters),
    **dict.fromkeys(("joint", "sgd", "er", "der++", "er-ace"), partial(_nets, 1)),
    "cls-er": partial(_nets, 3),
    "tamil": attention_parameters,
    "pnn": progressive_parameters,
}


def _head(net: Layout, classes: int) -> int:
    return (net.filters[-1] + 1) * classes


def _blocks(filters: list[int]) -> list[tuple[int, int, int]]:
    """Channels in, channels out and stride of every residual block."""
    blocks, inputs = [], filters[0]
    for layer, out in enumerate(filters):
        for block in range(BLOCKS):
            blocks.append((inputs, out, 2 if layer and not block else 1))
            inputs = out
    return blocks


def _block(inputs: int, out: int, stride: int) -> int:
    shortcut = inputs * out + 2 * out if stride > 1 or inputs != out else 0
    return 9 * inputs * out + 9 * out * out + 4 * out + shortcut


def _lateral(inputs: int, out: int) -> int:
    return _block(inputs, out, 2) + (BLOCKS - 1) * _block(out, out, 1)


def _statistics(net: Layout) -> int:
    widths = [net.filters[0]]
    for inputs, out, stride in _blocks(net.filters):
        widths += [out] * (3 if stride > 1 or inputs != out else 2)
    return 2 * sum(widths) + len(widths)
