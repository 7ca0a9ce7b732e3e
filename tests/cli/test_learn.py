"""`sparc learn`, `forget` and `export`, as people meet them."""

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
import torch
from PIL import Image

from sparc.cli.main import main
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import load, save
from sparc.predictor import scores

OLD = Path(__file__).parent.parent / "version-2.sparc"
QUICK = ["--width", "0.125", "--depth", "1", "--epochs", "2", "--no-flip", "--threads", "1", "--patches", "64"]


def draw(folder: Path, *classes: str, pictures: int = 8) -> Path:
    """Class folders with a few small pictures, each class of a colour of its own."""
    for label, title in enumerate(classes):
        (folder / title).mkdir(parents=True)
        for number in range(pictures):
            colour = (hash_of(title) % 200, 70 * label, 12 * number)
            Image.new("RGB", (34, 40), colour).save(folder / title / f"{number}.png")
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> Callable[..., Path]:
    return lambda name, *classes, pictures=8: draw(tmp_path / name, *classes, pictures=pictures)


@pytest.fixture(scope="module")
def taught_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taught")
    model = str(folder / "pets.sparc")
    for name, classes in {"pets": ("cat", "dog"), "birds": ("eagle", "raven")}.items():
        assert main(["learn", str(draw(folder / name, *classes)), "--model", model, *QUICK]) == 0
    return folder


