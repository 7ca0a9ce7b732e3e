"""The stream: a data set cut into tasks that arrive one after another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from sparc.data.imageset import ImageSet, Splits
from sparc.errors import InputError

VALIDATION_SEED = 0
"""The held-out pictures are the same in every run, whatever its seed."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given to learn at one stage.

    Labels are indices in the order in which classes are seen, so a task's classes are always a range. Test pictures
    are not in it: they are the stream's, and the trainer's alone.
    """

    index: int
    classes: range
    train: ImageSet
    validation: ImageSet
    """Held out from the training pictures; empty unless a share was asked for."""
    tasks: int | None = None
    """How many the stream has, where that is known and the method has declared that it wants to be told."""
    all_classes: int | None = None
    """How many classes all tasks have together, for a method that has declared that it wants to be told."""
    seen: Callable[[], ImageSet] | None = None
    """The training pictures of all tasks so far, for a method that has declared that it is given them again."""

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.train.class_names[self.classes.start : self.classes.stop]


class Stream(Sequence[Task]):
    """Tasks made when they are asked for, so that no more than one task's pictures are held twice in memory.

    >>> images = ImageSet(torch.zeros(6, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 2] * 2), ("a", "b", "c"))
    >>> [task.class_names for task in Stream(Splits(images, images), sizes=[2, 1])]
    [('a', 'b'), ('c',)]
    """

    def __init__(
        self, splits: Splits, sizes: Sequence[int], order_seed: int | None = None, validation: float = 0.0
    ) -> None:
        names = splits.train.class_names
        check_sizes(sizes, len(names))
        for what, images in (("training", splits.train), ("test", splits.test)):
            for name, count in zip(names, images.counts(), strict=True):
                if count == 0:
                    raise InputError(f"class “{name}” has no {what} picture: it needs two at the least")
        order = list(range(len(names)))
        if order_seed is not None:
            order = torch.randperm(len(names), generator=Generator().manual_seed(order_seed)).tolist()
        self.sizes = list(sizes)
        self._train = splits.train.relabelled(order)
        self._test = splits.test.relabelled(order)
        self.class_names = self._train.class_names
        # Chosen by the data set's own labels, so that the order of the classes plays no part.
        self._held_out = hold_out(splits.train.labels, validation)
        for index in range(len(self)):
            if validation and not (_within(self._train.labels, self.classes(index)) & self._held_out).any():
                raise InputError(
                    f"task {index + 1} has one picture a class, so none can be held out: leave out --validation"
                )

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Task]:
        return (self.task(index) for index in range(len(self)))

    def __getitem__(self, index):  # type: ignore[no-untyped-def] # Sequence wants slices as well
        if isinstance(index, slice):
            return [self.task(each) for each in range(len(self))[index]]
        return self.task(range(len(self))[index])

    def classes(self, index: int) -> range:
        """The labels of a task's classes."""
        start = sum(self.sizes[:index])
        return range(start, start + self.sizes[index])

    def task(self, index: int) -> Task:
        mine = _within(self._train.labels, self.classes(index))
        return Task(
            index,
            self.classes(index),
            train=self._train.take(mine & ~self._held_out),
            validation=self.validation(index),
            tasks=len(self),
            all_classes=sum(self.sizes),
            seen=partial(self._train_until, index),
        )

    def validation(self, index: int) -> ImageSet:
        return self._train.take(_within(self._train.labels, self.classes(index)) & self._held_out)

    def test(self, index: int) -> ImageSet:
        return self._test.take(_within(self._test.labels, self.classes(index)))

    def _train_until(self, index: int) -> ImageSet:
        """The training pictures of all tasks up to this one."""
        seen = range(self.classes(index).stop)
        return self._train.take(_within(self._train.labels, seen) & ~self._held_out)

    def train_counts(self) -> list[int]:
        """How many training pictures each task has."""
        kept = self._train.labels[~self._held_out]
        return [int(_within(kept, self.classes(index)).sum()) for index in range(len(self))]


def equal_sizes(classes: int, tasks: int) -> list[int]:
    """As equal as can be, the larger tasks first.

    >>> equal_sizes(100, 5), equal_sizes(10, 4)
    ([20, 20, 20, 20, 20], [3, 3, 2, 2])
    """
    if not 1 <= tasks <= classes:
        raise InputError(f"--tasks {tasks} cannot be cut from {classes} classes: choose 1 to {classes}")
    return [classes // tasks + (index < classes % tasks) for index in range(tasks)]


def check_sizes(sizes: Sequence[int], classes: int) -> None:
    if not sizes:
        raise InputError("--sizes is empty: give the number of classes of each task")
    if min(sizes) < 1:
        raise InputError(f"--sizes {' '.join(map(str, sizes))} has a task without a class: every size is at least 1")
    if sum(sizes) != classes:
        raise InputError(
            f"--sizes {' '.join(map(str, sizes))} adds up to {sum(sizes)}, but there are {classes} classes"
        )


def hold_out(labels: Tensor, share: float) -> Tensor:
    """Which pictures are held out for validation: this share of every class, though never all of it."""
    if not 0 <= share < 1:
        raise InputError(f"--validation {share:g} is not a share: it must be at least 0 and below 1")
    held = torch.zeros(len(labels), dtype=torch.bool)
    if share == 0:
        return held
    generator = Generator().manual_seed(VALIDATION_SEED)
    for label in labels.unique().tolist():
        indices = torch.nonzero(labels == label).flatten()
        count = min(max(round(share * len(indices)), 1), len(indices) - 1)
        held[indices[torch.randperm(len(indices), generator=generator)[:count]]] = True
    return held


def _within(labels: Tensor, classes: range) -> Tensor:
    return (labels >= classes.start) & (labels < classes.stop)
