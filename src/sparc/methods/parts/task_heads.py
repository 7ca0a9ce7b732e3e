"""What methods share that have one net and a head a task, so that the task must be known at test time."""

from typing import ClassVar

import torch
from torch import Tensor

from sparc.methods.method import Batch, Method
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Heads


class TaskHeads(Method):
    needs_task_id = True
    frozen_parts: ClassVar[tuple[str, ...]] = ("heads",)
    net: GrowingNet
    heads: Heads
    """One a task, instead of the net's own, which has no outputs."""

    def loss(self, batch: Batch) -> Tensor:
        return batch.cross_entropy(self.one_pass(batch.images), batch.labels - batch.task.classes.start)

    def logits(self, images: Tensor) -> Tensor:
        return torch.cat([self.task_logits(images, task) for task in range(len(self.heads))], 1)

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        logits: Tensor = self.heads.of(task)(self.net.features(images))
        return logits

    def one_pass(self, images: Tensor) -> Tensor:
        """Through the newest head."""
        logits: Tensor = self.heads.of(-1)(self.net.features(images))
        return logits

    def set_trainable(self) -> None:
        """Of the heads, the newest one alone."""
        self.heads.to(self.device).requires_grad_(False)
        if len(self.heads):
            self.heads.of(-1).requires_grad_(True)
