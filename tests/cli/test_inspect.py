"""`sparc inspect`: all that a file knows of itself, for people and for machines."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sparc.cli.inspect import main
from sparc.edit import forget
from sparc.errors import InputError
from sparc.model_file import LearnedTask, Model, save
from tests.models import INFO, learned_task, untaught


def task(name: str, *classes: str, share: float, accuracy: float | None = 87.65) -> LearnedTask:
    pictures = tuple(range(10, 10 + len(classes)))
    return replace(
        learned_task(name, *classes, share=share),
        pictures=pictures,
        accuracy_in_task=accuracy,
        accuracy_in_all=accuracy,
        epochs=7,
        seconds=12.34,
    )


def model(*tasks: LearnedTask) -> Model:
    return untaught(*tasks, info=replace(INFO, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)))


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    many = [f"breed {number}" for number in range(12)]
    first, second = task("pets [1]", "cat", "dog", share=0.9), task("breeds", *many, "cat", share=0.1, accuracy=None)
    save(model(first, second), tmp_path / "pets.sparc")
    return tmp_path / "pets.sparc"


def test_the_tables_show_tasks_parameters_and_settings(
    pets: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main([str(pets)]) == 0
    out = capsys.readouterr().out
    for text in ("pets.sparc", "14 classes in 2 tasks", "32 × 32 pixels", "0.100 0.200 0.300", "0.9", "sparc 0.1.0"):
        assert text in out
    assert "cat (pets [1], breeds)" in out, "the class that was learned twice"
    (row,) = [line for line in out.splitlines() if "cat, dog" in line]
    assert row.split() == ["pets", "[1]", "cat,", "dog", "21", "87.7", "87.7"]
    (row,) = [line for line in out.splitlines() if "breed 0" in line]
    assert "breed 4 … and 8 more" in row
    assert row.split()[-2:] == ["–", "–"], "no accuracy was measured"
    assert "breed 5" not in out
    assert "whole" not in out


def test_json_is_complete(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(pets), "--json", "--check"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["whole"] is True
    assert len(content["classes"]) == 14
    assert content["learned_more_than_once"] == {"cat": ["pets [1]", "breeds"]}
    assert content["bytes"] == pets.stat().st_size
    first, second = content["tasks"]
    assert first["classes"] == [{"name": "cat", "pictures": 10}, {"name": "dog", "pictures": 11}]
    assert (first["pictures"], first["epochs"], first["seconds"], first["share_in_semantic"]) == (21, 7, 12.34, 0.9)
    assert len(second["classes"]) == 13
    assert second["accuracy_in_all"] is None
    owners = content["parameters"]
    assert owners["all"] == sum(owners[owner] for owner in owners if owner != "all")
    added = first["parameters_added"] + second["parameters_added"]
    assert added + owners["semantic memory"] + owners["statistics"] == owners["all"]


def test_what_is_left_of_forgotten_tasks_is_told(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(pets), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["share_of_forgotten_tasks"] == 0
    whole = model(task("pets", "cat", share=0.9), task("fish", "eel", share=0.1))
    save(forget(whole, ["cat"]), pets)
    assert main([str(pets), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in content["tasks"]] == ["fish"]
    assert content["share_of_forgotten_tasks"] == pytest.approx(0.9)
    assert main([str(pets)]) == 0
    assert "90.0%" in capsys.readouterr().out


def test_a_model_that_knows_nothing_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(model(), tmp_path / "new.sparc")
    assert main([str(tmp_path / "new.sparc")]) == 0
    assert "0 classes in 0 tasks" in capsys.readouterr().out
    assert main([str(tmp_path / "new.sparc"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == []


def test_check_says_that_a_file_is_whole_and_refuses_a_changed_one(
    pets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(pets), "--check"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{pets} is whole: it matches its checksum"
    content = bytearray(pets.read_bytes())
    content[-2] ^= 1
    pets.write_bytes(content)
    with pytest.raises(InputError, match="checksum"):
        main([str(pets), "--check"])


def test_a_file_that_is_missing_cut_off_or_no_model_is_refused(pets: Path) -> None:
    with pytest.raises(InputError, match="there is no model"):
        main([str(pets.with_name("none.sparc"))])
    pets.write_bytes(pets.read_bytes()[:500])
    with pytest.raises(InputError, match="is not a model, or was cut off"):
        main([str(pets)])
    with pytest.raises(InputError, match="is a folder"):
        main([str(pets.parent)])
