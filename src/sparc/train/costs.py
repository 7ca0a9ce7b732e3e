"""What a method asks for, counted rather than declared, on a few pictures that nobody has to learn anything from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.flop_counter import FlopCounterMode

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream
from sparc.methods.method import Batch, Method, Phase, Settings
from sparc.methods.parts.costs import buffer_bytes
from sparc.methods.recipe import Recipe
from sparc.train.randomness import seeded
from sparc.train.trainer import Trainer

EPOCHS = 2
"""Enough for phases that are half as long as others."""


@dataclass(frozen=True)
class Costs:
    """What a method asks for."""

    parameters: int
    """Numbers kept after the last task: those of copies of the model and of masks too."""
    forward: float
    """Work forward of a training step, in passes of its batch through the net; of the phase that asks for most."""
    backward: float
    """The same backward."""
    buffer_bytes: int
    """For pictures of old tasks, and what belongs to them."""
    work: float
    """Of all training, as a multiple of one pass there and back for each picture of each epoch."""


def measure_costs(
    kind: type[Method],
    sizes: Sequence[int],
    settings: Settings | None = None,
    channels: int = 3,
    image_size: tuple[int, int] = (32, 32),
    batch_size: int | None = None,
    epochs: int = EPOCHS,
) -> Costs:
    """After tasks of so many classes each, with a batch each; by default batches are as large as the recipe's."""
    batch_size = kind.recipe.batch_size if batch_size is None else batch_size
    stream = _few_pictures(sizes, channels, image_size, batch_size)
    augment = Augment((0.5,) * channels, (0.5,) * channels)
    settings = kind.Settings() if settings is None else settings
    method = kind(settings, channels, image_size, augment, seeded(0, "costs"))
    recipe = replace(kind.recipe, epochs=epochs, batch_size=max(stream.train_counts()))
    trainer = _CountingTrainer(method, recipe)
    for task in stream:
        trainer.learn(task)
    shown = epochs * sum(stream.train_counts())
    last = [steps[-1] for (task, _), steps in trainer.steps.items() if task == len(sizes) - 1]
    return Costs(
        parameters=sum(method.parameters_by_owner().values()),
        forward=round(max((step.forward for step in last), default=0), 2),
        backward=round(max((step.backward for step in last), default=0), 2),
        buffer_bytes=buffer_bytes(method),
        work=sum(step.work for steps in trainer.steps.values() for step in steps) / shown,
    )


@dataclass(frozen=True)
class _Step:
    forward: float
    backward: float
    work: float
    """In passes there and back of a single picture."""


class _CountingTrainer(Trainer):
    """Counts the operations of each step, by task and phase."""

    def __init__(self, method: Method, recipe: Recipe) -> None:
        super().__init__(method, recipe, seed=0)
        self.steps: dict[tuple[int, str], list[_Step]] = {}

    def step(self, batch: Batch, phase: Phase, optimizer: Optimizer) -> Tensor:
        one_forward, one_backward = self._one_pass(batch)
        forward = 0
        loss_of = phase.loss or self.method.loss

        def counted(batch: Batch) -> Tensor:
            nonlocal forward
            with FlopCounterMode(display=False) as counter:
                loss = loss_of(batch)
            forward = counter.get_total_flops()
            return loss

        with FlopCounterMode(display=False) as counter:
            loss = super().step(batch, replace(phase, loss=counted), optimizer)
        total = counter.get_total_flops()
        work = len(batch.labels) * total / (one_forward + one_backward)
        step = _Step(forward / one_forward, (total - forward) / one_backward, work)
        self.steps.setdefault((batch.task.index, phase.name), []).append(step)
        return loss

    def _one_pass(self, batch: Batch) -> tuple[int, int]:
        """Operations of the batch's way through the net, there and back."""
        self.method.eval()
        with FlopCounterMode(display=False) as forward:
            out = self.method.one_pass(batch.images)
        with FlopCounterMode(display=False) as backward:
            out.sum().backward()
        self.method.zero_grad()
        self.method.train()
        return forward.get_total_flops(), backward.get_total_flops()


def _few_pictures(sizes: Sequence[int], channels: int, image_size: tuple[int, int], a_task: int) -> Stream:
    """About so many a task, and at least one of each class."""
    classes = sum(sizes)
    counts = torch.tensor([max(2 if size == 1 else 1, round(a_task / size)) for size in sizes for _ in range(size)])
    labels = torch.arange(classes).repeat_interleave(counts)
    images = torch.randint(256, (len(labels), channels, *image_size), generator=seeded(0, "pictures"))
    few = ImageSet(images.byte(), labels, tuple(map(str, range(classes))))
    return Stream(Splits(few, few), sizes)
