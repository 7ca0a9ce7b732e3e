"""`sparc predict`: names for pictures, and a line for each that cannot be read."""

import csv
import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from sparc.cli.predict import CHUNK, main
from sparc.data.imageset import ImageSet, Splits
from sparc.errors import InputError
from sparc.learner import learn, new_model
from sparc.methods.sparc.chorus import Chorus
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import save

MakeModel = Callable[..., Path]
PETS = ("pets", {"cat": 0.0, "dog": 2.0})
FISH = ("fish", {"eel": 1.0, "cod": -1.0, "ray": 0.5})


def picture(path: Path, colour: str = "red", side: int = 20) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), colour).save(path)
    return path


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> list[dict[str, Any]]:
    assert main([*map(str, arguments), "--json"]) == code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_a_taught_model_names_what_it_sees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colours = torch.tensor([[220, 30, 30], [30, 30, 220]]).repeat_interleave(16, 0)
    noise = torch.randint(0, 30, (32, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    images = (colours[:, :, None, None] + noise).to(torch.uint8)
    pictures = ImageSet(images, torch.arange(2).repeat_interleave(16), ("red", "blue"))
    blank = new_model(pictures, ChorusSettings(width=0.125), seed=0)
    recipe = replace(Chorus.recipe, epochs=10)
    save(learn(blank, Splits(pictures, pictures), "colours", recipe), tmp_path / "m.sparc")
    found = as_json(capsys, tmp_path / "m.sparc", picture(tmp_path / "b.png", "blue"), picture(tmp_path / "r.png"))
    assert [each["predictions"][0]["class"] for each in found] == ["blue", "red"]


def test_probabilities_are_the_softmax_over_every_class(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = as_json(capsys, model(PETS, FISH), picture(tmp_path / "a.png"), "--top", "99")
    assert [each["class"] for each in found["predictions"]] == ["dog", "eel", "ray", "cat", "cod"]
    expected = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0]).softmax(0).tolist()
    assert [each["probability"] for each in found["predictions"]] == pytest.approx(expected)


def test_a_class_learned_twice_is_named_once_with_its_better_output(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(PETS, ("more", {"cat": 5.0}))
    (found,) = as_json(capsys, path, picture(tmp_path / "a.png"), "--top", "9")
    assert [each["class"] for each in found["predictions"]] == ["cat", "dog"]


def test_within_a_task_only_its_classes_count(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = as_json(capsys, model(PETS, FISH), picture(tmp_path / "a.png"), "--task", "fish", "--top", "4")
    assert [each["class"] for each in found["predictions"]] == ["eel", "ray", "cod"]
    assert sum(each["probability"] for each in found["predictions"]) == pytest.approx(1)


def test_a_folder_is_searched_in_order_and_hidden_files_are_passed_over(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new"
    for name in ("b.png", "a/deep/2.jpg", "a/1.png", ".hidden.png", ".cache/x.png"):
        picture(folder / name)
    (folder / "notes.txt").write_text("not a picture, and not called one")
    found = as_json(capsys, model(PETS), folder)
    assert [each["path"] for each in found] == [str(folder / name) for name in ("a/1.png", "a/deep/2.jpg", "b.png")]


def test_a_file_that_is_named_is_tried_whatever_it_is_called(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = picture(tmp_path / "a.png").rename(tmp_path / ".picture")
    (found,) = as_json(capsys, model(PETS), plain)
    assert found["predictions"][0]["class"] == "dog"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Good pictures with bad ones among them, more than one chunk."""
    folder = tmp_path / "mixed"
    for number in range(CHUNK + 6):
        picture(folder / f"{number:03}.png", side=8)
    (folder / "003.png").write_bytes(b"not a picture")
    whole = (folder / "066.png").read_bytes()
    (folder / "066.png").write_bytes(whole[: len(whole) // 2])
    (folder / "067.png").write_bytes(b"")
    return folder


BROKEN = ("003.png", "066.png", "067.png")


def test_pictures_that_cannot_be_read_are_reported_and_the_rest_goes_on(
    mixed: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, model(PETS), mixed, mixed / "nowhere.png", code=1)
    assert [each["path"] for each in found] == [
        *(str(path) for path in sorted(mixed.iterdir())),
        f"{mixed}/nowhere.png",
    ]
    for each in found:
        if Path(each["path"]).name in (*BROKEN, "nowhere.png"):
            assert each.keys() == {"path", "error"}
            assert not each["error"].endswith(".")
        else:
            assert each["predictions"][0]["class"] == "dog"
    assert found[-1]["error"].startswith("there is no such file")


def test_csv_has_a_line_a_rank_and_a_line_an_error(
    mixed: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(model(PETS)), str(mixed), "--csv", "--top", "2"]) == 1
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["path", "rank", "class", "probability", "none_of_these", "error"]
    good = [row for row in rows if not row["error"]]
    assert [(row["rank"], row["class"]) for row in good] == [("1", "dog"), ("2", "cat")] * (CHUNK + 3)
    assert float(good[0]["probability"]) + float(good[1]["probability"]) == pytest.approx(1)
    assert [Path(row["path"]).name for row in rows if row["error"]] == list(BROKEN)


def test_the_table_shows_names_as_they_are_and_nothing_else_is_printed(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    picture(Path("[red]Ünï 猫.png"))
    Path("bad.png").write_text("no")
    before = sorted(tmp_path.rglob("*"))
    path = model(("x", {"[bold]kočka": 3.0, "a\nb\x1b[31m": 1.0}))
    assert main([path.name, "[red]Ünï 猫.png", "bad.png", "--top", "2", "--always"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    for text in (
        "[red]Ünï 猫.png",
        "[bold]kočka",
        r"a\nb\x1b[31m",
        "88.1%",
        "11.9%",
        "bad.png",
        "it cannot be decoded",
    ):
        assert text in captured.out
    assert "\x1b" not in captured.out
    assert sorted(tmp_path.rglob("*")) == sorted([*before, path]), "nothing was written"


def test_names_that_are_not_utf_8_can_be_printed(
    tmp_path: Path, model: MakeModel, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    try:
        odd = picture(tmp_path / "a.png").rename(tmp_path / "\udcff.png")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    for flags in ([], ["--csv"], ["--json"]):
        assert main([str(model(PETS)), str(odd), *flags]) == 0
        assert b"dog" in capsysbinary.readouterr().out


def test_a_grey_model_sees_pictures_in_grey(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = as_json(capsys, model(PETS, channels=1), picture(tmp_path / "a.png"))
    assert found["predictions"][0]["class"] == "dog"


@pytest.mark.parametrize(
    ("tasks", "shape", "flags", "sentence"),
    [
        ([], {}, [], "knows no class: teach it some with sparc learn"),
        ([PETS], {"image_size": (8, 16)}, [], "16 × 8 pixels, not for squares"),
        ([PETS], {"channels": 4}, [], "pictures of 4 channels"),
        ([PETS, FISH], {}, ["--task", "fihs"], "unknown task “fihs”: did you mean fish?"),
        ([PETS], {}, ["--top", "0"], "--top 0 names nothing"),
        ([PETS], {}, ["--json", "--csv"], "--json and --csv"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    tmp_path: Path, model: MakeModel, tasks: list[Any], shape: dict[str, Any], flags: list[str], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        main([str(model(*tasks, **shape)), str(picture(tmp_path / "a.png")), *flags])
    assert sentence in str(refused.value)


def test_no_path_and_a_folder_without_pictures_are_refused(tmp_path: Path, model: MakeModel) -> None:
    with pytest.raises(InputError, match="there is nothing to look at"):
        main([str(model(PETS))])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty holds no pictures"):
        main([str(model(PETS)), str(tmp_path / "empty")])


def test_a_model_that_is_missing_or_cut_off_is_refused(tmp_path: Path, model: MakeModel) -> None:
    seen = str(picture(tmp_path / "a.png"))
    with pytest.raises(InputError, match="there is no model"):
        main([str(tmp_path / "none.sparc"), seen])
    path = model(PETS)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="was cut off"):
        main([str(path), seen])


def test_what_is_no_file_is_a_line_of_its_own(
    tmp_path: Path, model: MakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    path = model(PETS)
    assert main([str(path), str(tmp_path / "pipe.png"), "/dev/zero", "--json"]) == 1
    assert all("neither a file nor a folder" in row["error"] for row in json.loads(capsys.readouterr().out))
