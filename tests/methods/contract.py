"""What the suites over every method share: methods small enough for a test, and steps taken with them by hand."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import cycle, islice

import torch
from torch import Tensor

import sparc.train.optimizer
from sparc.data.augment import Augment
from sparc.data.stream import Task
from sparc.methods import Batch, Method, Phase, Recipe, Settings
from sparc.methods.parts.rehearsal import RehearsalSettings
from sparc.train import seeded
from tests.examples import AUGMENT

BUFFER = 20
WIDTH = 1 / 8


def new(kind: type[Method], seed: int = 0, augment: Augment = AUGMENT, **settings: object) -> Method:
    made = small_settings(kind, **settings)
    return kind(made, len(augment.mean), (8, 8), augment, seeded(seed, "method"))


def small_settings(kind: type[Method], **settings: object) -> Settings:
    known = {field.name for field in fields(kind.Settings)}
    fewer = {
        "width": WIDTH,
        "buffer_size": BUFFER,
        "random_features": 64,
        "samples": 100,
        "projection": 8,
        "features": 8,
        "draws": 2,
    }
    small = {name: value for name, value in fewer.items() if name in known}
    return kind.Settings(**{**small, **settings})


def keeps_pictures(kind: type[Method]) -> bool:
    return issubclass(kind.Settings, RehearsalSettings)


def recipe(kind: type[Method], epochs: int = 2) -> Recipe:
    return replace(kind.recipe, epochs=epochs, batch_size=24)


def batch_of(
    task: Task, indices: Tensor, augment: Augment = AUGMENT, last: bool = False, recipe: Recipe | None = None
) -> Batch:
    """Some of a task's training pictures, in the first or the second of two epochs."""
    raw_images, labels = task.train.images[indices], task.train.labels[indices]
    recipe = recipe or Recipe()
    return Batch(augment.normalize(raw_images), labels, raw_images, indices, task, recipe, epoch=int(last), epochs=2)


def batches(task: Task, augment: Augment, count: int) -> Iterator[Batch]:
    order = torch.randperm(len(task.train), generator=torch.Generator().manual_seed(count))
    for number, indices in enumerate(islice(cycle(order.split(16)), count)):
        yield batch_of(task, indices, augment, last=number > 0)


def begin(method: Method, task: Task) -> None:
    method.begin_task(task)
    method.set_trainable()


def new_optimizer(method: Method, phase: Phase) -> torch.optim.Optimizer:
    """One whose own state, and whose weight decay, would show."""
    recipe = replace(phase.recipe, lr=0.01, optimizer="sgd", momentum=0.9, weight_decay=1e-3)
    return sparc.train.optimizer.new_optimizer(replace(phase, recipe=recipe), method)


def take_steps(
    method: Method, phase: Phase, steps: Iterator[Batch], optimizer: torch.optim.Optimizer | None = None
) -> torch.optim.Optimizer:
    if optimizer is None:
        if phase.begin:
            phase.begin()
            method.set_trainable()
        optimizer = new_optimizer(method, phase)
    method.train()
    for batch in steps:
        loss = (phase.loss or method.loss)(batch)
        optimizer.zero_grad()
        loss.backward()
        method.before_step()
        optimizer.step()
        method.after_step()
    return optimizer
