"""Arithmetic against the nets themselves."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from sparc.nn import ResNet, SparcNet
from sparc.reproduce.counts import layout_of, parameters, resnet_parameters, work_of


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
    side = layout_of("sparc", settings, benchmark).side
    net = SparcNet(image_size=(side, side), **settings)  # type: ignore[arg-type]
    for _ in range(tasks):
        net.add_task(classes)
    assert parameters("sparc", settings, benchmark) == net.parameter_counts().total
    assert parameters("weight-alignment", settings, benchmark) == net.parameter_counts().total


def test_complete_isolation_shares_nothing() -> None:
    net = SparcNet(width=1.0, shared=0)
    for _ in range(5):
        net.add_task(20)
    assert parameters("isolation", {"width": 1.0}, "seq-cifar100-5") == count(net)


@pytest.mark.parametrize("width", [1.0, 0.25])
def test_a_resnets_count_is_the_nets_with_and_without_running_statistics(width: float) -> None:
    net = ResNet(width=width)
    net.add_classes(100)
    layout = layout_of("er", {"width": width}, "seq-cifar100-5")
    assert resnet_parameters(layout, 100) == count(net)
    state = count(net) + sum(buffer.numel() for buffer in net.buffers())
    assert resnet_parameters(layout, 100, statistics=True) == state
    assert parameters("er", {"width": width}, "seq-cifar100-10") == state
    assert parameters("cls-er", {"width": width}, "seq-cifar100-10") == 3 * state


def test_one_separable_net_for_all_tasks_is_a_working_memory() -> None:
    net = SparcNet(width=2.5, shared=0)
    net.add_task(100)
    assert parameters("er", {"width": 2.5, "backbone": "separable"}, "seq-cifar100-5") == count(net)


def test_pnns_by_hand() -> None:
    """Two tasks at width 1/64 have filters 1-2-4-8, which can be counted on paper."""

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
    assert parameters("pnn", {"width": 1 / 64}, "seq-cifar100-5") == expected


def test_of_a_method_whose_layout_is_not_known_nothing_is_said() -> None:
    assert parameters("nispa", {}, "seq-cifar100-5") is None


def convolutions(answer: Callable[[torch.Tensor], torch.Tensor]) -> int:
    """Multiply-adds of one picture's convolutions, by torch's own count."""
    with FlopCounterMode(display=False) as counter:
        answer(torch.zeros(1, 3, 32, 32))
    operations = counter.get_flop_counts()["Global"].items()
    return sum(flops // 2 for operation, flops in operations if "convolution" in str(operation))


def test_the_work_of_a_resnet_is_that_of_its_convolutions() -> None:
    # Its three shortcuts are left out.
    shortcuts = 64 * 128 * 16 * 16 + 128 * 256 * 8 * 8 + 256 * 512 * 4 * 4
    work = work_of("sgd", {}, "seq-cifar100-5")
    assert work.multiply_adds == convolutions(ResNet().features) - shortcuts
    assert work.outputs == 5 * 64 * 32 * 32 + 4 * (128 * 16 * 16 + 256 * 8 * 8 + 512 * 4 * 4)


def test_the_work_of_sparc_is_that_of_its_filters() -> None:
    net = SparcNet()
    net.add_task(20)
    work = work_of("sparc", {}, "seq-cifar100-5")
    assert work.multiply_adds == convolutions(net)
    assert work.outputs == 5 * 32 * 32 * 32 + 4 * (64 * 16 * 16 + 128 * 8 * 8 + 256 * 4 * 4)


def test_larger_pictures_cost_more_in_proportion() -> None:
    small, large = (work_of("sgd", {}, name) for name in ("seq-cifar100-5", "seq-tinyimagenet"))
    assert (large.multiply_adds, large.outputs) == (4 * small.multiply_adds, 4 * small.outputs)
