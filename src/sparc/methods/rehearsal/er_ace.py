"""ER-ACE: new pictures do not compete with old classes, so that they do not push these aside.

Caccia, Aljundi, Asadi, Tuytelaars, Pineau and Belilovsky, "New Insights on Reducing Abrupt Representation Change in
Online Continual Learning", ICLR 2022. From the second task on, the batch's cross-entropy runs over the classes that are
in the batch and, as in the authors' code, those that have not come yet; that of replayed pictures runs over all. The
first task is learned plainly.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from sparc.data.stream import Task
from sparc.methods.method import Batch
from sparc.methods.parts.rehearsal import Rehearsal, RehearsalSettings
from sparc.methods.parts.single import WholeHead


@dataclass(frozen=True)
class ErAceSettings(RehearsalSettings):
    rivals: Literal["batch", "unseen"] = "unseen"
    """Which classes new pictures compete with: those of the batch and all that have not come yet, as in the authors'
    code, whose head has room for all classes from the start; or those of the batch alone."""


class ERACE(WholeHead, Rehearsal):
    name = "er-ace"
    title = "ER-ACE"
    paper = "Caccia et al., ICLR 2022"
    Settings = ErAceSettings

    def __init__(self, settings: ErAceSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.with_unseen = settings.rivals == "unseen"

    def begin_task(self, task: Task) -> None:
        super().begin_task(task if self.with_unseen else replace(task, all_classes=None))

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        if batch.task.index:
            images, labels, _ = self.replay()
            unseen = torch.arange(batch.task.classes.stop, logits.shape[1], device=logits.device)
            loss = batch.cross_entropy(only(logits, torch.cat((batch.labels.unique(), unseen))))
            loss = loss + batch.cross_entropy(self.net(images), labels)
        else:
            loss = batch.cross_entropy(logits)
        self.buffer.add(batch.raw_images, batch.labels)
        return loss


def only(logits: Tensor, classes: Tensor) -> Tensor:
    """The logits of these classes, and for all others none that could take a share.

    >>> only(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([0, 2]))
    tensor([[1., -inf, 3.]])
    """
    others = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
    others[classes] = False
    return logits.masked_fill(others, -torch.inf)
