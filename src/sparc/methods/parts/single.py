"""What methods with one net for all tasks share: its backbone, and a head that grows with the classes."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.methods.method import Batch, Method
from sparc.methods.settings import NetSettings
from sparc.nn.backbone import Backbone, new_backbone
from sparc.nn.growing import GrowingNet


@dataclass(frozen=True)
class SingleNetSettings(NetSettings):
    backbone: Backbone = "resnet"
    """The field's ResNet-18, or the same of depth-wise separable convolutions, as SPARC has them."""


class SingleNet(Method):
    Settings = SingleNetSettings

    def __init__(
        self,
        settings: SingleNetSettings,
        channels: int,
        image_size: tuple[int, int],
        augment: Views,
        generator: Generator,
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.settings = settings
        self.channels = channels
        self.image_size = image_size
        self.net = self.new_net(generator)

    def new_net(self, generator: Generator) -> GrowingNet:
        settings = self.settings
        return new_backbone(
            settings.backbone, self.channels, self.image_size, settings.width, settings.depth, generator
        )

    def begin_task(self, task: Task) -> None:
        self.net.add_classes(len(task.classes))

    def loss(self, batch: Batch) -> Tensor:
        return batch.cross_entropy(self.net(batch.images))

    def logits(self, images: Tensor) -> Tensor:
        return self.one_pass(images)

    def one_pass(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits


class WholeHead(SingleNet):
    """Its head has room for all classes that will ever come, where their number is known, as in the field's code."""

    knows_ahead = frozenset({"classes"})

    def __init__(self, settings: SingleNetSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.seen_classes: Tensor
        self.register_buffer("seen_classes", torch.tensor(0))

    def begin_task(self, task: Task) -> None:
        self.seen_classes.fill_(task.classes.stop)
        missing = max(task.classes.stop, task.all_classes or 0) - self.net.classes
        if missing > 0:
            self.net.add_classes(missing)

    def logits(self, images: Tensor) -> Tensor:
        return super().logits(images)[:, : int(self.seen_classes)]
