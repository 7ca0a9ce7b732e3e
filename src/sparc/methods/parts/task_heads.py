"""What methods share that have one net and a head a task, so that the task must be known at test time."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

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
        """Of all that each task has for itself, the newest task's alone."""
        for part in map(self.get_submodule, self.frozen_parts):
            part.to(self.device).requires_grad_(False)
            for newest in list(part.children())[-1:]:
                newest.requires_grad_(True)


class TaskWeights(TaskHeads):
    """A task uses some of the net's weights, as `task_logits` says."""

    def weights(self) -> list[nn.Parameter]:
        return list(self.named_weights().values())

    def named_weights(self) -> dict[str, nn.Parameter]:
        """All but batch norm's and the heads'."""
        return {name: parameter for name, parameter in self.net.named_parameters() if parameter.ndim == 4}

    def one_pass(self, images: Tensor) -> Tensor:
        return self.task_logits(images, len(self.heads) - 1)

    def answer(self, images: Tensor, weights: Sequence[Tensor], task: int) -> Tensor:
        """With these instead of the net's weights, and with the task's head."""
        head = self.heads.of(task)
        parts = dict(zip(self.named_weights(), weights, strict=True))
        logits: Tensor = functional_call(
            self.net, {**parts, "head.weight": head.weight, "head.bias": head.bias}, (images,)
        )
        return logits
