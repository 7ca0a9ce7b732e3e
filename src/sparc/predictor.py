"""Asking a model: what it makes of pictures, and how often it is right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparc.calibration import FEWEST, Bin, log_softmax, reliability
from sparc.data.class_folders import Labelled
from sparc.data.pictures import Kept
from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.model_info import ModelInfo
from sparc.ready import Floats, ReadyModel

if TYPE_CHECKING:
    from torch import Tensor

    from sparc.data.imageset import ImageSet

USUAL_SHARE = 0.95
"""Of pictures of known classes, that pass as such if nothing else is said."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model makes of some pictures."""

    scores: Floats
    """[B, C]: what each class is given."""
    strangeness: Floats | None
    """[B]: the larger, the less a picture looks like any class; None where the model has no common features."""
    info: ModelInfo

    def probabilities(self, classes: Sequence[int] | None = None) -> Floats:
        """Calibrated; among some classes, or all."""
        chosen = self.scores if classes is None else self.scores[:, list(classes)]
        return np.exp(log_softmax(chosen / self.info.temperature)).astype(np.float32)

    def are_known(self, share: float) -> NDArray[np.bool_]:
        """[B]: whether it is no stranger than this share of pictures of known classes; true where that is not known."""
        limit = self.info.limit(share)
        if limit is None or self.strangeness is None:
            return np.ones(len(self.scores), np.bool_)
        return self.strangeness <= limit


def answers(model: ReadyModel, images: "Kept | Tensor") -> Answers:
    """To uint8 images, or to what a model has found when it looked at them."""
    return Answers(*model.answer(_array(images)), model.info)


Named = tuple[tuple[tuple[str, float], ...], bool]
"""A picture's likeliest classes with their probabilities, and whether it passes as one of a known class."""


def likeliest(found: Answers, top: int, task: str | None, share: float | None) -> list[Named]:
    """Of each picture so many classes, of a task or of all, and whether it passes where so large a share of known ones
    do; without a share, all pass.
    """
    info = found.info
    chosen = [label for each in info.tasks if each.name == task for label in info.labels(each)]
    chosen = chosen or list(range(len(info.classes)))
    probabilities = found.probabilities(chosen)
    # By scores, as probabilities of all but the first may be too small for a number.
    ranked = np.argsort(-found.scores[:, chosen], axis=1, kind="stable")[:, :top]
    known = [True] * len(ranked) if share is None else found.are_known(share).tolist()
    return [
        (tuple((info.classes[chosen[index]], float(sure[index])) for index in row), is_known)
        for row, sure, is_known in zip(ranked, probabilities, known, strict=True)
    ]


def check_task(info: ModelInfo, task: str | None) -> None:
    """Refuse a task that the model does not have."""
    if task is not None and task not in (known := [each.name for each in info.tasks]):
        raise unknown("task", task, known)


def scores(model: ReadyModel, images: "Kept | Tensor") -> Floats:
    """What the model gives each class, for uint8 images."""
    return answers(model, images).scores


def _array(values: Any) -> Any:
    return values if isinstance(values, np.ndarray) else values.numpy()


def why_not(info: ModelInfo) -> str:
    """Why a model never says “none of these”."""
    if not info.settings.describes_all:
        return "it has no features that all classes have in common, so make another model for that"
    return f"it takes {FEWEST} held-out pictures that count, and has {len(info.known_strangeness)}, so teach it more"


def check_rejects(info: ModelInfo, share: float) -> None:
    """Refuse a model that cannot tell what it does not know."""
    if info.limit(share) is None:
        raise InputError(f"it is not known how strange pictures of the model's classes may be: {why_not(info)}")


def check_passing(share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"{share:g} is no share of known pictures that pass: choose above 0 and below 1")


def graded(
    given_scores: Floats, labels: NDArray[np.int64], in_task: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], float, float | None]:
    """The class that each picture is given, and in percent how many are right: among all classes, and in their task.

    `in_task` says, for all pictures or for each, which classes its task has; where they leave no choice, there is no
    accuracy in the task.

    >>> given, labels = np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]), np.array([1, 2])
    >>> graded(given, labels, in_task=np.array([False, True, True]))
    (array([0, 0]), 0.0, 100.0)
    """
    in_task = np.broadcast_to(in_task, given_scores.shape)
    given = given_scores.argmax(1)
    given_in_task = np.where(in_task, given_scores, -np.inf).argmax(1)
    choice = in_task.sum(1) > 1
    accuracy_in_task = _percent(given_in_task[choice] == labels[choice]) if choice.any() else None
    return given, _percent(given == labels), accuracy_in_task


def _percent(right: NDArray[np.bool_]) -> float:
    return 100 * int(right.sum()) / len(right)


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


def confusion(model: ReadyModel, pictures: "Labelled | ImageSet") -> Confusion:
    """How good the model is on pictures of classes that it knows, by its own names for them."""
    classes = model.info.classes
    labels = np.array([classes.index(name) for name in pictures.class_names])[_array(pictures.labels)]
    together = np.zeros((len(classes), len(classes)), np.bool_)
    for task in model.info.tasks:
        own = model.info.labels(task)
        together[np.ix_(own, own)] = True
    found = answers(model, pictures.images)
    given, accuracy_in_all, accuracy_in_task = graded(found.scores, labels, together[labels])
    counts: dict[str, Counter[str]] = {name: Counter() for name in pictures.class_names}
    for label, answer in zip(labels.tolist(), given.tolist(), strict=True):
        counts[classes[label]][classes[answer]] += 1
    bins = reliability(found.scores / model.info.temperature, labels)
    return Confusion(counts, accuracy_in_all, accuracy_in_task, bins, found)
