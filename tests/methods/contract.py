"""What the suites over every method share: methods small enough for a test, and steps taken with them by hand."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import cycle, islice

import torch

from sparc.data.augment import Augment
from sparc.data.stream import Task
from sparc.methods import Batch, Method, Phase, Recipe
from sparc.train import seeded
from tests.examples import AUGMENT

BUFFER = 20
WIDTH = 1 / 8


def new(kind: type[Method], seed: int = 0, channels: int = 1, **settings: str) -> Method:
    small = {"buffer_size": BUFFER} if keeps_pictures(kind) else {}
    return kind(kind.Settings(width=WIDTH, **small, **settings), channels, (8, 8), AUGMENT, seeded(seed, "method"))


def keeps_pictures(kind: type[Method]) -> bool:
    return "buffer_size" in {field.name for field in fields(kind.Settings)}


def recipe(kind: type[Method], epochs: int = 2) -> Recipe:
    return replace(kind.recipe, epochs=epochs, batch_size=24)


def batches(task: Task, augment: Augment, count: int) -> Iterator[Batch]:
    order = torch.randperm(len(task.train), generator=torch.Generator().manual_seed(count))
    for number, index in enumerate(islice(cycle(order.split(16)), count)):
        raw_images = task.train.images[index]
        yield Batch(augment.normalize(raw_images), task.train.labels[index], number > 0, raw_images)


def new_optimizer(method: Method, phase: Phase) -> torch.optim.Optimizer:
    """One whose own state, and whose weight decay, would show."""
    parameters = phase.parameters or [parameter for parameter in method.parameters() if parameter.requires_grad]
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-3)


def take_steps(
    method: Method, phase: Phase, steps: Iterator[Batch], optimizer: torch.optim.Optimizer | None = None
) -> torch.optim.Optimizer:
    if optimizer is None:
        if phase.begin:
            phase.begin()
        optimizer = new_optimizer(method, phase)
    method.train()
    for batch in steps:
        loss = (phase.loss or method.loss)(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        method.after_step()
    return optimizer
