"""Pictures that cannot be read, among those that `sparc learn` and `ContinualClassifier` are given."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.data.sources import Folder
from sparc.errors import InputError
from sparc.model_file import load

MakeFolder = Callable[..., Path]
QUICK = ["--width", "0.125", "--depth", "1", "--epochs", "1", "--patches", "64"]


def damage(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.write_bytes(b"rubbish")
    return paths


def test_they_are_named_and_the_others_learned(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = picture_folder(classes=2, per_class=20), tmp_path / "m.sparc"
    broken = damage(folder, *(f"class-1/{number}.png" for number in range(13)))
    assert main(["learn", str(folder), "--model", str(model), *QUICK, "--json"]) == 0
    said = capsys.readouterr()
    learned = json.loads(said.out)
    assert learned["pictures"][0] == 20
    assert sum(learned["pictures"]) == 27, "those held out among them, in the end"
    assert {each["path"] for each in learned["skipped"]} == set(map(str, broken))
    assert all(each["reason"].startswith("it cannot be decoded (") for each in learned["skipped"])
    lines = [line.removeprefix("sparc: ") for line in said.err.splitlines()]
    assert lines[0] == "13 pictures were skipped:"
    assert lines[1:11] == [f"{each['path']}: {each['reason']}" for each in learned["skipped"][:10]]
    assert lines[11:] == ["and 3 more"]
    assert load(model).info.tasks[0].pictures == tuple(learned["pictures"])


def test_a_photograph_of_a_kind_that_is_not_read_is_told_of(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = picture_folder(classes=2, per_class=4), tmp_path / "m.sparc"
    (foreign,) = damage(folder, "class-1/IMG_0001.HEIC")
    assert main(["learn", str(folder), "--model", str(model), *QUICK]) == 0
    said = "it is of a kind that is not read here: make a JPEG or a PNG of it"
    assert f"sparc: {foreign}: {said}\n" in capsys.readouterr().err
    assert main(["predict", str(model), str(folder / "class-1"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each for each in found if "error" in each] == [{"path": str(foreign), "error": said}]


def test_strictly_the_first_is_an_error(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = picture_folder(classes=2), tmp_path / "m.sparc"
    (broken,) = damage(folder, "class-0/3.png")
    assert main(["learn", str(folder), "--model", str(model), *QUICK, "--strict"]) == 2
    assert capsys.readouterr().err.startswith(f"sparc: {broken} cannot be decoded")
    assert not model.exists()


def test_a_class_that_has_none_left_is_an_error(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = picture_folder(classes=2, per_class=3), tmp_path / "m.sparc"
    for label, sentence in (
        (1, f"no picture of the class “class-1” in {folder} can be read, {folder / 'class-1'}"),
        (0, f"no picture in {folder} can be read, {folder / 'class-0'}"),
    ):
        damage(folder, *(f"class-{label}/{number}.png" for number in range(3)))
        assert main(["learn", str(folder), "--model", str(model), *QUICK]) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert "for one: it cannot be decoded (" in said
        assert len(said.splitlines()) == 1
        assert not model.exists()


def test_what_is_held_out_stays_so_and_no_pixel_is_mixed_up(picture_folder: MakeFolder) -> None:
    folder = picture_folder(classes=3, per_class=6)
    before = Folder(folder).load()
    damage(folder, "class-0/0.png", "class-1/4.png", "class-1/5.png", "class-2/5.png")
    skipped: list[object] = []
    after = Folder(folder, skipped=skipped).load()
    assert len(skipped) == 4
    assert sum(map(len, after)) == 14
    gone = {(0, 0), (1, 160), (1, 200), (2, 200)}
    for part, now in zip(before, after, strict=True):
        shown, left = (
            list(zip(each.labels.tolist(), each.images[:, 2, 0, 0].tolist(), strict=True)) for each in (part, now)
        )
        assert left == [each for each in shown if each not in gone]
        assert now.images[:, 0, 5, 5].tolist() == [60 * label for label in now.labels.tolist()]


def test_a_file_that_may_not_be_read_is_one_of_them(
    picture_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = picture_folder(classes=2)
    (folder / "class-0" / "1.png").unlink()
    (folder / "class-0" / "1.png").mkdir()
    (folder / "class-0" / "2.png").write_bytes(bytes(5000))
    monkeypatch.setattr("sparc.data.archive.LARGEST", 4000)
    skipped: list[object] = []
    splits = Folder(folder, 32, skipped=skipped).load()
    assert sum(map(len, splits)) == 10
    assert "it is larger than" in str(skipped)


def test_from_python(picture_folder: MakeFolder) -> None:
    folder = picture_folder(classes=2)
    (broken,) = damage(folder, "class-0/3.png")
    classifier = ContinualClassifier(width=1 / 8, depth=1, epochs=1)
    with pytest.warns(UserWarning, match="1 picture was skipped:") as warned:
        classifier.learn(folder)
    assert str(broken) in str(warned[0].message)
    assert warned[0].filename == __file__
    assert classifier.classes_.tolist() == ["class-0", "class-1"]
    with pytest.raises(InputError, match=r"3\.png cannot be decoded"):
        classifier.set_params(strict=True).learn(folder)


def test_a_picture_beside_the_class_folders_is_named_too(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = picture_folder(classes=2, per_class=4), tmp_path / "m.sparc"
    stray = folder / "stray.png"
    stray.write_bytes((folder / "class-0" / "0.png").read_bytes())
    said = (
        f"sparc: 1 picture was skipped:\nsparc: {stray}: it lies beside the folders of classes, and in none of them\n"
    )
    assert main(["learn", str(folder), "--model", str(model), *QUICK, "--json"]) == 0
    learned = capsys.readouterr()
    assert learned.err.startswith(said)
    assert json.loads(learned.out)["pictures"] == [4, 4]
    assert main(["test", str(model), str(folder)]) == 0
    assert capsys.readouterr().err == said
    for command in (
        ["learn", str(folder), "--model", str(tmp_path / "other.sparc"), *QUICK],
        ["test", str(model), str(folder)],
    ):
        assert main([*command, "--strict"]) == 2
        assert capsys.readouterr().err.startswith(f"sparc: {stray} lies beside the folders of classes")


def test_classes_that_hold_folders_of_pictures_are_told_of(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    above, model = (
        picture_folder(classes=2, per_class=4).rename(tmp_path / "birds").parent / "above",
        tmp_path / "m.sparc",
    )
    above.mkdir()
    (tmp_path / "birds").rename(above / "birds")
    (above / "plain").mkdir()
    (above / "birds" / "class-0" / "0.png").rename(above / "plain" / "0.png")
    assert main(["learn", str(above), "--model", str(model), *QUICK]) == 0
    assert "sparc: birds: pictures lie in folders inside, and all of them are one class\n" in capsys.readouterr().err
    assert load(model).info.classes == ("birds", "plain")
