"""Parameters as the paper counts them; large nets lie on torch's meta device, where they take no memory.

The paper does not count in one way. SPARC's numbers are parameters alone. A ResNet-18 of 11.22 M parameters is printed
as 11.23, which is what it has with batch norm's running statistics; CLS-ER is three of those. TAMiL is two without
them, each with an auto-encoder of 64 hidden units a task. PNNs are counted as the field's implementation, Mammoth's,
stores them: every column has room for all classes, and copies of all columns before it.
"""

from dataclasses import fields, replace
from functools import cache

import torch
from torch import Generator

from sparc.data import sources
from sparc.data.benchmarks import find
from sparc.data.pictures import SMALLEST_SIDE
from sparc.data.sources.stored import StoredSource
from sparc.methods import Method, Settings
from sparc.methods.settings import NetSettings
from sparc.nn import ResNet, SparcNet
from sparc.nn.backbone import Backbone, new_backbone
from sparc.nn.growing import GrowingNet
from sparc.nn.head import count_parameters
from sparc.nn.progressive import ProgressiveNet
from sparc.reproduce.plan import find_method
from sparc.train import Work, count_kept, measure_work

CHANNELS = 3
_SMALLEST = NetSettings(width=1 / 32, depth=1)
_SMALL = NetSettings(width=1 / 8, depth=1)
HIDDEN_UNITS = 64
"""Of TAMiL's auto-encoders."""


def data_of(benchmark: str) -> StoredSource:
    """The data set that a benchmark of the paper is cut from."""
    source = sources.find(find(benchmark).source)
    assert isinstance(source, StoredSource), benchmark
    return source


@cache
def measured_work(method: type[Method]) -> Work:
    """Of a small net: passes do not depend on the width, as long as nearly all of the work is the net's."""
    return measure_work(method, 2, _with_net(method, _SMALL), CHANNELS, (2 * SMALLEST_SIDE, 2 * SMALLEST_SIDE))


def _with_net(method: type[Method], net: NetSettings) -> Settings:
    settings = method.Settings()
    known = {each.name for each in fields(settings)}
    return replace(settings, **{name: getattr(net, name) for name in ("width", "depth") if name in known})


def backbone_of(method: type[Method] | None, settings: Settings) -> Backbone:
    """What a method's net, or each of its nets, is made of; without a method, the paper's rivals' ResNet."""
    separable = method is not None and method.kind == "sparc"
    return getattr(settings, "backbone", "separable" if separable else "resnet")


@cache
def parameters(name: str, settings: Settings, benchmark: str, as_built: bool = False) -> int | None:
    """How many a method that the paper prints ends with, counted as the paper counts.

    That is a single net unless the paper has more; or, as the method is built here, as many as it keeps, and None where
    it keeps other things than nets.

    >>> parameters("ER", NetSettings(), "seq-cifar100-5"), parameters("CLS-ER", NetSettings(), "seq-cifar100-5")
    (11229752, 33689256)
    """
    method, tasks, data = find_method(name), find(benchmark).tasks, data_of(benchmark)
    if not isinstance(settings, NetSettings):
        return None
    backbone = backbone_of(method, settings)
    # Nets like SPARC's are small, and drawing normal numbers on the meta device would import torch's compiler.
    with torch.device("meta" if backbone == "resnet" else "cpu"):
        if method is not None and method.kind == "sparc":
            return _sparc(settings, tasks, data.classes, data.side)
        if name == "PNNs":
            return _progressive(settings, tasks, data.classes, data.side)
        net = _single_net(backbone, settings, data.side, data.classes)
    if name == "TAMiL":
        features = net.head.in_features
        attention = 2 * features * HIDDEN_UNITS + features + HIDDEN_UNITS
        return 2 * (count_parameters(net) + tasks * attention)
    nets = 3 if name == "CLS-ER" else _nets_kept(method) if as_built and method is not None else 1
    statistics = sum(buffer.numel() for buffer in net.buffers()) if isinstance(net, ResNet) else 0
    return nets * (count_parameters(net) + statistics) or None


def _nets_kept(method: type[Method]) -> int:
    """How many copies of its net it is made of, without anything beside them; 0 if there is something."""
    net = _single_net(backbone_of(method, method.Settings()), _SMALLEST, SMALLEST_SIDE, classes=4)
    kept = count_kept(method, [2, 2], _with_net(method, _SMALLEST), CHANNELS, (SMALLEST_SIDE, SMALLEST_SIDE)).numbers
    nets, rest = divmod(kept, count_parameters(net))
    return 0 if rest else nets


def _single_net(backbone: Backbone, settings: NetSettings, side: int, classes: int) -> GrowingNet:
    net = new_backbone(backbone, CHANNELS, (side, side), settings.width, settings.depth, Generator())
    net.add_classes(classes)
    return net


def _sparc(settings: NetSettings, tasks: int, classes: int, side: int) -> int:
    shared = getattr(settings, "shared", 0.0)  # complete isolation has no such setting
    net = SparcNet(CHANNELS, (side, side), settings.width, settings.depth, shared)
    return count_parameters(net.semantic) + tasks * count_parameters(net.add_task(classes // tasks))


def _progressive(settings: NetSettings, tasks: int, classes: int, side: int) -> int:
    net = ProgressiveNet(CHANNELS, (side, side), settings.width, settings.depth)
    for _ in range(3):
        net.add_task(classes)
    # From the second on, a column has adapters, which grow by as much with each column before it.
    first, second, third = map(count_parameters, net.columns)
    columns = first + sum(second + older * (third - second) for older in range(tasks - 1))
    # A copy has neither head nor adapters, and uses the first batch norm of the column that it lies in.
    copy = first - count_parameters(net.all_columns()[0].head) - 2 * net.filters[0]
    return columns + tasks * (tasks - 1) // 2 * copy
