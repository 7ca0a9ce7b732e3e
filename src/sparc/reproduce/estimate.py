"""What a run would ask of this machine: roughly how long."""

import time
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from sparc.data.benchmarks import find
from sparc.experiment.config import RunConfig
from sparc.methods import METHODS
from sparc.methods.settings import NetSettings
from sparc.nn.backbone import Backbone, new_backbone
from sparc.nn.layout import suitable_depth
from sparc.reproduce.counts import CHANNELS, backbone_of, data_of, measured_work
from sparc.train.costs import Operations

MULTIPLY_ADDS_AN_OUTPUT = 300
"""Fitted to steps of SPARC's net at widths from 1/4 to 2, and of ResNets, on an x86-64 machine."""
PROBE_SECONDS = 0.3
PROBE_WIDTHS: dict[Backbone, float] = {"separable": 0.5, "resnet": 0.25}
SIDE = 32


def estimate(config: RunConfig, images_per_second: float) -> float:
    """Hours of training, roughly: pictures × epochs × passes / rate. Testing and loading are left out.

    >>> round(estimate(RunConfig.default("seq-cifar100-5", "sparc"), images_per_second=350), 1)
    2.0
    """
    benchmark, method = find(config.benchmark), METHODS.find(config.method)
    passes = measured_work(method).total
    if method.sees_old_tasks:
        passes *= (benchmark.tasks + 1) / 3  # they were measured on two tasks, of which the second has both's pictures
    if method.kind == "growing":
        passes *= (benchmark.tasks + 5) / 3  # older parts are run through, and not trained
    return data_of(config.benchmark).train_pictures * config.recipe.epochs * passes / images_per_second / 3600


def images_per_second(config: RunConfig) -> float:
    """At which this machine would train a single net of the config's, by the work that it is.

    One small net of each backbone is timed, once; the rest is proportion.
    """
    backbone = backbone_of(METHODS.find(config.method), config.settings)
    settings = config.settings if isinstance(config.settings, NetSettings) else NetSettings()
    side = data_of(config.benchmark).side
    depth = settings.depth or suitable_depth((side, side))
    return _speed(backbone) / (_work(backbone, settings.width, depth) * (side / SIDE) ** 2)


@cache
def _work(backbone: Backbone, width: float, depth: int) -> int:
    """Of one picture's way through a net, in multiply-adds."""
    net = new_backbone(backbone, CHANNELS, (SIDE, SIDE), width, depth, Generator()).eval()
    done = Operations({torch.ops.aten.convolution: _convolution})
    with done, torch.no_grad():
        net.features(torch.zeros(1, CHANNELS, SIDE, SIDE))
    return done.total


def _convolution(images: Tensor, filters: Tensor, *rest: Any, out_val: Tensor) -> int:
    """What is done with a number that comes out of it takes as long as so many multiply-adds."""
    depthwise = filters.shape[1] == 1
    return out_val.numel() * (filters[0].numel() + (0 if depthwise else MULTIPLY_ADDS_AN_OUTPUT))


@cache
def _speed(backbone: Backbone) -> float:
    """Work a second, there and back; the optimizer's is little."""
    net = new_backbone(backbone, CHANNELS, (SIDE, SIDE), PROBE_WIDTHS[backbone], None, Generator())
    net.add_classes(20)
    images, labels = torch.zeros(32, CHANNELS, SIDE, SIDE), torch.zeros(32, dtype=torch.int64)

    def step() -> None:
        cross_entropy(net(images), labels).backward()

    step()  # the first one is slower than all others
    # By the processor's time, so that whatever else runs now does not count.
    start, steps = time.process_time(), 0
    while time.process_time() - start < PROBE_SECONDS or not steps:
        step()
        steps += 1
    work = _work(backbone, PROBE_WIDTHS[backbone], suitable_depth((SIDE, SIDE)))
    return len(images) * work * steps / (time.process_time() - start)
