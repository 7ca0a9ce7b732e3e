"""`sparc reproduce`, as a reader of the paper meets it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparc.cli import reproduce
from sparc.cli.main import main
from sparc.cli.workers import Workers
from sparc.experiment import Run, RunConfig
from sparc.reproduce.catalog import EXHIBITS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """CIFAR-100 with two training pictures and one test picture a class, in the official layout."""
    folder = tmp_path / "data" / "cifar-100-binary"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for name, count in (("train", 2), ("test", 1)):
        labels = np.repeat(np.arange(100, dtype=np.uint8), count)[:, None]
        pixels = random.integers(0, 256, (len(labels), 3072), dtype=np.uint8)
        (folder / f"{name}.bin").write_bytes(np.concatenate((labels * 0, labels, pixels), axis=1).tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(f"kind_{label:02}" for label in range(100)))
    return tmp_path / "data"


def test_the_list_has_every_table_and_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "--out", str(tmp_path / "runs")]) == 0
    out = capsys.readouterr().out
    for name in EXHIBITS:
        assert name in out
    assert "scale quick" in out
    assert "0 of 4" in out
    assert not (tmp_path / "runs").exists()


def test_the_list_for_machines(capsys: pytest.CaptureFixture[str], tmp_path: Path, data: Path) -> None:
    assert main(["reproduce", "--json", "--scale", "paper", "--out", str(tmp_path), "--data", str(data)]) == 0
    content = json.loads(capsys.readouterr().out)
    rows = {row["id"]: row for row in content["exhibits"]}
    assert rows.keys() == EXHIBITS.keys()
    assert content["scale"]["name"] == "paper"
    assert rows["table-parameters"]["needed"] == 0
    assert rows["figure-stability-alpha"]["needed"] == 12
    assert rows["figure-stability-alpha"]["data"] == {"cifar100": "there"}
    assert rows["table-miniimagenet"]["data"] == {"miniimagenet": "missing"}
    assert rows["table-non-exemplar"]["data"] == {"tinyimagenet": "to be fetched"}
    assert rows["table-results"]["methods missing"] == []
    assert "L2P" in rows["table-efficiency"]["methods missing"]
    assert rows["table-results"]["hours"] > rows["table-non-exemplar"]["hours"] > 1


def test_parameters_need_no_run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table-parameters"]) == 0
    out = capsys.readouterr().out
    for text in ("tab:parameter", "scale quick", "1.040 ✓", "1.901 ✓", "3.624 ✓", "1.927 ✗", "1.97 does not follow"):
        assert text in out
    assert "Not run" not in out
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_runs_nothing_and_shows_the_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, data: Path
) -> None:
    arguments = ["table-width-depth", "--dry-run", "--out", str(tmp_path / "runs"), "--data", str(data)]
    assert reproduce.main(arguments) == 0
    out = capsys.readouterr().out
    assert out.count("sparc run seq-cifar100-5 --method sparc") == 8
    assert "49.03 ± 0.05" in out
    assert not (tmp_path / "runs").exists()


def test_what_is_missing_is_run_shown_and_not_run_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, data: Path
) -> None:
    arguments = ["reproduce", "figure-head-norms", "--out", str(tmp_path / "runs"), "--data", str(data)]
    assert main(arguments) == 0
    out, said = capsys.readouterr()
    assert "to do" in said
    assert "before re-normalization" in out
    assert "Ours were trained on 200 of cifar100's 50,000 pictures." in out
    assert "Not run" not in out
    picture = tmp_path / "runs" / "figure-head-norms-quick.png"
    assert f"picture: {picture}" in out
    with Image.open(picture) as drawn:
        assert drawn.format == "PNG"
        assert len(drawn.convert("RGB").getcolors(1 << 24) or []) > 50, "it is not blank"
    assert main([*arguments, "--json", "--figure", str(tmp_path / "norms.png")]) == 0
    out, said = capsys.readouterr()
    assert "to do" not in said
    content = json.loads(out)
    assert content["missing"] == []
    assert content["picture"] == str(tmp_path / "norms.png")
    assert Path(content["picture"]).exists()
    before, after = content["charts"][0]["curves"]
    assert [len(curve["points"]) for curve in (before, after)] == [5, 5]
    assert before["points"][0]["n"] == 1
    assert main(["reproduce", "--out", str(tmp_path / "runs"), "--data", str(data), "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)["exhibits"]}
    assert rows["figure-head-norms"]["done"] == rows["figure-head-norms"]["needed"]
    assert rows["figure-stability-alpha"]["done"] == 1, "its usual α is the same run"


def test_runs_with_data_are_done_first_and_those_without_not_at_all(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[RunConfig] = []

    def do_all(configs: list[RunConfig], workers: Workers, *rest: object) -> list[Run]:
        assert (workers.out, workers.data) == (tmp_path / "runs", data)
        asked.extend(configs)
        return []

    monkeypatch.setattr(reproduce, "do_all", do_all)
    arguments = ["--out", str(tmp_path / "runs"), "--data", str(data)]
    assert reproduce.main(["table-results", *arguments]) == 0
    assert {config.benchmark for config in asked} == {"seq-cifar100-5", "seq-tinyimagenet"}
    first = [config.benchmark for config in asked]
    assert first == sorted(first), "each benchmark's together, and the one that is here before the other"
    asked.clear()
    assert reproduce.main(["table-miniimagenet", *arguments]) == 0
    assert asked == [], "its pictures are not here and cannot be fetched"


def test_a_grid_that_was_stopped_ends_the_command_with_its_code(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*rest: object) -> list[Run]:
        raise SystemExit(130)

    monkeypatch.setattr(reproduce, "do_all", stopped)
    with pytest.raises(SystemExit, match="130"):
        main(["reproduce", "table-isolation", "--out", str(tmp_path / "runs"), "--data", str(data)])
    assert capsys.readouterr().out == ""


def test_a_run_that_failed_is_told_after_what_there_is(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(configs: list[RunConfig], workers: Workers, *rest: object) -> list[Run]:
        return [Run(workers.out, config.as_json(), "failed", "it broke") for config in configs]

    monkeypatch.setattr(reproduce, "do_all", broken)
    arguments = ["table-efficiency", "--scale", "paper", "--out", str(tmp_path / "runs"), "--data", str(data)]
    assert main(["reproduce", *arguments]) == 2
    out, error = capsys.readouterr()
    assert "Not run" in out
    assert error.splitlines()[-1] == "sparc: 3 of 3 runs failed, the first with “it broke”"


def test_a_figure_with_nothing_to_draw_says_so(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "size.png"
    arguments = ["reproduce", "figure-size", "--dry-run", "--figure", str(picture), "--out", str(tmp_path / "runs")]
    assert main(arguments) == 0
    assert "picture: none, as there is nothing to draw yet" in capsys.readouterr().out
    assert not picture.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["table-result"], "unknown table or figure “table-result”: did you mean table-results?"),
        (["--scale", "huge"], "unknown --scale “huge”: there are half, paper, quick"),
        (["table-results", "--figure", "x.png"], "--figure is for figures, and table-results is a table"),
        (["--figure", "x.png"], "--figure draws one figure: name it"),
        (["figure-size", "--figure", "nowhere/x.png"], "there is no folder nowhere"),
        (["figure-size", "--data", "nowhere"], "nowhere, does not exist"),
        (["--data", "nowhere"], "nowhere, does not exist"),
        (["a", "b"], "“b” is too much: leave it out"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert len(error.splitlines()) == 1
    assert sentence in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"class_il": "high"},
        {"class_il": [[1, 2], [3]]},
        {"class_il": None},
        {"task_il": []},
        {"task_confusion": []},
        {"task_confusion": [[0, 0], [0, 0]]},
        {"class_il": [[1.0]], "task_il": [[1.0]], "task_confusion": [[1]], "sizes": [2]},
        {"sizes": [0, 0]},
        {"parameters": 0},
        {"parameters": "many"},
        {"config": None},
        {"format": 99},
        {"diagnostics": 7},
        {"diagnostics": {"head norm before": ["x", None]}},
        {"passes": None},
        {"data": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", [None, "figure-head-norms", "table-metrics", "figure-stability-alpha"])
def test_a_hostile_result_gets_one_sentence_or_is_passed_over(
    change: dict[str, object], name: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may carry the config of a run of the paper; what it says is not believed."""
    run = tmp_path / "runs" / "run"
    run.mkdir(parents=True)
    config = RunConfig.default("seq-cifar100-5", "sparc")
    content = {
        "format": 1,
        "config": replace(config, recipe=replace(config.recipe, epochs=1)).as_json(),
        "class_names": ["a", "b"],
        "sizes": [1, 1],
        "class_il": [[1.0, None], [2.0, 3.0]],
        "task_il": [[1.0, None], [2.0, 3.0]],
        "validation": None,
        "task_confusion": [[1, 1], [1, 1]],
        "parameters": 10,
        "parameters_by_owner": {},
        "passes": {"forward": 1, "backward": 1},
        "buffer_bytes": 0,
        "seconds": {},
        "state_sha256": "",
        "data": {},
        "environment": {},
    }
    (run / "result.json").write_text(json.dumps({**content, **change}))
    assert main(["reproduce", *([name] if name else []), "--dry-run", "--json", "--out", str(tmp_path / "runs")]) == 0
    # A slow machine is told how far the counting of the methods' work is, too.
    error = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("reproduce: counting")]
    assert len(error) <= 1
    assert all("result.json" in line for line in error)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"null", b'{"format": 1}'])
def test_a_broken_result_is_named_and_left_out(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "result.json").write_bytes(content)
    assert main(["reproduce", "table-results", "--dry-run", "--out", str(tmp_path)]) == 0
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "result.json is not a result" in sentence
