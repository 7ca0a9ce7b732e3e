"""Learning without Forgetting: on new pictures the net is to answer for old classes as it did before the task.

Li and Hoiem, "Learning without Forgetting", ECCV 2016. The net as it stood after the last task is kept as a teacher. A
task starts with a warm-up of the new outputs alone, on features that stay as they are; then all is trained by
cross-entropy over all classes seen and by distillation over the old ones, at a temperature, without a factor T².
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.distillation import distillation
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.methods.recipe import Recipe


@dataclass(frozen=True)
class LwfSettings(SingleNetSettings):
    alpha: float = 1.0
    """Weight of the distillation."""
    temperature: float = 2.0
    """By which logits are divided, so that small shares count."""
    warm_up: float = 1.0
    """Epochs in which a later task's new outputs are trained alone beforehand, as a share of its epochs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--alpha", self.alpha)
        check_not_negative("--warm-up", self.warm_up)
        check_positive("--temperature", self.temperature)


class LwF(SingleNet):
    name = "lwf"
    title = "LwF"
    paper = "Li and Hoiem, ECCV 2016"
    Settings = LwfSettings
    recipe = Recipe(lr=0.01)

    def __init__(self, settings: LwfSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.alpha, self.temperature, self.warm_up = settings.alpha, settings.temperature, settings.warm_up
        self.teacher = self.new_net(Generator()).as_copy()
        """The net after the last task; before the first one it knows no class."""

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        epochs = round(self.warm_up * recipe.epochs) if self.teacher.classes else 0
        if not epochs:
            return [Phase(recipe)]
        # No weight decay: the old classes' outputs are in the same head and are to stay.
        alone = replace(recipe, epochs=epochs, weight_decay=0)
        return [Phase(alone, "warm-up", list(self.net.head.parameters()), self.warm_up_loss), Phase(recipe)]

    def warm_up_loss(self, batch: Batch) -> Tensor:
        old = self.teacher.classes
        self.net.eval()  # its running statistics are still the old tasks'
        with torch.no_grad():
            features = self.net.features(batch.images)
        return batch.cross_entropy(self.net.head(features)[:, old:], batch.labels - old)

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        loss = batch.cross_entropy(logits)
        if old := self.teacher.classes:
            with torch.no_grad():
                target = self.teacher(batch.images)
            loss = loss + self.alpha * distillation(logits[:, :old], target, self.temperature)
        return loss

    def end_task(self, task: Task) -> None:
        self.teacher.become(self.net)
