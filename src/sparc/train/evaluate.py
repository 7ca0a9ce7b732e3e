"""How good it is: Class-IL and Task-IL accuracy of every task seen so far, from one pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from sparc.data.imageset import ImageSet
from sparc.methods.method import Method

CHUNK = 256
"""Pictures in memory as floats at a time."""


@dataclass(frozen=True)
class Evaluation:
    """One row of R in both settings, in percent, a number a task."""

    class_il: list[float] | None
    """None where the method must be told the task, so that it cannot choose among all classes."""
    task_il: list[float]
    landings: list[list[int]] | None
    """[j][k]: how many pictures of task j were given a class of task k; None where the task was told."""


@torch.inference_mode()
def evaluate(
    method: Method, sets: Sequence[ImageSet], classes: Sequence[range], normalize: Callable[[Tensor], Tensor]
) -> Evaluation:
    """Test on one set a task; `classes[k]` are the places of task k's classes."""
    method.eval()
    device = next(method.parameters()).device
    owner = torch.cat([torch.full((len(places),), task) for task, places in enumerate(classes)])
    class_il, task_il, landings = [], [], []
    for task, (pictures, places) in enumerate(zip(sets, classes, strict=True)):
        if method.needs_task:
            own = in_chunks(partial(method.task_logits, task=task), pictures.images, normalize, device)
        else:
            logits = in_chunks(method.logits, pictures.images, normalize, device)
            chosen = logits.argmax(1)
            class_il.append(percent_right(chosen, pictures.labels))
            landings.append(torch.bincount(owner[chosen], minlength=len(classes)).tolist())
            own = logits[:, places.start : places.stop]
        task_il.append(percent_right(own.argmax(1) + places.start, pictures.labels))
    return Evaluation(None, task_il, None) if method.needs_task else Evaluation(class_il, task_il, landings)


def in_chunks(
    answer: Callable[[Tensor], Tensor],
    images: Tensor,
    normalize: Callable[[Tensor], Tensor],
    device: torch.device | str = "cpu",
) -> Tensor:
    """What a net answers to uint8 pictures, with few of them in memory as floats at a time."""
    return torch.cat([answer(normalize(chunk.to(device))).cpu() for chunk in images.split(CHUNK)])


def percent_right(chosen: Tensor, labels: Tensor) -> float:
    return 100 * int((chosen == labels).sum()) / len(labels)