@pytest.fixture
def taught(taught_once: Path, tmp_path: Path) -> Path:
    """A model that knows pets and birds, beside the folders of pictures that it was taught with."""
    shutil.copytree(taught_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "pets.sparc"


def hash_of(text: str) -> int:
    return sum(map(ord, text)) * 37


def sparc(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sparc", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, check=False)


def test_three_folders_in_three_processes(
    folders: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "pets.sparc"
    taught = [("pets", ["cat", "dog"]), ("birds", ["eagle", "raven", "鷺"]), ("fish", ["carp", "cod"])]
    for name, classes in taught:
        done = sparc("learn", folders(name, *classes), "--model", model, *QUICK)
        assert done.returncode == 0, done.stderr
        for title in ("right among this task's classes", "right among all classes", "parameters added", "bytes added"):
            assert title in done.stdout
        assert all(title in done.stdout for title in classes)
    known = load(model).info
    assert known.classes == ("cat", "dog", "eagle", "raven", "鷺", "carp", "cod")
    assert [task.name for task in known.tasks] == ["pets", "birds", "fish"]
    shown = [str(tmp_path / name) for name in ("pets", "fish")]
    assert main(["predict", str(model), *shown, "--json", "--top", "7"]) == 0
    predictions = json.loads(capsys.readouterr().out)
    assert len(predictions) == 32
    assert all({each["class"] for each in row["predictions"]} == set(known.classes) for row in predictions)


def test_a_known_class_gets_a_new_output_under_its_name(
    folders: Callable[..., Path], taught: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", str(folders("more", "cat", "cow", pictures=10)), "--model", str(taught), *QUICK]) == 0
    assert "cat: known before" in (said := capsys.readouterr().out)
    assert "few pictures" not in said
    after = load(taught)
    assert after.info.classes == ("cat", "dog", "eagle", "raven", "cow")
    assert scores(after, torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape == (2, 5)


def test_the_first_folder_sets_the_size_and_later_ones_follow(
    folders: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "pets.sparc")
    first, second = str(folders("first", "cat", "dog")), str(folders("second", "ant", "bee"))
    assert main(["learn", first, "--model", model, "--image-size", "16", *QUICK, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["cat", "dog"]
    assert load(Path(model)).info.shape.image_size == (16, 16)
    assert main(["learn", second, "--model", model, "--image-size", "32", *QUICK]) == 2
    assert "--image-size of" in capsys.readouterr().err
    assert main(["learn", second, "--model", model, *QUICK]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--width", "0.5"], "--width of PATH is 0.125 for good: leave it out"),
        (["--depth", "2"], "--depth of PATH is 1 for good"),
        (["--alpha", "0.5"], "--alpha of PATH is 1.0 for good"),
        (["--statistics", "0"], "--statistics of PATH is 256 for good"),
        (["--no-mirror"], "PATH was made without --no-mirror: leave it out"),
        (["--no-weigh"], "PATH was made without --no-weigh: leave it out"),
        (["--inherit", "nothing"], "--inherit of PATH is newest for good"),
        (["--seed", "3"], "--seed of PATH is 0 for good"),
    ],
)
def test_settings_are_settled_when_a_model_is_made(
    taught: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """Also those that are asked for as they are by default."""
    before = taught.read_bytes()
    folder = str(taught.with_name("pets"))
    assert main(["learn", folder, "--model", str(taught), "--name", "again", *arguments]) == 2
    assert sentence.replace("PATH", str(taught)) in capsys.readouterr().err
    assert taught.read_bytes() == before


def test_every_setting_of_the_method_is_a_flag(
    folders: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = {"width": 0.0625, "depth": 1, "shared": 0.25, "alpha": 0.5, "kappa": 3.0, "statistics": 5, "patches": 6}
    wanted = ChorusSettings(**numbers, inherit="nothing", mirror=False, weigh=False)
    flags = [text for name, value in numbers.items() for text in (f"--{name}", str(value))]
    folder, model = folders("pets", "cat", "dog", pictures=3), tmp_path / "m.sparc"
    flags += ["--inherit", "nothing", "--no-mirror", "--no-weigh", "--epochs", "1"]
    for name in ("first", "second"):
        assert main(["learn", str(folder), "--model", str(model), "--name", name, *flags]) == 0
    assert load(model).info.settings == wanted
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    assert "Of a new model" in (text := capsys.readouterr().out)
    assert all(f"--{name} " in text for name in (*numbers, "inherit", "no-mirror", "no-weigh"))


def test_mirror_images_are_settled_when_a_model_is_made(
    model: Callable[..., Path], folders: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(model(("pets", {"cat": 0.0, "dog": 1.0})))
    assert main(["learn", str(folders("two", "c", "d")), "--model", path, "--no-flip"]) == 2
    assert "was made without --no-flip" in capsys.readouterr().err


def test_one_class_in_a_folder_is_learned_and_said(
    folders: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", str(folders("one", "cat")), "--model", str(tmp_path / "m.sparc"), *QUICK]) == 0
    assert "one: learned in" in (said := capsys.readouterr().out)
    assert "by statistics alone, without training" in said
    assert "cat: few pictures; about 20 of a class are a good start" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--quick", "--thorough"], "--quick and --thorough say opposite things"),
        (["--quick", "--epochs", "3"], "--quick and --epochs each say how long"),
        (["--epochs", "0"], "--epochs 0 learns nothing"),
        (["--validation", "1"], "--validation 1 must lie between"),
        (["--width", "0"], "--width 0 gives no filters"),
        (["--shared", "1"], "--shared 1 is not a share"),
        (["--image-size", "4"], "4"),
        (["--threads", "0"], "--threads 0"),
        (["--seed", "-1"], "--seed -1 must not be negative"),
        (["--name", "  "], "is no name"),
        (["--name", "a\nb"], "is no name"),
        (["--epochs", "nan"], "--epochs takes a whole number, and not “nan”"),
    ],
)
def test_flags_that_make_no_sense(
    folders: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    folder = folders("pets", "cat", "dog", pictures=2)
    assert main(["learn", str(folder), "--model", str(tmp_path / "m.sparc"), *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["pets"]


def test_folders_that_cannot_be_learned(
    folders: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "m.sparc")
    empty = folders("empty", "cat", "dog")
    (empty / "nothing").mkdir()
    for folder, sentence in ((empty, "nothing"), (tmp_path / "none", "none")):
        assert main(["learn", str(folder), "--model", model, *QUICK]) == 2
        assert sentence in capsys.readouterr().err
        assert not Path(model).exists()
    assert main(["learn", str(folders("ok", "a", "b")), "--model", str(tmp_path / "no" / "m.sparc")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_model_that_is_none_is_left_alone(
    folders: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.sparc").write_bytes(b"something of mine")
    assert main(["learn", str(folders("pets", "cat", "dog")), "--model", str(tmp_path / "m.sparc"), *QUICK]) == 2
    assert "is not a model" in capsys.readouterr().err
    assert (tmp_path / "m.sparc").read_bytes() == b"something of mine"


def test_a_kill_while_learning_leaves_the_old_model(folders: Callable[..., Path], taught: Path) -> None:
    before = taught.read_bytes()
    more = folders("more", "cow", "ant", pictures=40)
    command = [sys.executable, "-m", "sparc", "learn", str(more), "--model", str(taught), "--epochs", "500"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        lock = taught.with_name(".pets.sparc.lock")
        while not lock.exists():
            time.sleep(0.05)
        refused = sparc("learn", folders("third", "bee", "fly"), "--model", taught, *QUICK)
        assert refused.returncode == 2
        assert "another process is at work" in refused.stderr
        process.send_signal(signal.SIGKILL)
    assert taught.read_bytes() == before
    assert main(["learn", str(taught.with_name("third")), "--model", str(taught), *QUICK]) == 0
    assert load(taught).info.classes == ("cat", "dog", "eagle", "raven", "bee", "fly")


def test_forgetting_says_what_remains(taught: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", str(taught), "cat"]) == 0
    assert "cat of pets: the outputs are gone; the working memory" in capsys.readouterr().out
    assert load(taught).info.classes == ("dog", "eagle", "raven")
    assert main(["forget", str(taught), "--task", "birds"]) == 0
    out = capsys.readouterr().out
    assert "its working memory and head" in out
    assert "its part in the covariances of older working memories stays" in out
    assert "nothing else remains" not in out
    assert "The means of what is gone are taken out of all statistics; the covariances" in out
    assert load(taught).info.classes == ("dog",)
    assert main(["forget", str(taught), "dog"]) == 0
    out = capsys.readouterr().out
    assert "nothing else remains" in out
    assert "No class is left" in out
    assert load(taught).info.tasks == ()


def test_what_others_had_from_a_forgotten_task_is_told(taught: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", str(taught), "--task", "pets"]) == 0
    out = capsys.readouterr().out
    assert "100.00% of the semantic memory, which the other tasks use, stays as it was trained with it" in out
    assert "birds learned on from its working memory" in out


def test_patches_are_of_the_first_task_that_was_learned_and_not_of_the_first_that_is_left(
    taught: Path, folders: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", str(folders("fish", "eel", "cod")), "--model", str(taught), "--epochs", "1"]) == 0
    for task in ("pets", "birds"):
        capsys.readouterr()
        assert main(["forget", str(taught), "--task", task]) == 0
        out = capsys.readouterr().out
        assert "so do the averages of patches of the first pictures that the model learned from" in out
        assert "its pictures" not in out


def test_what_was_mixed_into_the_semantic_memory_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    save(load(OLD), tmp_path / "old.sparc")
    assert main(["forget", str(tmp_path / "old.sparc"), "--task", "task 1"]) == 0
    out = capsys.readouterr().out
    assert "10.00% of the semantic memory, which the other tasks use, stays as it was mixed in" in out
    assert "covariances" not in out, "there are none"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cot"], "unknown class “cot”: did you mean cat"),
        (["--task", "bird"], "unknown task “bird”: did you mean birds"),
        ([], "say what to forget"),
        (["cat", "--task", "pets"], "say what to forget"),
    ],
)
def test_what_cannot_be_forgotten(
    taught: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    before = taught.read_bytes()
    capsys.readouterr()
    assert main(["forget", str(taught), *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert taught.read_bytes() == before


def test_export_is_checked_and_told(taught: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = taught.with_name("pets.onnx")
    for pictures in ([], ["--pictures", str(taught.parent / "pets")]):
        assert main(["export", str(taught), str(out), *pictures]) == 0
        said = capsys.readouterr().out
        assert "milliseconds a picture" in said
        assert "pictures compared" in said
    assert out.stat().st_size > 1000
    before = taught.read_bytes()
    link = taught.with_name("link.onnx")
    link.symlink_to(taught)
    for place, sentence in (
        (taught.parent / "none" / "x.onnx", "there is no folder"),
        (taught, "ends in .onnx"),
        (link, "is the model itself"),
    ):
        assert main(["export", str(taught), str(place)]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["export", str(taught), str(out), "--pictures", str(taught)]) == 2
    assert taught.read_bytes() == before


def test_pictures_as_they_lie_on_peoples_disks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folders: Callable[..., Path]
) -> None:
    """Every odd kind that can be read is, nested folders and all; what cannot be is refused by its path, if asked."""
    folder = folders("odd", "котик", "dog 🐶", pictures=3)
    cats = folder / "котик"
    base = Image.new("RGB", (40, 50), (200, 30, 60))
    base.save(cats / "really-a-jpeg.png", "JPEG")
    base.convert("CMYK").save(cats / "cmyk.jpg")
    base.convert("P").save(cats / "palette.gif")
    base.convert("RGBA").save(cats / "alpha.png")
    base.convert("LA").save(cats / "grey-alpha.png")
    Image.new("I;16", (40, 50), 40_000).save(cats / "sixteen-bit.png")
    Image.new("RGB", (1, 80), (9, 9, 9)).save(cats / "thin.png")
    exif = base.getexif()
    exif[274] = 6
    base.save(cats / "turned.jpg", exif=exif)
    (cats / "nested" / "deeper").mkdir(parents=True)
    base.save(cats / "nested" / "deeper" / "in.webp")
    (cats / "notes.txt").write_text("not a picture")
    model = tmp_path / "odd.sparc"
    assert main(["learn", str(folder), "--model", str(model), *QUICK]) == 0
    info = load(model).info
    assert dict(zip(info.tasks[0].classes, info.tasks[0].pictures, strict=True)) == {"dog 🐶": 3, "котик": 12}
    capsys.readouterr()

    bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (100_000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0" + bytes(4)
    for name, content in (("zero.png", b""), ("text.jpg", b"hello"), ("bomb.png", bomb), ("cut.png", bomb[:20])):
        (cats / name).write_bytes(content)
        before = model.read_bytes()
        assert main(["learn", str(folder), "--model", str(model), "--name", "again", "--strict", *QUICK]) == 2
        assert str(cats / name) in capsys.readouterr().err
        assert model.read_bytes() == before
        (cats / name).unlink()
