"""Asking a model: what it makes of pictures, and how often it is right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sparc.calibration import FEWEST, Bin, reliability
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.errors import InputError
from sparc.model_file import Model, ModelInfo
from sparc.nn.batched import predict_batched
from sparc.text import counted
from sparc.train import accuracy

USUAL_SHARE = 0.95
"""Of pictures of known classes, that pass as such if nothing else is said."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model makes of some pictures."""

    scores: Tensor
    """[B, C]: what each class is given."""
    strangeness: Tensor | None
    """[B]: the larger, the less a picture looks like any class; None where the model has no common features."""
    info: ModelInfo

    def probabilities(self, classes: Sequence[int] | None = None) -> Tensor:
        """Calibrated; among some classes, or all."""
        chosen = self.scores if classes is None else self.scores[:, classes]
        return (chosen / self.info.temperature).softmax(1)

    def are_known(self, share: float) -> Tensor:
        """[B]: whether it is no stranger than this share of pictures of known classes; true where that is not known."""
        limit = self.info.limit(share)
        if limit is None or self.strangeness is None:
            return torch.ones(len(self.scores), dtype=torch.bool)
        return self.strangeness <= limit


@torch.inference_mode()
def answers(model: Model, images: Tensor) -> Answers:
    """To uint8 images."""
    net, strangeness = model.inference, model.strangeness if len(images) else None

    def answer(x: Tensor) -> Tensor:
        if strangeness is None:
            return net(x)
        features = net.pooled(x)
        return torch.cat((net.readout(features), strangeness(features[-1])[:, None]), dim=1)

    found = predict_batched(answer, images, Augment(model.info.mean, model.info.std).normalize)
    classes = len(model.info.classes)
    return Answers(found[:, :classes], None if strangeness is None else found[:, classes], model.info)


def scores(model: Model, images: Tensor) -> Tensor:
    """What the model gives each class, for uint8 images."""
    return answers(model, images).scores


def why_not(info: ModelInfo) -> str:
    """Why a model never says “none of these”."""
    if not info.settings.describes_all:
        return "it has no features that all classes have in common, so make another model for that"
    return (
        f"{counted(len(info.known_strangeness), 'picture')} of {FEWEST} that it takes were held out, so teach it more"
    )


def check_rejects(info: ModelInfo, share: float) -> None:
    """Refuse a model that cannot tell what it does not know."""
    if info.limit(share) is None:
        raise InputError(f"it is not known how strange pictures of the model's classes may be: {why_not(info)}")


def check_passing(share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"a share of {share:g} of known pictures that pass is out of range: choose between 0 and 1")


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
    bins: tuple[Bin, ...]
    """How sure it was, and how often right."""
    answers: Answers

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
    found = answers(model, pictures.images)
    given, accuracy_in_all, accuracy_in_task = graded(found.scores, labels, together[labels])
    counts: dict[str, Counter[str]] = {name: Counter() for name in pictures.class_names}
    for label, answer in zip(labels.tolist(), given.tolist(), strict=True):
        counts[classes[label]][classes[answer]] += 1
    bins = reliability(found.scores / model.info.temperature, labels)
    return Confusion(counts, accuracy_in_all, accuracy_in_task, bins, found)
