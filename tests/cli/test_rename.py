"""`sparc rename`: other names, the same answers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from sparc.cli.main import main
from sparc.files import locked
from sparc.model_file import load
from sparc.predictor import scores

MakeModel = Callable[..., Path]
PETS = ("pets", {"cat": 0.0, "dog": 2.0})
MORE = ("more", {"cat": 1.0, "eel": 0.5})


def test_a_class_is_renamed_in_every_task_that_has_it(model: MakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    path = model(PETS, MORE)
    images = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    before = scores(load(path), images)
    assert main(["rename", str(path), "cat", "кот"]) == 0
    assert "cat is called кот now" in capsys.readouterr().out
    after = load(path)
    assert [task.classes for task in after.info.tasks] == [("кот", "dog"), ("кот", "eel")]
    assert np.array_equal(scores(after, images), before)


def test_a_task_is_renamed(model: MakeModel) -> None:
    path = model(PETS, MORE)
    assert main(["rename", str(path), "more", "others", "--task"]) == 0
    assert [task.name for task in load(path).info.tasks] == ["pets", "others"]


def test_names_are_composed_as_those_of_folders_are(model: MakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    path, apart = model(PETS, MORE), "e\N{COMBINING ACUTE ACCENT}"
    assert main(["rename", str(path), "cat", apart]) == 0
    assert "cat is called é now" in capsys.readouterr().out
    assert load(path).info.classes == ("é", "dog", "eel")
    assert main(["rename", str(path), "pets", apart, "--task"]) == 0
    assert main(["rename", str(path), apart, "tom"]) == 0
    assert "é is called tom now" in capsys.readouterr().out
    assert main(["forget", str(path), "--task", apart]) == 0
    assert load(path).info.classes == ("eel",)


def test_a_name_that_python_gave_apart_is_found(model: MakeModel) -> None:
    apart = "e\N{COMBINING ACUTE ACCENT}"
    path = model(("pets", {apart: 0.0, "dog": 2.0}))
    assert main(["forget", str(path), "é"]) == 0
    assert load(path).info.classes == ("dog",)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cot", "tom"], "unknown class “cot”: did you mean cat?"),
        (["pets", "tom"], "unknown class “pets”"),
        (["pet", "tom", "--task"], "unknown task “pet”: did you mean pets?"),
        (["cat", "eel"], "the model has a class “eel” already: take another name"),
        (["cat", "cat"], "the model has a class “cat” already"),
        (["pets", "more", "--task"], "the model has a task “more” already"),
        (["cat", " "], "is no name"),
        (["cat", ""], "is no name"),
        (["cat", "a\nb"], "is no name"),
        (["cat"], "NEW"),
    ],
)
def test_what_cannot_be_renamed_is_said_and_nothing_written(
    model: MakeModel, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    path = model(PETS, MORE)
    before = path.read_bytes()
    assert main(["rename", str(path), *arguments]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
    assert path.read_bytes() == before


def test_one_at_a_time(model: MakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    path = model(PETS)
    with locked(path):
        assert main(["rename", str(path), "cat", "tom"]) == 2
    assert "another process is at work" in capsys.readouterr().err
    assert main(["rename", str(path.with_name("none.sparc")), "cat", "tom"]) == 2
    assert "there is no model" in capsys.readouterr().err
