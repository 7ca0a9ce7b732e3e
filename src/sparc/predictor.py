"""Asking a model: what it makes of pictures, and how often it is right."""

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.model_file import Model
from sparc.nn.batched import predict_batched
from sparc.train import accuracy


@torch.inference_mode()
def scores(model: Model, images: Tensor) -> Tensor:
    """What the model gives each class, for uint8 images."""
    normalize = Augment(model.info.mean, model.info.std).normalize
    return predict_batched(model.inference, images, normalize)


def graded(given_scores: Tensor, labels: Tensor, in_task: Tensor) -> tuple[Tensor, float, float | None]:
    """The class that each picture is given, and in percent how many are right: among all classes, and in their task.

    `in_task` says, for all pictures or for each, which classes its task has; where they leave no choice, there is no
    accuracy in the task.

    >>> given, labels = torch.tensor([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]), torch.tensor([1, 2])
    >>> graded(given, labels, in_task=torch.tensor([False, True, True]))
    (tensor([0, 0]), 0.0, 100.0)
    """
    given, given_in_task = (
        candidates.argmax(1) for candidates in (given_scores, given_scores.masked_fill(~in_task, -torch.inf))
    )
    choice = in_task.expand_as(given_scores).sum(1) > 1
    accuracy_in_task = accuracy(given_in_task[choice], labels[choice]) if choice.any() else None
    return given, accuracy(given, labels), accuracy_in_task


@dataclass(frozen=True)
class Confusion:
    """What a model made of pictures whose classes are known."""

    counts: dict[str, Counter[str]]
    """Of each class that was shown, how often it was given which class."""
    accuracy_in_all: float
    """In percent, among every class that the model knows."""
    accuracy_in_task: float | None
    """The same among the classes that were learned with the right one; None where all were learned alone."""

    @property
    def pictures(self) -> int:
        return sum(given.total() for given in self.counts.values())


def confusion(model: Model, pictures: ImageSet) -> Confusion:
    """How good the model is on pictures of classes that it knows, by its own names for them."""
    classes = model.info.classes
    labels = torch.tensor([classes.index(name) for name in pictures.class_names])[pictures.labels]
    together = torch.zeros(len(classes), len(classes), dtype=torch.bool)
    for task in model.info.tasks:
        own = torch.tensor(model.info.labels(task))
        together[own[:, None], own] = True
    given, accuracy_in_all, accuracy_in_task = graded(scores(model, pictures.images), labels, together[labels])
    counts: dict[str, Counter[str]] = {name: Counter() for name in pictures.class_names}
    for label, answer in zip(labels.tolist(), given.tolist(), strict=True):
        counts[classes[label]][classes[answer]] += 1
    return Confusion(counts, accuracy_in_all, accuracy_in_task)
