from pathlib import Path

import pytest

from sparc.cli.main import main


def test_curves_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed: pip install 'sparc-cl[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    command = ["run", "seq-digits", "--width", "0.125", "--epochs", "2", "--batch", "128", "--tasks", "2"]
    assert main([*command, "--tensorboard", "--json", "--out", str(tmp_path)]) == 0
    (folder,) = tmp_path.glob("*/tensorboard")
    curves = EventAccumulator(str(folder))
    curves.Reload()
    assert len(curves.Scalars("loss")) == 4
    assert [len(curves.Scalars(f"Class-IL/task {task}")) for task in (1, 2)] == [2, 1]
    assert all(0 <= point.value <= 100 for point in curves.Scalars("Task-IL/mean"))
    steps = [point.step for point in curves.Scalars("loss")]
    assert steps == sorted(set(steps))
