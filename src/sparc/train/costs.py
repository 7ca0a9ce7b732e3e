"""What a method asks for, counted rather than declared, on a few pictures that nobody has to learn anything from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream
from sparc.methods.method import Batch, Method, Phase
from sparc.methods.parts.costs import kept_bytes
from sparc.methods.recipe import Recipe
from sparc.methods.settings import Settings
from sparc.train.randomness import seeded
from sparc.train.trainer import Trainer

EPOCHS = 2
"""Enough for phases that are half as long as others."""


LARGEST_BATCH = 16
"""What is done with each two pictures of a batch is little beside a net's work, but not so beside a narrow one's."""


@dataclass(frozen=True)
class Work:
    """What training takes."""

    forward: float
    """Of a training step, in passes of its batch through the net; in the phase that asks for most."""
    backward: float
    """The same backward."""
    total: float
    """Of all training, as a multiple of one pass there and back for each picture of each epoch."""


def measure_work(
    kind: type[Method],
    tasks: int = 2,
    settings: Settings | None = None,
    channels: int = 3,
    image_size: tuple[int, int] = (32, 32),
) -> Work:
    """Of so many tasks of two classes, a batch each; a narrow net tells it as well as a wide one."""
    batch_size = min(kind.recipe.batch_size, LARGEST_BATCH)
    recipe = replace(kind.recipe, epochs=EPOCHS, batch_size=batch_size)
    settings = settings or kind.Settings()
    if replayed := vars(settings).get("replay_batch"):
        settings = replace(settings, **{"replay_batch": max(1, replayed * batch_size // kind.recipe.batch_size)})
    trainer = _CountingTrainer(_new(kind, settings, channels, image_size), recipe)
    for task in _tasks([2] * tasks, channels, image_size, pictures=batch_size):
        trainer.learn(task)
    last = [steps[-1] for (task, _), steps in trainer.steps.items() if task == tasks - 1]
    return Work(
        forward=round(max((step.forward for step in last), default=0.0), 2),
        backward=round(max((step.backward for step in last), default=0.0), 2),
        total=sum(step.pictures for steps in trainer.steps.values() for step in steps) / (EPOCHS * tasks * batch_size),
    )


class Kept(NamedTuple):
    """What a method keeps, but for old pictures."""

    numbers: int
    bytes: int


def count_kept(
    kind: type[Method],
    sizes: Sequence[int],
    settings: Settings | None = None,
    channels: int = 3,
    image_size: tuple[int, int] = (32, 32),
) -> Kept:
    """What it is after tasks of so many classes each, found without learning anything.

    >>> from sparc.methods import METHODS
    >>> count_kept(METHODS.find("sparc"), sizes=[20] * 5).numbers
    1039659
    """
    method = _new(kind, settings, channels, image_size)
    trainer = _IdleTrainer(method, replace(kind.recipe, epochs=1), seed=0)
    for task in _tasks(sizes, channels, image_size, pictures=2):
        trainer.learn(task)
    return Kept(sum(method.parameters_by_owner().values()), kept_bytes(method))


class Operations(TorchDispatchMode):
    """Counts what is done while it is entered; torch's own counter, which tells modules apart, takes longer."""

    def __init__(self, formulas: Mapping[Any, Callable[..., int]] = flop_registry) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.formulas = formulas
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if formula := self.formulas.get(func.overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=out)
        return out


class _IdleTrainer(Trainer):
    """Begins and ends what there is to begin and to end, and learns nothing."""

    def step(self, batch: Batch, phase: Phase, optimizer: Optimizer) -> Tensor:
        return batch.images.new_zeros(())


@dataclass(frozen=True)
class _Step:
    forward: float
    backward: float
    pictures: float
    """How many could have gone there and back with the same work."""


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
            with Operations() as counter:
                loss = loss_of(batch)
            forward = counter.total
            return loss

        with Operations() as counter:
            loss = super().step(batch, replace(phase, loss=counted), optimizer)
        total = counter.total
        pictures = len(batch.labels) * total / (one_forward + one_backward)
        step = _Step(forward / one_forward, (total - forward) / one_backward, pictures)
        self.steps.setdefault((batch.task.index, phase.name), []).append(step)
        return loss

    def _one_pass(self, batch: Batch) -> tuple[int, int]:
        """Operations of the batch's way through the net, there and back."""
        self.method.eval()
        with Operations() as forward:
            out = self.method.one_pass(batch.images)
        with Operations() as backward:
            out.sum().backward()
        self.method.zero_grad()
        self.method.train()
        return forward.total, backward.total


def _new(kind: type[Method], settings: Settings | None, channels: int, image_size: tuple[int, int]) -> Method:
    augment = Augment((0.5,) * channels, (0.5,) * channels)
    return kind(settings or kind.Settings(), channels, image_size, augment, seeded(0, "costs"))


def _tasks(sizes: Sequence[int], channels: int, image_size: tuple[int, int], pictures: int) -> Stream:
    """With so many pictures each, the same in all, or as many as there are classes."""
    counts = [max(size, pictures) for size in sizes]
    images = torch.randint(256, (max(counts), channels, *image_size), generator=seeded(0, "pictures")).byte()
    labels = [sum(sizes[:task]) + torch.arange(counts[task]) % size for task, size in enumerate(sizes)]
    shown = ImageSet(
        torch.cat([images[:count] for count in counts]), torch.cat(labels), tuple(map(str, range(sum(sizes))))
    )
    return Stream(Splits(shown, shown), sizes)
