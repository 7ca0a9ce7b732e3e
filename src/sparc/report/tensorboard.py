"""Curves for TensorBoard: loss and speed an epoch, accuracies a task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparc.errors import InputError
from sparc.experiment.watch import RunWatcher
from sparc.train import StageReport, TrainingReport


class TensorBoard(RunWatcher):
    """Writes them into `tensorboard/` of a run's folder; a run that is taken up again goes on with the same ones."""

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError("--tensorboard needs TensorBoard: pip install 'sparc-cl[tensorboard]'") from error
        self.new_writer: Callable[..., Any] = SummaryWriter
        self.folder = Path()
        self.writer: SummaryWriter | None = None
        self.steps = 0

    def started(self, tasks: int, folder: Path) -> None:
        if self.writer:
            self.writer.close()
        self.folder, self.writer, self.steps = folder / "tensorboard", None, 0

    def resumed(self, where: str, steps: int) -> None:
        self.steps = steps
        # What was cut off had gone on writing, and that is to be shown no more.
        self.writer = self.new_writer(str(self.folder), purge_step=steps + 1)

    def training(self, report: TrainingReport) -> None:
        self.steps = report.total_steps
        if report.epoch_over:
            self._write({"loss": report.loss, "images per second": report.images_per_second})

    def stage(self, report: StageReport) -> None:
        for setting, row in (("Class-IL", report.test.class_il), ("Task-IL", report.test.task_il)):
            if row is not None:
                tasks = {f"{setting}/task {task + 1}": value for task, value in enumerate(row)}
                self._write({f"{setting}/mean": sum(row) / len(row), **tasks})

    def _write(self, values: dict[str, float]) -> None:
        self.writer = self.writer or self.new_writer(str(self.folder))
        for name, value in values.items():
            self.writer.add_scalar(name, value, self.steps)
        self.writer.flush()
