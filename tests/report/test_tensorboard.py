from pathlib import Path

import pytest

from sparc.cli.main import main
from sparc.report.tensorboard import TensorBoard
from sparc.train import TrainingReport


def test_curves_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed: pip install 'sparc-cl[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    command = ["run", "seq-digits", "--width", "0.125", "--epochs", "2", "--batch-size", "128", "--tasks", "2"]
    assert main([*command, "--tensorboard", "--json", "--out", str(tmp_path)]) == 0
    (folder,) = tmp_path.glob("*/tensorboard")
    curves = EventAccumulator(str(folder))
    curves.Reload()
    assert len(curves.Scalars("loss")) == 4
    assert [len(curves.Scalars(f"Class-IL/task {task}")) for task in (1, 2)] == [2, 1]
    assert all(0 <= point.value <= 100 for point in curves.Scalars("Task-IL/mean"))
    steps = [point.step for point in curves.Scalars("loss")]
    assert steps == sorted(set(steps))


def test_curves_of_a_run_that_was_cut_off_show_nothing_twice(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed: pip install 'sparc-cl[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def epoch(steps: int) -> TrainingReport:
        return TrainingReport(1, "train", 1, 9, 5, 5, 1.0, 100.0, 0.1, total_steps=steps)

    first = TensorBoard()
    first.started(1, tmp_path)
    for steps in (5, 10, 15):
        first.training(epoch(steps))
    again = TensorBoard()
    again.started(1, tmp_path)
    again.resumed("task 1, epoch 3", steps=10)
    for steps in (15, 20):
        again.training(epoch(steps))
    curves = EventAccumulator(str(tmp_path / "tensorboard"))
    curves.Reload()
    assert [point.step for point in curves.Scalars("loss")] == [5, 10, 15, 20]
