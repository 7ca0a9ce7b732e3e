"""ER-ACE: new pictures compete with each other's classes only, so that they do not push the old ones aside.

Caccia, Aljundi, Asadi, Tuytelaars, Pineau and Belilovsky, "New Insights on Reducing Abrupt Representation Change in
Online Continual Learning", ICLR 2022. From the second task on, the batch's cross-entropy runs over the classes that are
in the batch, and that of replayed pictures over all classes seen; the first task is learned plainly.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from sparc.data.stream import Task
from sparc.methods.method import Batch
from sparc.methods.rehearsal import Rehearsal, RehearsalSettings


class ERACE(Rehearsal):
    name = "er-ace"
    title = "ER-ACE"
    paper = "Caccia et al., ICLR 2022"
    forward_passes = 2

    old_classes: Tensor
    """How many there were when the task began."""

    def __init__(self, settings: RehearsalSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.register_buffer("old_classes", torch.tensor(0))

    def begin_task(self, task: Task) -> None:
        self.old_classes.fill_(self.net.classes)
        super().begin_task(task)

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        if self.old_classes:
            images, labels, _ = self.replay()
            loss = cross_entropy(only(logits, batch.labels.unique()), batch.labels)
            loss = loss + cross_entropy(self.net(images), labels)
        else:
            loss = cross_entropy(logits, batch.labels)
        self.buffer.add(batch.originals, batch.labels)
        return loss


def only(logits: Tensor, classes: Tensor) -> Tensor:
    """The logits of these classes, and for all others none that could take a share.

    >>> only(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([0, 2]))
    tensor([[1., -inf, 3.]])
    """
    others = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
    others[classes] = False
    return logits.masked_fill(others, -torch.inf)
