"""What a run would ask of this machine: roughly how long."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from sparc.data.benchmarks import find
from sparc.experiment.config import RunConfig
from sparc.nn import ResNet, SparcNet
from sparc.reproduce.counts import SETS, layout_of, work_of

PASSES: dict[str, Callable[[int], float]] = {
    "joint": lambda tasks: (tasks + 1) / 2,  # every task again with the pictures of all before it
    "pnn": lambda tasks: (tasks + 5) / 3,  # older columns are run through, and not trained
    "packnet": lambda tasks: 1.5,  # half as many epochs again after pruning
    "er": lambda tasks: 2,
    "er-ace": lambda tasks: 2,
    "der++": lambda tasks: 3,
    "lwf": lambda tasks: 1.7,  # a teacher, and a warm-up of the head alone
}
"""How much more a picture costs than by its way through one net; the others have 1, or nearly so."""
MULTIPLY_ADDS_AN_OUTPUT = 300
"""Fitted to steps of SPARC's net at widths from 1/4 to 2, and of ResNets, on an x86-64 machine."""
PROBE_SECONDS = 0.3
_PROBE = "seq-cifar100-5"


def estimate(config: RunConfig, images_per_second: float) -> float:
    """Hours of training, roughly: pictures × epochs × passes / rate. Testing and loading are left out.

    >>> round(estimate(RunConfig.default("seq-cifar100-5", "sparc"), images_per_second=350), 1)
    2.0
    """
    benchmark = find(config.benchmark)
    more = PASSES.get(config.method)
    pictures = SETS[benchmark.source].train * config.recipe.epochs * (more(benchmark.tasks) if more else 1.0)
    return pictures / images_per_second / 3600


def images_per_second(config: RunConfig) -> float:
    """At which this machine would train a single net of the config's, by the work that it is.

    One small net of each kind is timed, once; the rest is proportion.
    """
    settings = asdict(config.settings)
    separable = layout_of(config.method, settings, config.benchmark).separable
    return _speed(separable) / _work(config.method, settings, config.benchmark)


def _work(method: str, settings: Mapping[str, Any], benchmark: str) -> float:
    """In multiply-adds; what is done with a number that comes out of a convolution takes as long as so many of them."""
    work = work_of(method, settings, benchmark)
    return work.multiply_adds + MULTIPLY_ADDS_AN_OUTPUT * work.outputs


@cache
def _speed(separable: bool) -> float:
    """Work a second, there and back."""
    if separable:
        net = SparcNet(width=0.5)
        memory = net.add_task(20)
        answer: Callable[[Tensor], Tensor] = partial(memory, semantic=net.semantic)
        work = _work("sparc", {}, _PROBE)
    else:
        answer = resnet = ResNet(width=0.25)
        resnet.add_classes(20)
        work = _work("sgd", {"width": 0.25}, _PROBE)
    images, labels = torch.zeros(32, 3, 32, 32), torch.zeros(32, dtype=torch.int64)

    def step() -> None:
        # No optimizer: its step is short, but importing it is not.
        cross_entropy(answer(images), labels).backward()

    step()  # the first one is slower than all others
    # By the processor's time, so that whatever else runs now does not count.
    start, steps = time.process_time(), 0
    while time.process_time() - start < PROBE_SECONDS or not steps:
        step()
        steps += 1
    return len(images) * work * steps / (time.process_time() - start)
