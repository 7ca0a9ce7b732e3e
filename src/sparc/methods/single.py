"""What methods with one net for all tasks share: its backbone, and a head that grows with the classes."""

from dataclasses import dataclass
from typing import get_args

from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from sparc.data.stream import Task
from sparc.errors import InputError
from sparc.methods.method import Batch, Costs, Method, Settings
from sparc.nn.backbone import Backbone, new_backbone
from sparc.nn.growing import GrowingNet
from sparc.nn.head import count_parameters


@dataclass(frozen=True)
class SingleNetSettings(Settings):
    backbone: Backbone = "resnet"
    """The field's ResNet-18, or the same of depth-wise separable convolutions, as SPARC has them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backbone not in get_args(Backbone):
            raise InputError(f"--backbone {self.backbone} is not known: choose {' or '.join(get_args(Backbone))}")


class SingleNet(Method):
    Settings = SingleNetSettings

    def __init__(
        self, settings: SingleNetSettings, channels: int, image_size: tuple[int, int], generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, generator)
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
        return cross_entropy(self.net(batch.images), batch.labels)

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def costs(self) -> Costs:
        return Costs(parameters=count_parameters(self.net))
