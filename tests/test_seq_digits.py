"""What the README promises of Seq-Digits, with the commands it gives."""

import json
from pathlib import Path

import pytest

from sparc.cli.main import main


def accuracies(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[float, float]:
    """Mean Class-IL and Task-IL accuracy over the seeds."""
    assert main(["run", "seq-digits", "--json", *arguments]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    return summary["class_il"]["accuracy"]["mean"], summary["task_il"]["accuracy"]["mean"]


def test_sparc_remembers_and_sgd_forgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class_il, task_il = accuracies(capsys, "--epochs", "15", "--out", str(tmp_path))
    assert class_il > 60
    assert task_il > 97
    forgotten, _ = accuracies(capsys, "--method", "sgd", "--width", "0.25", "--epochs", "3", "--out", str(tmp_path))
    assert forgotten < 25


@pytest.mark.long
def test_five_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class_il, task_il = accuracies(capsys, "--seeds", "5", "--out", str(tmp_path))
    assert class_il >= 75
    assert task_il >= 98
    forgotten, _ = accuracies(capsys, "--method", "sgd", "--seeds", "5", "--out", str(tmp_path))
    assert forgotten < 25
