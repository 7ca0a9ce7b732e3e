"""Plain fine-tuning: one ResNet learns task after task with nothing done against forgetting. The lower bound."""

from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from sparc.data.stream import Task
from sparc.methods.method import Batch, Costs, Method, Settings
from sparc.nn.head import count_parameters
from sparc.nn.resnet import ResNet


class SGD(Method):
    name = "sgd"
    title = "SGD"
    paper = "lower bound: plain fine-tuning"

    def __init__(self, settings: Settings, channels: int, image_size: tuple[int, int], generator: Generator) -> None:
        super().__init__(settings, channels, image_size, generator)
        self.net = ResNet(channels, image_size, settings.width, settings.depth, generator)

    def begin_task(self, task: Task) -> None:
        self.net.add_classes(len(task.classes))

    def loss(self, batch: Batch) -> Tensor:
        return cross_entropy(self.net(batch.images), batch.labels)

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def costs(self) -> Costs:
        return Costs(parameters=count_parameters(self.net))
