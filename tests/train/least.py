"""The least method there is, and somebody who watches how it is trained."""

import torch
from torch import Tensor, nn

from sparc.data.augment import Augment
from sparc.data.stream import Task
from sparc.methods import Batch, Method, Recipe, Settings
from sparc.train import Observer, StageReport, TrainingReport
from tests.examples import AUGMENT

RECIPE = Recipe(epochs=2, batch_size=16)


class Watcher(Observer):
    def __init__(self) -> None:
        self.epochs: list[TrainingReport] = []
        self.stages: list[StageReport] = []

    def training(self, report: TrainingReport) -> None:
        self.epochs.append(report)

    def stage(self, report: StageReport) -> None:
        self.stages.append(report)


class Linear(Method):
    """The least method there is: a linear classifier with a head a task."""

    def __init__(
        self, settings: Settings, channels: int, image_size: tuple[int, int], augment: Augment, generator: object
    ) -> None:
        nn.Module.__init__(self)
        self.augment = augment
        self.heads = nn.ModuleList()
        self.unused = nn.Parameter(torch.zeros(1))
        self.calls: list[str] = []

    def begin_task(self, task: Task) -> None:
        self.calls.append(f"begin {task.index}")
        head = nn.Linear(64, len(task.classes))
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        self.heads.append(head)

    def loss(self, batch: Batch) -> Tensor:
        self.calls.append("loss last" if batch.last_epoch else "loss")
        return nn.functional.cross_entropy(self.logits(batch.images), batch.labels)

    def after_step(self) -> None:
        self.calls.append("step")

    def end_task(self, task: Task) -> None:
        self.calls.append(f"end {task.index}")

    def logits(self, images: Tensor) -> Tensor:
        return torch.cat([head(images.flatten(1)) for head in self.heads], dim=1)


def linear() -> Linear:
    return Linear(Settings(), 1, (8, 8), AUGMENT, None)
