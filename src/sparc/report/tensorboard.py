"""Curves for TensorBoard: loss and speed an epoch, accuracies a task."""

from functools import partial
from pathlib import Path

from sparc.errors import InputError
from sparc.train import Observer, StageReport, TrainingReport


class TensorBoard(Observer):
    """Writes curves for TensorBoard beside what another observer does; a resumed run goes on with the same curves."""

    def __init__(self, folder: Path, inner: Observer) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError("--tensorboard needs TensorBoard: pip install 'sparc-cl[tensorboard]'") from error
        self.inner = inner
        self.new_writer = partial(SummaryWriter, str(folder))
        self.writer: SummaryWriter | None = None
        self.steps = 0

    def resumed(self, where: str, steps: int) -> None:
        self.inner.resumed(where, steps)
        self.steps = steps
        # What was cut off had gone on writing, and that is to be shown no more.
        self.writer = self.new_writer(purge_step=steps + 1)

    def training(self, report: TrainingReport) -> None:
        self.inner.training(report)
        self.steps = report.total_steps
        if report.epoch_over:
            self._write({"loss": report.loss, "images per second": report.images_per_second})

    def stage(self, report: StageReport) -> None:
        self.inner.stage(report)
        for setting, row in (("Class-IL", report.test.class_il), ("Task-IL", report.test.task_il)):
            if row is not None:
                tasks = {f"{setting}/task {task + 1}": value for task, value in enumerate(row)}
                self._write({f"{setting}/mean": sum(row) / len(row), **tasks})

    def _write(self, values: dict[str, float]) -> None:
        self.writer = self.writer or self.new_writer()
        for name, value in values.items():
            self.writer.add_scalar(name, value, self.steps)
        self.writer.flush()
