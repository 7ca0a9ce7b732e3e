"""What results/ says is what the runs in it say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sparc.cli.main import main
from sparc.data.benchmarks import Benchmark
from sparc.experiment import find_results
from sparc.report.comparison import compare
from tests.test_readme import blocks

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


@pytest.mark.parametrize("command", [block.split() for block in blocks("results/README.md", "sh long")], ids=" ".join)
def test_a_result_is_shown_by_its_command_without_the_pictures(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RESULTS, tmp_path / "results")
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Benchmark, "load", lambda *_: pytest.fail("it loads the pictures"))
    assert main([*command[1:], "--data", "none"]) == 0
    shown = capsys.readouterr().out
    rows = compare(find_results([Path(command[command.index("--out") + 1])]).values())
    assert rows
    for row in rows:
        assert f"{row.cells['task_il.accuracy'].mean:.2f}" in shown


def test_make_makes_what_the_page_shows() -> None:
    made = subprocess.run(["make", "-n", "results"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for block in blocks("results/README.md", "sh long"):
        assert " ".join(block.split()) in made
