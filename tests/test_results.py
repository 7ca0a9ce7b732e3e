"""What results/ says is what the runs in it say."""

import re
import shutil
from pathlib import Path

import pytest

from sparc.cli.main import main
from sparc.data.benchmarks import Benchmark
from sparc.experiment import RunConfig, find_results
from sparc.experiment.run import result_of

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@pytest.mark.parametrize("runs", sorted(path.name for path in RESULTS.iterdir() if path.is_dir()))
def test_the_page_has_the_table_of_its_runs(runs: str, tmp_path: Path) -> None:
    assert main(["report", str(RESULTS / runs), "--format", "markdown", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    assert table in (RESULTS / "README.md").read_text()
    numbers = re.findall(r"\d+\.\d\d", table)
    shown = (RESULTS / f"{runs}.html").read_text()
    assert not [number for number in numbers if number not in shown]


def test_a_result_is_shown_by_its_command_without_the_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RESULTS / "sparc", tmp_path / "runs")
    (tmp_path / "none").mkdir()
    monkeypatch.setattr(Benchmark, "load", lambda *_: pytest.fail("it loads the pictures"))
    out, data = str(tmp_path / "runs"), str(tmp_path / "none")
    assert main(["run", "seq-cifar100-5", "--seed", "0", "--out", out, "--data", data]) == 0
    result = result_of(RunConfig.default("seq-cifar100-5", "sparc"), find_results([RESULTS / "sparc"]).values())
    assert result is not None
    assert f"{result.metrics()['class_il'].accuracy:.2f}" in capsys.readouterr().out
