"""A story told once: which classes and pictures it is about, and what a learner makes of it."""

import time
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from benchmarks.machine import machine
from benchmarks.story.learners import Learner
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.train import accuracy


@dataclass(frozen=True)
class Story:
    title: str
    sizes: tuple[int, ...]
    """How many classes each task has."""
    sources: tuple[str, ...]
    """Where pictures come from, if nothing else is said."""
    pictures: tuple[int, ...]
    """How many of each class are learned from, once with each number, if nothing else is said."""


STRANGERS = 1000
"""Pictures of other classes that are shown."""
STORIES = {
    "months": Story("14 classes in tasks of 5, 5, 3 and 1", (5, 5, 3, 1), ("cifar100", "tinyimagenet"), (100, 20)),
    "hundred": Story("100 classes in 10 tasks", (10,) * 10, ("cifar100",), (20,)),
}


@dataclass(frozen=True)
class Figures:
    accuracy: float
    """Pictures that are given the right one of all classes, in percent."""
    seconds: float
    """Of the processor, to teach all tasks."""
    milliseconds: float
    """Of the processor, to ask for a picture."""
    machine: str
    known: float | None = None
    """Test pictures that pass as known where 95 % should, in percent, if the learner tells them from others."""
    unknown: float | None = None
    """Pictures of other classes that pass as well."""

    def __str__(self) -> str:
        return (
            f"{self.accuracy:.1f} % right, {self.seconds:.1f} s to teach, {self.milliseconds:.2f} ms a picture to ask"
        )


def drawn(source: Splits, story: Story, pictures: int, draw: int, held_out: bool = False) -> Splits:
    """Some of a source's classes, so many pictures of each to learn from, and all test pictures of them.

    With another number of pictures the classes are the same, and of two numbers the fewer pictures are among the more.
    With `held_out` there are as many test pictures, or as many as there are, from those to learn from.
    """
    count, classes = sum(story.sizes), len(source.train.class_names)
    if count > classes:
        raise InputError(f"the story is of {count} classes, and there are {classes}: choose another --source")
    generator = Generator().manual_seed(draw)
    chosen = torch.randperm(classes, generator=generator)[:count].tolist()
    train, test = [], []
    for label in chosen:
        mine, others = (torch.nonzero(part.labels == label).flatten() for part in source)
        mine = mine[torch.randperm(len(mine), generator=generator)]
        if len(mine) < pictures + held_out:
            raise InputError(
                f"class “{source.train.class_names[label]}” has {len(mine)} pictures to learn from: choose fewer "
                f"--pictures than {pictures}"
            )
        train.append(mine[:pictures])
        test.append(mine[pictures:][-len(others) :] if held_out else others)
    names = tuple(source.train.class_names[label] for label in chosen)
    return Splits(
        _labelled(source.train, train, names), _labelled(source.train if held_out else source.test, test, names)
    )


def strangers(source: Splits, splits: Splits, draw: int, held_out: bool = False) -> Tensor:
    """Pictures of classes that the story is not about, at most a thousand, as those that are tested on."""
    part = source.train if held_out else source.test
    told = torch.tensor([name in splits.train.class_names for name in part.class_names])
    others = torch.nonzero(~told[part.labels]).flatten()
    return part.images[others[torch.randperm(len(others), generator=Generator().manual_seed(draw))[:STRANGERS]]]


def measured(learner: Learner, story: Story, splits: Splits, others: Tensor | None = None) -> Figures:
    """With `others`, of classes that are not learned, also who passes as known."""
    start = time.process_time()
    for task in Stream(splits, [sum(story.sizes)] if learner.at_once else story.sizes):
        learner.teach(task.train)
    taught = time.process_time()
    given = learner.predict(splits.test.images)
    asked = time.process_time()
    known, unknown = None, None
    if others is not None and len(others):
        known, unknown = (_passing(learner, images) for images in (splits.test.images, others))
    return Figures(
        accuracy(given, splits.test.labels),
        seconds=taught - start,
        milliseconds=1000 * (asked - taught) / len(splits.test),
        machine=", ".join(f"{name} {value}" for name, value in machine().items() if name != "system"),
        known=known,
        unknown=unknown,
    )


def _passing(learner: Learner, images: Tensor) -> float | None:
    flags = learner.knows(images)
    return None if flags is None else 100 * float(flags.double().mean())


def _labelled(pictures: ImageSet, indices: list[torch.Tensor], names: tuple[str, ...]) -> ImageSet:
    """The pictures at the indices of each class, classes counted in this order."""
    labels = torch.arange(len(indices)).repeat_interleave(torch.tensor([len(each) for each in indices]))
    return ImageSet(pictures.images[torch.cat(indices)], labels, names)
