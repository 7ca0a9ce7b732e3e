"""Results come from anybody: whatever a file says, it is either a run's or refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparc.errors import InputError
from sparc.experiment import find_runs, read_result

CONTENT: dict[str, Any] = {
    "config": {"benchmark": "seq-digits", "method": "sparc", "seed": 0, "settings": {"width": 0.5}},
    "class_names": ["a", "b", "c"],
    "sizes": [2, 1],
    "class_il": [[90.0, None], [60, 80.0]],
    "task_il": [[90.0, None], [70.0, 100]],
    "validation": None,
    "task_confusion": [[10, 0], [3, 7]],
    "parameters": 1000,
    "parameters_by_owner": {"net": 1000},
    "passes": {"forward": 1, "backward": 1},
    "buffer_bytes": 0,
    "seconds": {"train": [1.0, 2.0], "test": [0.1, 0.2]},
    "state_sha256": "0" * 64,
    "data": {},
    "environment": {"torch": "2.13.0"},
    "format": 1,
}


def written(folder: Path, **change: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps({**CONTENT, **change}))
    return folder


def test_a_result_with_whole_numbers_is_read(tmp_path: Path) -> None:
    result = read_result(written(tmp_path) / "result.json")
    assert result.class_il[1] == [60.0, 80.0]
    assert result.metrics["task_il"].accuracy == 85


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"config": []}, "config should be an object"),
        ({"config": {"benchmark": "b", "method": "m"}}, "a seed"),
        ({"config": {"benchmark": "b", "method": 3, "seed": 0}}, "a method"),
        ({"config": {"benchmark": "b", "method": "m", "seed": True}}, "a seed"),
        ({"environment": {"torch": [[[[[[[1]]]]]]]}}, "plain values"),
        ({"environment": {"torch": float("inf")}}, "plain values"),
        ({"class_names": [1, 2, 3]}, "class_names should be text"),
        ({"class_names": ["a"]}, "sizes should add up"),
        ({"sizes": [3, 0]}, "sizes should add up"),
        ({"sizes": []}, "seconds should be"),
        ({"task_il": [[90.0, None], [60.0]]}, "up to its diagonal"),
        ({"task_il": [[90.0, 1.0], [60.0, 80.0]]}, "up to its diagonal"),
        ({"task_il": [[90.0, None], [None, 80.0]]}, "up to its diagonal"),
        ({"task_il": [[90.0, None], [101.0, 80.0]]}, "up to its diagonal"),
        ({"task_il": [[90.0, None], [float("nan"), 80.0]]}, "task_il should be a finite number"),
        ({"task_il": [[90.0, None], ["x", 80.0]]}, "task_il should be a number"),
        ({"validation": {"class_il": [[1.0]]}}, "up to its diagonal"),
        ({"task_confusion": [[1, 2]]}, "task_confusion should have"),
        ({"task_confusion": [[1, 2], [0, 0]]}, "task_confusion should have"),
        ({"task_confusion": [[1, 2], [5, -1]]}, "should not be negative"),
        ({"by_part": {"without it": {"class_il": 50.0}}}, "by_part should have percentages of both settings"),
        ({"by_part": {"without it": {"class_il": 50.0, "task_il": 101}}}, "by_part should have percentages"),
        ({"by_part": {"without it": 50.0}}, "by_part should be an object"),
        ({"parameters": 0}, "parameters should be some"),
        ({"parameters": 10**400}, "should not be negative"),
        ({"passes": {"forward": 1}}, "forward and backward"),
        ({"seconds": {"train": [1.0], "test": [1.0, 1.0]}}, "each task"),
        ({"seconds": {"train": [1.0, 1e300], "test": [1.0, 1.0]}}, "should not be negative"),
    ],
)
def test_what_cannot_be_a_run_is_refused_in_one_sentence(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(
        InputError, match=rf"result\.json is not a result \(.*{reason}.*\): remove it, and run it again"
    ) as refusal:
        read_result(written(tmp_path, **change) / "result.json")
    assert "\n" not in str(refusal.value)


def test_a_result_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"format": 1, "config": ' + "[" * 100_000)
    with pytest.raises(InputError, match="is not a result"):
        read_result(tmp_path / "result.json")


def test_run_folders_and_folders_of_runs_are_found_each_once(tmp_path: Path) -> None:
    first, second = written(tmp_path / "runs" / "a"), written(tmp_path / "runs" / "b")
    (tmp_path / "runs" / "cut-off").mkdir()
    (tmp_path / "runs" / "note.txt").write_text("not a run")
    assert [run.folder for run in find_runs([second, tmp_path / "runs"])] == [second, first]
    assert [run.folder for run in find_runs([first])] == [first]


def test_where_nothing_is_found_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="has no result in it"):
        find_runs([tmp_path])


def test_a_broken_result_does_not_stop_the_others(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "a"), written(tmp_path / "b")
    (bad / "result.json").write_text("{")
    said: list[str] = []
    assert [run.folder for run in find_runs([tmp_path], said.append)] == [good]
    (sentence,) = said
    assert "b/result.json is not a result" in sentence
    with pytest.raises(InputError, match="is not a result"):
        find_runs([bad])
