"""What results/ says is what the runs in it say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sparc.cli.main import main
from sparc.data.benchmarks import Benchmark
from sparc.experiment import find_runs
from sparc.experiment.processes import Processes
from sparc.methods import METHODS
from sparc.report.comparison import ACCURACIES, COLUMN, Row, compare
from tests.pages import RESULTS_PAGE, ROOT, commands

RESULTS = ROOT / "results"
FOLDERS = sorted(path.name for path in RESULTS.iterdir() if path.is_dir())
COMMANDS = commands("sh long", [RESULTS_PAGE])


def rows_of(folder: Path) -> list[Row]:
    return compare(find_runs([folder]))


@pytest.mark.parametrize("runs", FOLDERS)
def test_the_page_has_the_table_of_its_runs(runs: str, tmp_path: Path) -> None:
    assert main(["report", str(RESULTS / runs), "--format", "markdown", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    assert table in (ROOT / RESULTS_PAGE).read_text()
    numbers = re.findall(r"\d+\.\d\d", table)
    shown = (RESULTS / f"{runs}.html").read_text()
    assert not [number for number in numbers if number not in shown]


def test_every_result_has_its_command() -> None:
    assert sorted(command[command.index("--out") + 1] for command in COMMANDS) == [
        f"results/{name}" for name in FOLDERS
    ]
    made = subprocess.run(["make", "-n", "results"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for command in COMMANDS:
        assert " ".join(command) in made


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_result_is_shown_by_its_command_without_the_pictures(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RESULTS, tmp_path / "results")
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Benchmark, "load", lambda *_: pytest.fail("it loads the pictures"))
    monkeypatch.setattr(Processes, "__call__", lambda *_: pytest.fail("runs are missing"))
    assert main([*command[1:], "--data", "none"]) == 0
    shown = capsys.readouterr().out
    for row in rows_of(Path(command[command.index("--out") + 1])):
        for column in ACCURACIES:
            assert column.parts(row.cells[column.name])[0] in shown


def test_the_readme_has_the_rows_of_the_runs() -> None:
    rows = rows_of(RESULTS / "methods")
    assert {row.method for row in rows} <= set(METHODS.classes), (
        "a method may be there before it has been run for hours"
    )
    columns = (*ACCURACIES, COLUMN["parameters"], COLUMN["buffer"])
    lines = [
        f"| {' | '.join([row.label, *(column.text(row.cells[column.name]) for column in columns)])} |" for row in rows
    ]
    table = (ROOT / "README.md").read_text().partition("| on Seq-CIFAR100, 5 tasks")[2].partition("\n\n")[0]
    assert sorted(table.splitlines()[2:]) == sorted(lines)
