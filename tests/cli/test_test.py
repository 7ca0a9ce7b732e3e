"""`sparc test`: right and wrong answers, counted by class."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from sparc.cli.main import main

MakeModel = Callable[..., Path]
PETS = ("pets", {"cat": 0.0, "dog": 2.0})
FISH = ("fish", {"eel": 1.0, "ray": 0.5})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, count in {"cat": 1, "dog": 2, "eel": 3, "ray": 1}.items():
        (tmp_path / "shown" / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (20, 20)).save(tmp_path / "shown" / name / f"{number}.png")
    return tmp_path / "shown"


def test_answers_are_counted_among_all_classes_and_among_a_tasks_own(
    model: MakeModel, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This model takes everything for a dog, and every fish, if it is told that it is one, for an eel."""
    path = model(PETS, FISH)
    assert main(["test", str(path), str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pictures"] == 7
    assert found["accuracy_in_all"] == pytest.approx(100 * 2 / 7)
    assert found["accuracy_in_task"] == pytest.approx(100 * 5 / 7)
    assert found["classes"] == [
        {"class": name, "pictures": count, "right": right, "taken_for": {"dog": count}}
        for name, count, right in (("cat", 1, 0), ("dog", 2, 2), ("eel", 3, 0), ("ray", 1, 0))
    ]
    assert main(["test", str(path), str(folder)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["eel", "3", "0.0", "%", "dog", "(3)"] in shown
    assert ["dog", "2", "100.0", "%"] in shown
    assert ["right", "among", "all", "classes", "28.6", "%"] in shown


@pytest.mark.parametrize("layout", ["shown", "shown/test"])
def test_a_grey_model_and_a_folder_that_is_split(
    model: MakeModel, folder: Path, capsys: pytest.CaptureFixture[str], layout: str
) -> None:
    if layout == "shown/test":
        folder.rename(folder.parent / "test")
        (folder / "train" / "cat").mkdir(parents=True)
        (folder.parent / "test").rename(folder / "test")
    assert main(["test", str(model(PETS, FISH, channels=1)), str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy_in_all"] == pytest.approx(100 * 2 / 7)


def test_a_class_learned_alone_has_nothing_to_be_told_from_in_its_task(
    model: MakeModel, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the dog is right among pets; told apart alone, eel and ray would always be."""
    alone = [("eels", {"eel": 1.0}), ("rays", {"ray": 0.5})]
    assert main(["test", str(model(PETS, *alone)), str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy_in_task"] == pytest.approx(100 * 2 / 3)
    for name in ("cat", "dog"):
        (folder / name).rename(folder.parent / name)
    assert main(["test", str(model(*alone)), str(folder)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["right", "among", "its", "task's", "classes", "–", "%"] in shown


def test_a_class_learned_twice_is_right_in_either_task(
    model: MakeModel, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here everything is a cat, among pets too; an eel is one among fish."""
    assert main(["test", str(model(PETS, FISH, ("more", {"cat": 5.0}))), str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy_in_all"] == pytest.approx(100 / 7)
    assert found["accuracy_in_task"] == pytest.approx(100 * 4 / 7)


@pytest.mark.parametrize(
    ("tasks", "shape", "where", "sentence"),
    [
        ([PETS], {}, "shown", "shown/eel is named after no class of"),
        ([], {}, "shown", "knows no class: teach it some"),
        ([PETS], {"channels": 2}, "shown", "is for pictures of 2 channels, not for grey or coloured ones"),
        ([PETS], {}, "nowhere", "cannot be read"),
        ([PETS], {}, "shown/cat", "holds pictures but no folders of classes"),
    ],
)
def test_bad_input_gets_one_sentence(
    model: MakeModel,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    tasks: list[object],
    shape: dict[str, int],
    where: str,
    sentence: str,
) -> None:
    assert main(["test", str(model(*tasks, **shape)), str(folder.parent / where)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_picture_that_cannot_be_read_is_named(
    model: MakeModel, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, broken = str(model(PETS, FISH)), folder / "dog" / "1.png"
    broken.write_bytes(b"rubbish")
    assert main(["test", path, str(folder), "--strict"]) == 2
    assert str(broken) in capsys.readouterr().err
    assert main(["test", path, str(folder), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["pictures"], found["classes"][1]["pictures"]) == (6, 1)
    assert [each["path"] for each in found["skipped"]] == [str(broken)]
    assert said.err.splitlines()[0] == "sparc: 1 picture was skipped:"
    assert said.err.splitlines()[1].startswith(f"sparc: {broken}: it cannot be decoded")
    (folder / "dog" / "0.png").write_bytes(b"rubbish")
    assert main(["test", path, str(folder)]) == 2
    assert f"no picture of the class “dog” in {folder} can be read" in capsys.readouterr().err
