import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sparc.cli.compare import chosen
from sparc.cli.main import main
from sparc.experiment import find_runs

QUICK = ["compare", "seq-digits", "--seeds", "2", "--set", "epochs=1", "batch_size=128", "width=0.125", "tasks=2"]


def test_methods_are_run_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "runs")]
    assert main([*QUICK, *out, "--methods", "sparc,sgd:width=0.0625", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    rows = {row["method"]: row for row in found["rows"]}
    assert rows.keys() == {"sparc", "sgd"}
    assert [row["seeds"] for row in rows.values()] == [[0, 1], [0, 1]]
    assert rows["sgd"]["settings"]["width"] == 0.0625
    assert rows["sparc"]["settings"]["width"] == 0.125
    assert "done" in captured.err
    for folder in found["folders"]:
        result = json.loads((Path(folder) / "result.json").read_bytes())
        assert result["config"]["recipe"]["epochs"] == 1
    before = [(Path(folder) / "result.json").stat().st_mtime_ns for folder in found["folders"]]
    assert main([*QUICK, *out, "--methods", "sparc,sgd:width=0.0625"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("seq-digits, 2 tasks, 1 epoch a task, 2 seeds\n")
    assert "Class-IL, in percent, mean ± deviation of a sample over 2 seeds" in captured.out
    assert captured.err.count("as it was there already") == 4
    assert [(Path(folder) / "result.json").stat().st_mtime_ns for folder in found["folders"]] == before


def test_a_run_that_fails_is_told_beside_those_that_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*QUICK, "--methods", "sgd:lr=1e30,sgd,sparc:lr=1e30", "--out", str(tmp_path), "--workers", "1"]
    assert main([*command, "--seeds", "1"]) == 2
    captured = capsys.readouterr()
    assert "SGD" in captured.out
    assert "SPARC" not in captured.out
    for line in ("sgd:lr=1e+30 on seq-digits, seed 0: failed", "sgd:lr=0.03 on seq-digits, seed 0: done"):
        assert line in captured.err
    assert "sparc on seq-digits, seed 0: failed" in captured.err
    assert "2 of 3 runs failed, the first with “the loss is" in captured.err


def test_values_go_to_the_methods_that_take_them() -> None:
    sparc, sgd = chosen("seq-digits", "sparc:alpha=0.5, sgd", ["kappa=3", "schedule=constant", "sizes=[4,6]"])
    assert sparc.settings.alpha == 0.5
    assert sparc.settings.kappa == 3.0
    assert sgd.recipe.schedule == sparc.recipe.schedule == "constant"
    assert sgd.stream.sizes == (4, 6)
    (packnet,) = chosen("seq-digits", "packnet", ["optimizer=adam", "momentum=0"])
    assert packnet.recipe.optimizer == "adam"


def test_settings_go_by_their_old_names_too_and_the_new_ones_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    er, derpp, oewc = chosen("seq-digits", "er,der++:replay=9,oewc:strength=0.3", ["buffer=50", "batch=16"])
    assert er.settings.buffer_size == derpp.settings.buffer_size == 50
    assert derpp.settings.replay_batch == 9
    assert oewc.settings.lam == 0.3
    assert oewc.recipe.batch_size == 16
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"sparc: {old} is called {new} now"
        for old, new in (
            ("batch", "batch_size"),
            ("buffer", "buffer_size"),
            ("replay", "replay_batch"),
            ("strength", "lam"),
        )
    ]


def test_a_method_that_is_there_twice_is_told_and_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(chosen("seq-digits", "er,sgd,er:lr=0.1", [])) == 2
    assert capsys.readouterr().err == "sparc: --methods has er:lr=0.1 twice, as er is the same: it is run once\n"


def test_missing_pictures_are_told_once_and_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    where = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "runs")]
    assert main(["compare", "seq-miniimagenet", "--methods", "er,sgd", *where]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "miniimagenet" in sentence.lower().replace("-", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--methods", "sparc,sgdd"], "unknown method “sgdd”: did you mean sgd?"),
        (["--methods", ""], "--methods names none"),
        (["--methods", "derpp"], "unknown method “derpp”: did you mean der++?"),
        (["--set", "epochs"], "“epochs” sets nothing: write NAME=VALUE"),
        (["--set", "epochs=many"], "epochs=many of sparc cannot be: epochs should be a whole number"),
        (["--methods", "sparc,er:lr=abc"], "lr=abc of er cannot be: lr should be a number"),
        (["--methods", "packnet:optimizer=adam"], "--momentum 0.9 is sgd's, and adam has its own: add --momentum 0"),
        (["--methods", "cpg:optimizer=adam"], "--nesterov is sgd's: give --optimizer sgd, or leave it out"),
        (["--set", "epochs=0"], "--epochs 0 learns nothing"),
        (["--set", "schedule=odd"], "schedule=odd of sparc cannot be: schedule should be constant or cosine"),
        (["--set", "colour=red"], "--set colour is a setting of none of sparc,sgd: there are"),
        (["--set", "epoch=2"], "--set epoch is a setting of none of sparc,sgd: did you mean epochs?"),
        (["--methods", "sgd:alpha=1"], "unknown setting of sgd “alpha”"),
        (["--seeds", "0"], "--seeds 0 runs nothing"),
        (["--workers", "0"], "--workers 0 does nothing"),
        (["--address", "here:1"], "--address is a Ray cluster's: add --executor ray"),
    ],
)
def test_bad_input_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["compare", "seq-digits", "--out", str(tmp_path / "runs"), *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_ones_own_is_compared_on(picture_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = picture_folder()
    words = ["--methods", "sgd", "--seeds", "1", "--set", "epochs=1", "width=0.125", "tasks=2", "image_size=8"]
    assert main(["compare", str(folder), *words, "--workers", "1", "--out", str(tmp_path / "runs")]) == 0
    (run,) = find_runs([tmp_path / "runs"])
    assert len(run.measured.sizes) == 2
