"""`sparc demo`: pictures drawn on the spot."""

import shlex
from pathlib import Path

import pytest
from PIL import Image

from sparc.cli.demo import main
from sparc.data import demo_images
from sparc.data.sources import Folder
from sparc.errors import InputError

CLASSES = {
    "shapes": ["circle", "square", "triangle"],
    "marks": ["cross", "ring", "star"],
    "patterns": ["checks", "dots", "stripes"],
}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.png")}


def test_every_task_is_a_folder_that_can_be_learned(tmp_path: Path) -> None:
    assert main([str(tmp_path / "demo"), "--pictures", "5"]) == 0
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == ["marks", "new", "patterns", "shapes"]
    for task, classes in CLASSES.items():
        train, test = Folder(tmp_path / "demo" / task).load()
        assert list(train.class_names) == classes
        assert [a + b for a, b in zip(train.counts(), test.counts(), strict=True)] == [5, 5, 5]
    for path in (tmp_path / "demo" / "new").iterdir():
        assert not any(kind in path.name for kinds in CLASSES.values() for kind in kinds)
    pictures = contents(tmp_path / "demo")
    assert len(set(pictures.values())) == len(pictures) == 9 * 5 + 18, "no picture is there twice"
    for path in (tmp_path / "demo").rglob("*.png"):
        with Image.open(path) as image:
            assert (image.size, image.mode, image.format) == ((48, 48), "RGB", "PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["demo"], "nothing temporary is left"


def test_same_seed_same_pictures_and_more_of_them_change_none(tmp_path: Path) -> None:
    for name, flags in {"a": ["2"], "b": ["2"], "c": ["3"], "d": ["2", "--seed", "1"]}.items():
        assert main([str(tmp_path / name), "--pictures", *flags]) == 0
    first = contents(tmp_path / "a")
    assert first == contents(tmp_path / "b")
    assert first.items() < contents(tmp_path / "c").items()
    assert not set(first.values()) & set(contents(tmp_path / "d").values())


def test_it_says_what_to_try_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my pictures é"
    assert main([str(folder), "--pictures", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("  sparc learn ")]
    assert commands == [
        ["sparc", "learn", str(folder / task), "--model", str(folder / "demo.sparc")] for task in CLASSES
    ]
    assert f"sparc predict '{folder}/demo.sparc' '{folder}/new'" in lines[-1]


def test_an_empty_folder_is_filled_and_missing_ones_above_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert main([".", "--pictures", "1"]) == 0
    assert main(["a/b/c", "--pictures", "1"]) == 0
    assert len(contents(Path("shapes"))) == len(contents(Path("a/b/c/shapes"))) == 3


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    (tmp_path / "file").write_text("keep me too")
    for name in ("mine", "file"):
        with pytest.raises(InputError, match=f"{name} is there already"):
            main([str(tmp_path / name)])
    with pytest.raises(InputError, match="cannot be written"):
        main([str(tmp_path / "file" / "demo")])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "mine", "notes.txt"]


def test_nothing_is_left_when_drawing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drawn_so_far = demo_images.picture, []

    def stops(kind: str, generator: object) -> Image.Image:
        drawn_so_far.append(kind)
        if len(drawn_so_far) > 10:
            raise KeyboardInterrupt
        return draw(kind, generator)  # type: ignore[arg-type]

    monkeypatch.setattr(demo_images, "picture", stops)
    with pytest.raises(KeyboardInterrupt):
        main([str(tmp_path / "demo")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--pictures", "0"], "--pictures 0 must lie between 1 and"),
        (["--pictures", "99999999"], "--pictures 99999999 must lie between 1 and"),
        (["--seed", "-1"], "--seed -1 must not be negative"),
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path: Path, flags: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        main([str(tmp_path / "demo"), *flags])
    assert list(tmp_path.iterdir()) == []
