"""How good it is: Class-IL and Task-IL accuracy of every task seen so far, from one pass; and what its parts bring."""

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
    logits = []
    for task, pictures in enumerate(sets):
        answer = partial(method.task_logits, task=task) if method.needs_task_id else method.logits
        logits.append(predict_batched(answer, pictures.images, method.augment.normalize, method.device, before_each))
    return _measured(logits, sets, classes, told=method.needs_task_id)


@torch.inference_mode()
def evaluate_parts(
    method: Method,
    sets: Sequence[ImageSet],
    classes: Sequence[range],
    before_each: Callable[[], None] = lambda: None,
) -> dict[str, Evaluation]:
    """The same with each part left out that the method can answer without, by what is left out."""
    method.eval()
    normalize, device = method.augment.normalize, method.device
    names = [*method.partial_logits(normalize(sets[0].images[:1].to(device)))]
    if not names:
        return {}

    def answer(images: Tensor) -> Tensor:
        return torch.stack([*method.partial_logits(images).values()], dim=1)

    stacked = [predict_batched(answer, pictures.images, normalize, device, before_each) for pictures in sets]
    return {
        name: _measured([logits[:, index] for logits in stacked], sets, classes) for index, name in enumerate(names)
    }


def _measured(
    logits: Sequence[Tensor], sets: Sequence[ImageSet], classes: Sequence[range], told: bool = False
) -> Evaluation:
    """From the logits of each task's pictures, over all classes, or where the task was told over its own."""
    owner = torch.cat([torch.full((len(own),), task) for task, own in enumerate(classes)])
    class_il, task_il, task_confusion = [], [], []
    for each, pictures, own in zip(logits, sets, classes, strict=True):
        if not told:
            chosen = each.argmax(1)
            class_il.append(accuracy(chosen, pictures.labels))
            task_confusion.append(torch.bincount(owner[chosen], minlength=len(classes)).tolist())
            each = each[:, own.start : own.stop]
        task_il.append(accuracy(each.argmax(1) + own.start, pictures.labels))
    return Evaluation(None, task_il, None) if told else Evaluation(class_il, task_il, task_confusion)


def accuracy(chosen: Tensor, labels: Tensor) -> float:
    """The share of pictures that were given their label, in percent."""
    return 100 * int((chosen == labels).sum()) / len(labels)
