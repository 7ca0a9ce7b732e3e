"""How good it is: Class-IL and Task-IL accuracy of every task seen so far, from one pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sparc.data.imageset import ImageSet
from sparc.methods.method import Method

CHUNK = 256
"""Pictures in memory as floats at a time."""


@dataclass(frozen=True)
class Evaluation:
    """One row of R in both settings, in percent, a number a task."""

    class_il: list[float]
    task_il: list[float]
    landings: list[list[int]]
    """[j][k]: how many pictures of task j were given a class of task k."""


@torch.inference_mode()
def evaluate(
    method: Method, sets: Sequence[ImageSet], classes: Sequence[range], normalize: Callable[[Tensor], Tensor]
) -> Evaluation:
    """Test on one set a task; `classes[k]` are the places of task k's classes."""
    method.eval()
    device = next(method.parameters()).device
    owner = torch.cat([torch.full((len(places),), task) for task, places in enumerate(classes)]).to(device)
    class_il, task_il, landings = [], [], []
    for pictures, places in zip(sets, classes, strict=True):
        right = torch.zeros(2, dtype=torch.int64, device=device)
        landed = torch.zeros(len(classes), dtype=torch.int64, device=device)
        for images, labels in zip(pictures.images.split(CHUNK), pictures.labels.split(CHUNK), strict=True):
            logits, truth = method.logits(normalize(images.to(device))), labels.to(device)
            chosen = logits.argmax(1)
            within = logits[:, places.start : places.stop].argmax(1) + places.start
            right += torch.stack(((chosen == truth).sum(), (within == truth).sum()))
            landed += torch.bincount(owner[chosen], minlength=len(classes))
        class_right, task_right = right.tolist()
        class_il.append(100 * class_right / len(pictures))
        task_il.append(100 * task_right / len(pictures))
        landings.append(landed.tolist())
    return Evaluation(class_il, task_il, landings)
