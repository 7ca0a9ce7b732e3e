"""The command line, as a person or a script meets it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparc.cli import methods
from sparc.cli.main import main
from sparc.cli.run import arguments_of
from sparc.methods import METHODS

RESULTS = Path(__file__).parents[2] / "results"
MODEL = Path(__file__).parents[1] / "version-7.sparc"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--help"], "benchmarks"),
        (["inspect", str(MODEL)], "working memories"),
        (["card", str(MODEL)], "How it was trained"),
    ],
)
def test_what_is_only_looked_up_does_not_wait_for_torch(arguments: list[str], shown: str) -> None:
    code = f"import sys; from sparc.cli.main import main; main({arguments}); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


def test_no_verb_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "usage: sparc VERB" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("sparc ")


def test_benchmarks_and_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks"]) == 0
    assert "seq-cifar100-20" in capsys.readouterr().out
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    assert "sparc" in out
    assert "sgd" in out


def test_methods_are_listed_with_what_they_ask_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["methods", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert "parameters" not in listed["sparc"], "it takes minutes to count them"
    assert listed["pnn"]["needs_task_id"]
    assert listed["er"]["buffer_size"] == 200
    assert listed["sgd"]["buffer_size"] is None
    for columns in ("80", "130"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["methods"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert all(any(line.startswith(f" {name} ") for line in lines) for name in listed)


def test_methods_are_listed_with_what_they_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "classes", {"sparc": METHODS.find("sparc")})
    monkeypatch.setenv("COLUMNS", "110")
    assert main(["methods", "--costs"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" sparc")]
    assert line.split()[-6:] == ["1.04", "M", "4.2", "MB", "1F", "1B"]


@pytest.mark.parametrize("columns", ["80", "110", "150"])
def test_costs_cut_no_name_short(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = {"parameters": 104_649_972, "bytes": 418_599_888, "passes": {"forward": 2.98, "backward": 1.99}}
    monkeypatch.setattr(methods, "costs_of", lambda method: costs)
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["methods", "--costs"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert all(f" {name} " in out for name in METHODS.classes)


@pytest.mark.long
def test_costs_of_all_methods_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "--costs", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["sparc"]["parameters"] == 1_039_659
    assert listed["pnn"]["parameters"] == 104_649_972
    assert listed["der++"]["passes"] == {"forward": 3, "backward": 3}


def test_a_run_prints_tables_and_says_where_the_picture_is(
    quick: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "seq-digits", *quick]) == 0
    out, error = capsys.readouterr()
    for title in (
        *("Class-IL accuracy", "Task-IL accuracy", "Metrics", "Forgetting", "by parts", "without re-normalization"),
        *("Parameters", "semantic memory"),
    ):
        assert title in out
    (line,) = [line for line in out.splitlines() if line.startswith("picture: ")]
    assert (tmp_path / line.removeprefix("picture: ")).read_bytes().startswith(b"\x89PNG")
    assert "task 5/5 learned" in error, "progress goes to standard error"


def test_json_is_all_that_goes_to_standard_output(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "seq-digits", *quick, "--seeds", "2", "--json", "--out", str(tmp_path)]
    assert main(command) == 0
    content = json.loads(capsys.readouterr().out)
    assert [each["config"]["seed"] for each in content["runs"]] == [0, 1]
    accuracies = [each["metrics"]["class_il"]["accuracy"] for each in content["runs"]]
    assert content["summary"]["class_il"]["accuracy"]["mean"] == pytest.approx(sum(accuracies) / 2)
    assert all(Path(each["folder"], "result.json").exists() for each in content["runs"])
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == content


def test_several_seeds_end_in_mean_and_deviation(
    quick: list[str], quick_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "seq-digits", *quick, "--seeds", "2", "--out", str(quick_runs)]) == 0
    out = capsys.readouterr().out
    assert "mean" in out
    assert "deviation" in out


def test_a_folder_of_pictures_can_be_run(
    quick: list[str], picture_folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = picture_folder(classes=4)
    assert main(["run", str(folder), *quick, "--sizes", "1", "3", "--out", str(tmp_path / "runs")]) == 0
    assert "task 2 (3 classes)" in capsys.readouterr().out


def test_settings_in_the_help_are_the_methods_own(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, there in ((["--method", "sparc"], True), (["--method=sgd"], False)):
        with pytest.raises(SystemExit) as end:
            main(["run", "seq-digits", *arguments, "--help"])
        assert end.value.code == 0
        assert ("--kappa" in capsys.readouterr().out) is there


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rum"], "unknown verb “rum”: did you mean run?"),
        (["run", "seq-digit"], "unknown benchmark “seq-digit”: did you mean seq-digits"),
        (["run", "seq-digits", "--method", "spark"], "unknown method “spark”: did you mean sparc?"),
        (["run", "./nowhere"], "there is no folder ./nowhere"),
        (["run", "seq-digits", "--tasks", "11"], "--tasks 11 cannot be cut from 10 classes"),
        (["run", "seq-digits", "--sizes", "5", "6"], "--sizes 5 6 adds up to 11, but there are 10 classes"),
        (["run", "seq-digits", "--kappa", "inf"], "--kappa inf must be a number"),
        (["run", "seq-digits", "--order-seed", "9" * 30], "--order-seed"),
        (["run", "seq-digits", "--device", "meta"], "--device meta cannot be used here"),
        (["run", "seq-digits", "--tasks", "0"], "--tasks 0 cannot be cut"),
        (["run", "seq-digits", "--width", "0.001"], "--width 0.001 gives no filters"),
        (["run", "seq-digits", "--depth", "0"], "--depth 0 gives no net"),
        (["run", "seq-digits", "--epochs", "0"], "--epochs 0 learns nothing"),
        (["run", "seq-digits", "--alpha", "2"], "--alpha 2 must lie between 0 and 1"),
        (["run", "seq-digits", "--seeds", "0"], "--seeds 0 runs nothing"),
        (["run", "seq-digits", "--seed", "-1"], "--seed -1 must not be negative"),
        (["run", "seq-digits", "--threads", "0"], "--threads 0 must lie between"),
        (["run", "seq-cifar10", "--data", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sparc: ")
    assert len(captured.err.splitlines()) == 1
    assert sentence in captured.err
    assert list(tmp_path.iterdir()) == [], "nothing was written"


def test_a_broken_archive_and_a_broken_picture_are_named(
    tmp_path: Path, picture_folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(b"not an archive")
    assert main(["run", "seq-cifar100-5", "--data", str(tmp_path), "--out", str(tmp_path / "runs")]) == 2
    assert "cifar-100-binary.tar.gz" in capsys.readouterr().err
    folder = picture_folder()
    (folder / "class-1" / "0.png").write_bytes(b"not a picture")
    assert main(["run", str(folder), "--out", str(tmp_path / "runs")]) == 2
    assert "0.png" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_flags_go_by_their_old_names_too_and_the_new_ones_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "seq-digits", "--method", "er", "--epochs", "0", "--out", str(tmp_path / "runs")]
    assert main([*command, "--batch", "64", "--buffer=3", "--replay-batch", "4"]) == 2
    renamed, also_renamed, error = capsys.readouterr().err.splitlines()
    assert renamed == "sparc: --batch is called --batch-size now"
    assert also_renamed == "sparc: --buffer is called --buffer-size now"
    assert "--epochs 0 learns nothing" in error
    given = arguments_of(["seq-digits", "--method=oewc", "--strength", "3", "--batch=7"])
    assert (given.method.lam, given.recipe.batch_size) == (3, 7)


def test_a_switch_before_the_benchmark_is_not_taken_for_a_flag_with_a_value() -> None:
    for switch in ("--nesterov", "--fresh"):
        assert arguments_of([switch, "seq-digits", "--method", "sgd", "--momentum", "0.9"]).recipe.epochs == 30


def test_the_last_of_two_methods_counts(quick: list[str], quick_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "seq-digits", "--method", "sgd", *quick, "--method", "sparc", "--json", "--out", str(quick_runs)]
    assert main(command) == 0
    assert "semantic memory" in json.loads(capsys.readouterr().out)["runs"][0]["parameters_by_owner"]


def test_a_method_that_must_be_told_the_task_has_no_class_il_accuracy(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "seq-digits", "--method", "packnet", *quick, "--validation", "0.2", "--out", str(tmp_path)]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "task 5/5 learned" in captured.err
    assert "Class-IL –, Task-IL " in captured.err
    assert "Class-IL accuracy, in percent" not in captured.out
    assert "Lands on each task" not in captured.out
    for title in ("Accuracy A_T", "Forgetting", "A_T on pictures held out"):
        (line,) = [line for line in captured.out.splitlines() if line.startswith(f" {title}")]
        assert line.split()[-2] == "–", line
        assert 0 <= float(line.split()[-1]) <= 100
    assert main([*command, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (run,) = content["runs"]
    assert run["class_il"] is run["task_confusion"] is run["efficiency"] is run["task_probabilities"] is None
    assert run["validation"]["class_il"] is None
    assert set(run["metrics"]["class_il"].values()) == {None}
    assert content["summary"]["class_il"]["accuracy"] == {"mean": None, "deviation": None}
    assert content["summary"]["task_il"]["accuracy"]["mean"] == run["metrics"]["task_il"]["accuracy"]
    assert Path(run["folder"], "result.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command, "--seeds", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith((" 0 ", " 1 ", " mean"))]
    assert [row[1:4] for row in rows] == [["–"] * 3] * 3
    assert main(["runs", str(tmp_path)]) == 0
    assert "–" in capsys.readouterr().out


def test_a_folder_without_runs_is_said_to_have_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"there are no runs in {tmp_path}\n"
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_runs_fit_a_narrow_terminal_with_nothing_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["short", "seq-tinyimagenet-10-weight-alignment-seed0-0123456789"]
    for name in names:
        shutil.copytree(next((RESULTS / "sparc").glob("*-seed0-*")), tmp_path / name)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["runs", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if "done" in line]
    assert [row[1] for row in rows] == ["done"] * 2
    assert all(float(number) > 40 for row in rows for number in row[2:4])
    assert names[1] in "".join(line[0] for line in lines if line)


def test_runs_that_are_piped_have_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{'a' * 100}-{seed}" for seed in range(2)]
    for name in names:
        shutil.copytree(next((RESULTS / "sparc").glob("*-seed0-*")), tmp_path / name)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["runs", str(tmp_path)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "done" in line] == names


def test_runs_of_which_there_is_nothing_to_say_have_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "seq-cifar100-5-weight-alignment-seed0-0123456789"
    shutil.copytree(next((RESULTS / "sparc").glob("*-seed0-*")), tmp_path / name)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["runs", str(tmp_path)]) == 0
    assert f" {name} " in capsys.readouterr().out


def test_runs_say_what_is_set_otherwise_than_usual(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(["runs", str(RESULTS / "methods")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "-er-seed0-" in line]
    assert sorted(line[4:] for line in lines) == [
        ["width=0.25", "buffer_size=500", "epochs=2"],
        ["width=0.25", "buffer_size=500", "epochs=2", "lr=0.03"],
    ]
    for number, (method, benchmark) in enumerate((("of tomorrow", "seq-cifar100-5"), ("sparc", "folder-gone"))):
        folder = tmp_path / f"{number}"
        shutil.copytree(next((RESULTS / "sparc-constant").glob("*-seed0-*")), folder)
        for name in ("result.json", "run.json"):
            content = json.loads((folder / name).read_text())
            content["config"] |= {"method": method, "benchmark": benchmark}
            (folder / name).write_text(json.dumps(content))
    assert main(["runs", str(tmp_path)]) == 0
    unknown, gone = [line.split()[4:] for line in capsys.readouterr().out.splitlines() if "done" in line]
    assert {"lr=0.005", "schedule=constant", "kappa=5.0"} <= set(unknown)
    assert gone == ["schedule=constant"]


def test_one_task_and_two_seeds_have_no_forgetting_but_a_table(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "seq-digits", "--tasks", "1", "--seeds", "2", *quick, "--out", str(tmp_path / "a[/b]")]
    assert main(command) == 0
    assert "–" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary["class_il"]["forgetting"] == {"mean": None, "deviation": None}


def test_held_out_accuracy_is_shown(quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "seq-digits", *quick, "--validation", "0.2", "--out", str(tmp_path)]) == 0
    assert "on pictures held out" in capsys.readouterr().out


def test_a_terminal_without_our_letters_is_no_traceback() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sparc", "methods"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout


def test_ctrl_c_while_starting_stops_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", "sparc", "run", "seq-digits"], stderr=subprocess.PIPE) as process:
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1:] == ["sparc: stopped"]


def test_a_loss_that_is_no_number_is_told_in_one_sentence(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "seq-digits", *quick, "--lr", "1e30", "--out", str(tmp_path)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "in task 1, epoch 1, step " in sentence
    assert sentence.endswith("lower --lr (it is 1e+30)")


def test_bfloat16_is_for_cuda_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "seq-digits", "--bf16", "--out", str(tmp_path / "runs")]) == 2
    assert "--bf16 is for --device cuda" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [["benchmarks"], ["--help"], ["predict", "--help"]], ids=" ".join)
def test_a_reader_who_goes_away(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `sparc benchmarks | head -1`."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with subprocess.Popen(
        [sys.executable, "-m", "sparc", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_nobody_reads_at_all() -> None:
    command = f"exec {sys.executable} -m sparc benchmarks >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
