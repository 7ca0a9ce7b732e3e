"""`sparc report`, as a person or a script meets it."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path

import pytest

from sparc.cli.main import main


@pytest.fixture
def runs(quick_runs: Path) -> Path:
    return quick_runs


def test_a_page_is_written_and_its_place_said(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert main(["report", str(runs), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"page: {out}\n"
    content = out.read_text()
    assert content.startswith("<!DOCTYPE html>")
    for text in ("SPARC", "SGD", "1 epoch a task", "Training loss", "1,442 to learn, 355 to test, 8 × 8 pixels"):
        assert text in content
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_without_a_word_the_runs_here_go_into_a_page_here(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").symlink_to(runs)
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 0
    assert (tmp_path / "report.html").exists()


def test_single_runs_can_be_named(runs: Path, tmp_path: Path) -> None:
    sgd = next(runs.glob("*-sgd-*"))
    assert main(["report", str(sgd), "--out", str(tmp_path / "a.html")]) == 0
    assert "SPARC" not in (tmp_path / "a.html").read_text()


def test_a_result_can_be_named_by_its_file(runs: Path, tmp_path: Path) -> None:
    sgd = next(runs.glob("*-sgd-*"))
    for out, name in (("folder.html", sgd), ("file.html", sgd / "result.json")):
        assert main(["report", str(name), "--out", str(tmp_path / out)]) == 0
    assert (tmp_path / "folder.html").read_bytes() == (tmp_path / "file.html").read_bytes()


def test_the_page_says_what_it_leaves_out(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.html"
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text("{}")
    shutil.copytree(next(runs.glob("*-sgd-*")), tmp_path / "whole")
    assert main(["report", str(tmp_path), "--out", str(out)]) == 0
    sentence = f"{tmp_path}/broken/result.json is not a result (it has no 'format'): remove it, and run it again"
    assert capsys.readouterr().err == f"sparc: {sentence}\n"
    assert f"<li>{escape(sentence)}</li>" in out.read_text()
    assert main(["report", str(tmp_path / "whole"), "--out", str(out)]) == 0
    assert "Not in the tables" not in out.read_text()


def test_results_alone_are_enough(runs: Path, tmp_path: Path) -> None:
    for folder in runs.iterdir():
        (tmp_path / "copy" / folder.name).mkdir(parents=True)
        shutil.copy(folder / "result.json", tmp_path / "copy" / folder.name)
    assert main(["report", str(tmp_path / "copy"), "--out", str(tmp_path / "a.html")]) == 0
    assert "Training loss" not in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_folder_of_figures(runs: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "figures"
    assert main(["report", str(runs), "--format", kind, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"figures: {out}\n"
    # Which of the two is first is a matter of a hair after one epoch.
    assert sorted(re.sub(r"-\d\d-", "-", path.stem) for path in out.iterdir()) == [
        *("by-task-sparc", "end-class-il", "end-task-il", "landings-sgd", "landings-sparc"),
        *("matrix-class-il-sgd", "matrix-class-il-sparc", "matrix-task-il-sgd", "matrix-task-il-sparc"),
        "parts-sparc",
        *("size-class-il", "size-task-il", "stages-class-il", "stages-task-il"),
        *("time-class-il", "time-task-il", "training-loss"),
    ]
    for path in out.iterdir():
        if kind == "svg":
            ET.parse(path)
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_an_ending_that_belongs_to_another_format_is_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs), "--out", str(tmp_path / "table.csv")]) == 2
    assert "has the ending of --format csv, and not of html: change one" in capsys.readouterr().err
    assert not list(tmp_path.glob("table.*"))
    assert main(["report", str(runs), "--out", str(tmp_path / "chart.png")]) == 2
    assert "has the ending of --format png, and not of html" in capsys.readouterr().err
    assert main(["report", str(runs), "--format", "png", "--out", str(tmp_path / "chart.png")]) == 2
    assert "chart.png: name it without .png" in capsys.readouterr().err
    assert main(["report", str(runs), "--out", str(tmp_path / "table.CSV")]) == 2
    assert not list(tmp_path.iterdir())
    assert main(["report", str(runs), "--out", str(tmp_path / "page")]) == 0


def test_tables_for_other_programs(runs: Path, tmp_path: Path) -> None:
    assert main(["report", str(runs), "--format", "csv", "--out", str(tmp_path / "a.csv")]) == 0
    with (tmp_path / "a.csv").open() as file:
        assert sorted((line["method"], line["seed"]) for line in csv.DictReader(file)) == [
            *(("sgd", "0"), ("sparc", "0"), ("sparc", "1"))
        ]
    assert main(["report", str(runs), "--format", "latex", "--out", str(tmp_path / "a.tex")]) == 0
    assert r"\begin{tabular}" in (tmp_path / "a.tex").read_text()
    assert main(["report", str(runs), "--format", "markdown", "--out", str(tmp_path / "a.md")]) == 0
    assert "| Method | Class-IL A_T" in (tmp_path / "a.md").read_text()


def test_the_numbers_as_json(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs), "--out", str(tmp_path / "a.html"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["out"] == str(tmp_path / "a.html")
    (study,) = content["studies"]
    rows = {row["method"]: row for row in study["rows"]}
    results = [json.loads(path.read_bytes()) for path in runs.glob("*sparc*/result.json")]
    accuracies = [each["metrics"]["class_il"]["accuracy"] for each in results]
    assert rows["sparc"]["numbers"]["class_il.accuracy"]["mean"] == pytest.approx(sum(accuracies) / 2)
    assert rows["sparc"]["seeds"] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere is not there: name a run's folder"),
        (["file"], "file is a file: name a run's folder"),
        (["part-way"], "part-way is of a run that is not done"),
        (["runs", "--out", "pipe"], "pipe is a device or a pipe"),
        (["empty"], "empty has no result in it: make one with sparc run"),
        (["broken"], "broken/a/result.json is not a result"),
        (["runs", "--out", "missing/report.html"], "there is no folder missing"),
        (["runs", "--out", "empty"], "empty is a folder: name a file in it"),
        (["runs", "--format", "svg", "--out", "file"], "--out file is a file"),
        (["runs", "--format", "pdf"], "unknown --format “pdf”: there are csv, html, latex, markdown, png, svg"),
        (["runs/a", "--out", "runs/a/result.json"], "is a result itself"),
        (["log"], "line 2 of log/a/log.jsonl cannot be read"),
    ],
)
def test_bad_input_gets_one_sentence_exit_code_2_and_no_file(
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    whole = next(runs.glob("*sgd*/result.json")).read_bytes()
    for name, content in {"runs": whole, "broken": whole[:-100], "log": whole}.items():
        (tmp_path / name / "a").mkdir(parents=True)
        (tmp_path / name / "a" / "result.json").write_bytes(content)
    (tmp_path / "log" / "a" / "log.jsonl").write_text('{"event": "stage"}\n{"event": "epoch", "task": "one"}\n')
    (tmp_path / "empty").mkdir()
    (tmp_path / "part-way").mkdir()
    (tmp_path / "part-way" / "run.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("mine")
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["report", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sparc: ")
    assert len(captured.err.splitlines()) == 1
    assert sentence in captured.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_table_can_be_printed(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.md"
    assert main(["report", str(runs), "--format", "markdown", "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["report", str(runs), "--format", "markdown", "--out", "-"]) == 0
    assert capsys.readouterr().out == path.read_text()
    assert not Path("-").exists()
    command = [sys.executable, "-m", "sparc", "report", str(runs), "--format", "markdown", "--out", "-"]
    narrow = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert subprocess.run(command, env=narrow, capture_output=True, check=True).stdout == path.read_bytes()
    for figures in (["--format", "svg"], ["--json"]):
        assert main(["report", str(runs), *figures, "--out", "-"]) == 2
        assert "--out - prints a page or a table alone" in capsys.readouterr().err
