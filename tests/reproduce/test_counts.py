"""Counts in the paper's way, against nets that are really built and against arithmetic by hand."""

import pytest
from torch import nn

from sparc.methods import Settings
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.settings import NetSettings
from sparc.methods.sparc.settings import RenormalizationSettings, SemanticSettings, SparcSettings
from sparc.nn import ResNet, SparcNet
from sparc.reproduce.counts import data_of, parameters


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("settings", "benchmark", "tasks", "classes"),
    [
        ({}, "seq-cifar100-5", 5, 20),
        ({}, "seq-cifar100-20", 20, 5),
        ({"width": 0.25, "depth": 1}, "seq-cifar10", 5, 2),
        ({"width": 1.0, "depth": 3, "shared": 0.25}, "seq-cifar100-5", 5, 20),
        ({}, "seq-tinyimagenet", 10, 20),
        ({}, "seq-miniimagenet", 20, 5),
    ],
)
def test_sparcs_count_is_its_nets(settings: dict[str, float], benchmark: str, tasks: int, classes: int) -> None:
    side = data_of(benchmark).side
    net = SparcNet(image_size=(side, side), **settings)  # type: ignore[arg-type]
    for _ in range(tasks):
        net.add_task(classes)
    total = net.parameter_counts().total
    assert parameters("SPARC", SparcSettings(**settings), benchmark) == total  # type: ignore[arg-type]
    assert parameters("weight alignment", SemanticSettings(**settings), benchmark) == total  # type: ignore[arg-type]


def test_complete_isolation_shares_nothing() -> None:
    net = SparcNet(width=1.0, shared=0)
    for _ in range(5):
        net.add_task(20)
    settings = RenormalizationSettings(width=1.0)
    assert parameters("Complete Param. Isolation", settings, "seq-cifar100-5") == count(net)


@pytest.mark.parametrize("width", [1.0, 0.25])
def test_a_resnets_count_has_running_statistics(width: float) -> None:
    net = ResNet(width=width)
    net.add_classes(100)
    state = count(net) + sum(buffer.numel() for buffer in net.buffers())
    settings = SingleNetSettings(width=width)
    assert parameters("ER", settings, "seq-cifar100-10") == state
    assert parameters("CLS-ER", settings, "seq-cifar100-10") == 3 * state
    attention = (8 * 64 * width + 1) * 64 + (64 + 1) * 8 * 64 * width
    assert parameters("TAMiL", settings, "seq-cifar100-10") == 2 * (count(net) + 10 * attention)


def test_one_separable_net_for_all_tasks_is_a_working_memory() -> None:
    net = SparcNet(width=2.5, shared=0)
    net.add_task(100)
    settings = SingleNetSettings(width=2.5, backbone="separable")
    assert parameters("ER", settings, "seq-cifar100-5") == count(net)


def test_pnns_by_hand() -> None:
    """At width 1/64 there are filters 1-2-4-8, which can be counted on paper."""

    def block(inputs: int, out: int) -> int:
        shortcut = inputs * out + 2 * out if inputs != out else 0
        return 9 * inputs * out + 2 * out + 9 * out * out + 2 * out + shortcut

    def layer(inputs: int, out: int) -> int:
        return block(inputs, out) + block(out, out)

    stem = 27 * 1 + 2
    body = stem + layer(1, 1) + layer(1, 2) + layer(2, 4) + layer(4, 8)
    head = (8 + 1) * 100
    scales = 1 * 32 * 32 + 2 * 16 * 16 + 4 * 8 * 8 + 8
    projections = (1 * 1 + 1) + (2 * 2 + 2) + (4 * 4 + 4) + (8 * 8 + 8)
    laterals = layer(1, 2) + layer(2, 4) + layer(4, 8) + head
    copy = body - 2
    tasks = 5
    expected = tasks * (body + head)
    for older in range(1, tasks):
        inputs = older * (scales + 1 + 4 + 16 + 64) + (1 + 2 + 4 + 8)
        assert older > 1 or inputs == scales + projections
        expected += inputs + laterals + older * copy
    assert parameters("PNNs", NetSettings(width=1 / 64), "seq-cifar100-5") == expected


@pytest.mark.parametrize(("name", "settings"), [("PackNet", SingleNetSettings()), ("ER", Settings())])
def test_of_a_method_whose_layout_is_not_known_nothing_is_said(name: str, settings: Settings) -> None:
    assert parameters(name, settings, "seq-cifar100-5", as_built=True) is None


def test_a_teacher_is_counted_where_it_is_built_here() -> None:
    once, built = (parameters("LwF", SingleNetSettings(), "seq-cifar100-5", as_built) for as_built in (False, True))
    assert once is not None
    assert built == 2 * once
