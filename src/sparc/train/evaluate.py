"""How good it is: Class-IL and Task-IL accuracy of every task seen so far, from one pass; if it has parts, one more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from sparc.data.imageset import ImageSet
from sparc.methods.method import Method
from sparc.nn.batched import predict_batched


@dataclass(frozen=True)
class Evaluation:
    """One row of R in both settings, in percent, a number a task."""

    renamed: ClassVar = {"landings": "task_confusion"}

    class_il: list[float] | None
    """None where the method must be told the task, so that it cannot choose among all classes."""
    task_il: list[float]
    task_confusion: list[list[int]] | None
    """[j][k]: how many pictures of task j were given a class of task k; None where the task was told."""


@torch.inference_mode()
def evaluate(
    method: Method,
    sets: Sequence[ImageSet],
    classes: Sequence[range],
    before_each: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Test on one set a task; `classes[k]` are the indices of task k's classes. `before_each` is called often."""
    method.eval()

    def answer(images: Tensor, task: int) -> dict[str, Tensor]:
        return {"": method.task_logits(images, task) if method.needs_task_id else method.logits(images)}

    return _evaluate_named(method, answer, sets, classes, before_each)[""]


@torch.inference_mode()
def evaluate_by_part(
    method: Method,
    sets: Sequence[ImageSet],
    classes: Sequence[range],
    before_each: Callable[[], None] = lambda: None,
) -> dict[str, Evaluation]:
    """Test the answers that a method has by part, if it has any, in the same way."""
    if type(method).logits_by_part is Method.logits_by_part:
        return {}  # without a pass for nothing
    if method.training:  # else what it has prepared for the test before would be lost
        method.eval()
    return _evaluate_named(method, lambda images, _: method.logits_by_part(images), sets, classes, before_each)


def _evaluate_named(
    method: Method,
    answer: Callable[[Tensor, int], dict[str, Tensor]],
    sets: Sequence[ImageSet],
    classes: Sequence[range],
    before_each: Callable[[], None],
) -> dict[str, Evaluation]:
    """Test several answers that have names in one pass; only what they choose is kept of each picture."""
    names: list[str] = []

    def choose(task: int, images: Tensor) -> Tensor:
        """[B, names, 2]"""
        found = answer(images, task)
        names[:] = found
        choices = [_choices(logits, classes[task], method.needs_task_id) for logits in found.values()]
        return torch.stack(choices, dim=1) if choices else images.new_empty(len(images), 0)

    normalize, device = method.augment.normalize, method.device
    chosen = [
        predict_batched(partial(choose, task), pictures.images, normalize, device, before_each)
        for task, (pictures, _) in enumerate(zip(sets, classes, strict=True))
    ]
    return {
        name: _evaluation([each[:, index] for each in chosen], sets, classes, method.needs_task_id)
        for index, name in enumerate(names)
    }


def _choices(logits: Tensor, own: range, told: bool) -> Tensor:
    """[B, 2]: the class that is chosen among all, and among the task's own, alike where the task was told."""
    of_own = (logits if told else logits[:, own.start : own.stop]).argmax(1) + own.start
    return torch.stack((of_own if told else logits.argmax(1), of_own), dim=1)


def _evaluation(chosen: Sequence[Tensor], sets: Sequence[ImageSet], classes: Sequence[range], told: bool) -> Evaluation:
    """Of what was chosen for each task's pictures."""
    of_all, of_own = zip(*(each.unbind(1) for each in chosen), strict=True)
    labels = [pictures.labels for pictures in sets]
    task_il = list(map(accuracy, of_own, labels))
    if told:
        return Evaluation(None, task_il, None)
    owner = torch.cat([torch.full((len(own),), task) for task, own in enumerate(classes)])
    landed = [torch.bincount(owner[each], minlength=len(classes)).tolist() for each in of_all]
    return Evaluation(list(map(accuracy, of_all, labels)), task_il, landed)


def accuracy(chosen: Tensor, labels: Tensor) -> float:
    """The share of pictures that were given their label, in percent."""
    return 100 * int((chosen == labels).sum()) / len(labels)
