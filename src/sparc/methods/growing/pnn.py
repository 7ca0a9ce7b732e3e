"""Progressive Neural Networks: a new column a task, fed by the frozen columns of all tasks before.

Rusu et al., "Progressive Neural Networks", 2016. Nothing old can change, and nothing but the task's own column answers,
so the task must be known at test time.

For 5 tasks of 20 classes there are 104.65 M parameters. The paper's count of 216.7 M follows from the same layout as
the field's implementation stores it, with the older columns copied into each newer one (111.69 M more) and room for all
100 classes in every head (0.37 M more). Here every column is kept once.
"""

from torch import Generator, Tensor

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.methods.method import Batch, Method
from sparc.methods.settings import NetSettings
from sparc.nn.head import count_parameters
from sparc.nn.progressive import ProgressiveNet


class PNN(Method):
    name = "pnn"
    title = "PNN"
    paper = "Rusu et al., 2016"
    needs_task_id = True
    Settings = NetSettings
    frozen_parts = ("net.columns",)

    def __init__(
        self, settings: NetSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.net = ProgressiveNet(channels, image_size, settings.width, settings.depth, generator)

    def begin_task(self, task: Task) -> None:
        self.net.add_task(len(task.classes))

    def loss(self, batch: Batch) -> Tensor:
        current = len(self.net.columns) - 1
        logits = self.net.task_logits(batch.images, current)
        return batch.cross_entropy(logits, batch.labels - batch.task.classes.start)

    def end_task(self, task: Task) -> None:
        self.zero_grad()

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        return self.net.task_logits(images, task)

    def one_pass(self, images: Tensor) -> Tensor:
        return self.task_logits(images, len(self.net.columns) - 1)

    def parameters_by_owner(self) -> dict[str, int]:
        columns = self.net.all_columns()
        lateral = sum(count_parameters(column.adapters) + count_parameters(column.laterals) for column in columns)
        return {"columns": count_parameters(self.net) - lateral, "lateral connections": lateral}
