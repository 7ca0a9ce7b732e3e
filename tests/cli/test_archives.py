"""`sparc learn` and `sparc test` on a zip or a tar, as on the folder that was packed."""

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparc.classifier import ContinualClassifier
from sparc.cli.main import main
from sparc.data.sources import Folder
from sparc.model_file import load

KINDS = ["zip", "ZIP", "tar", "tar.gz", "tgz"]
MakeFolder = Callable[..., Path]
QUICK = ["--width", "0.125", "--depth", "1", "--epochs", "1", "--patches", "64"]


def pack(path: Path, files: Mapping[str, bytes]) -> Path:
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def contents(folder: Path, below: str = "") -> dict[str, bytes]:
    """A folder's files in no order that anybody asks for."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    shuffled = [paths[index] for index in np.random.default_rng(0).permutation(len(paths))]
    return {below + path.relative_to(folder).as_posix(): path.read_bytes() for path in shuffled}


def picture(colour: int = 0) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (20, 20), (colour, 0, 0)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("top", ["", "my pictures/"])
def test_an_archive_is_as_the_folder_that_was_packed(
    picture_folder: MakeFolder, tmp_path: Path, kind: str, top: str
) -> None:
    folder = picture_folder(side=70)
    files = {"__MACOSX/._x.png": b"", f"{top}notes.txt": b"", **contents(folder, top)}
    for part, packed in zip(Folder(folder).load(), Folder(pack(tmp_path / f"p.{kind}", files)).load(), strict=True):
        assert part.fingerprint() == packed.fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_learn_and_test(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    folder, model = picture_folder(classes=2, per_class=4), tmp_path / "m.sparc"
    files = contents(folder, "pictures/")
    files["pictures/class-0/2.png"] = b"rubbish"
    archive = pack(tmp_path / f"Pets 2.0.{kind}", files)
    assert main(["learn", str(archive), "--model", str(model), *QUICK, "--json"]) == 0
    learned = json.loads(capsys.readouterr().out)
    assert learned["name"] == "Pets 2.0"
    assert learned["classes"] == ["class-0", "class-1"]
    assert [each["path"] for each in learned["skipped"]] == [f"{archive}:pictures/class-0/2.png"]
    assert main(["test", str(model), str(archive), "--json"]) == 0
    packed = json.loads(capsys.readouterr().out)
    (folder / "class-0" / "2.png").unlink()
    assert main(["test", str(model), str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**packed, "skipped": []}
    assert main(["test", str(model), str(archive), "--strict"]) == 2
    assert f"{archive}:pictures/class-0/2.png cannot be decoded" in capsys.readouterr().err


def test_from_python_and_with_parts(picture_folder: MakeFolder, tmp_path: Path) -> None:
    folder = picture_folder(classes=2, per_class=3)
    files = {**contents(folder, "set/train/"), **contents(folder, "set/test/")}
    classifier = ContinualClassifier(width=1 / 8, depth=1, epochs=1).learn(pack(tmp_path / "set.zip", files))
    assert classifier.classes_.tolist() == ["class-0", "class-1"]
    (task,) = classifier.model_.info.tasks
    assert (task.pictures, task.held_out) == ((3, 3), 6)


def test_one_class_alone_is_no_folder_on_top(tmp_path: Path) -> None:
    archive = pack(tmp_path / "cats.zip", {f"cat/{number}.png": picture(number) for number in range(4)})
    assert main(["learn", str(archive), "--model", str(tmp_path / "m.sparc"), *QUICK]) == 0
    assert load(tmp_path / "m.sparc").info.classes == ("cat",)


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "holds neither pictures nor folders of classes"),
        ({"cat.png": picture(), "dog.png": picture()}, "holds pictures but no folders of classes"),
        ({"cat/notes.txt": b""}, "holds folders but no pictures in them"),
        ({"cat/1.png": picture(), "dog/notes.txt": b""}, "has no picture of the class “dog”"),
        ({"cat/1.png": b"", "dog/1.png": picture()}, "no picture of the class “cat” in ARCHIVE can be read"),
        ({"/cat/1.png": picture(), "/dog/1.png": picture()}, "holds a file “/cat/1.png”, which would lie outside"),
        ({"cat/1.png": picture(), "../dog/1.png": picture()}, "holds a file “../dog/1.png”, which would lie outside"),
        ({"cat/1.png": picture(), "dog/../../1.txt": b""}, "“dog/../../1.txt”, which would lie outside of it"),
        ({"cat/1.png": picture(), "C:\\dog\\1.png": picture()}, "which would lie outside of it: pack it anew"),
    ],
)
def test_what_cannot_be_learned_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, files: dict[str, bytes], sentence: str
) -> None:
    archive = pack(tmp_path / f"a.{kind}", files)
    assert main(["learn", str(archive), "--model", str(tmp_path / "m.sparc"), *QUICK]) == 2
    said = capsys.readouterr()
    assert sentence.replace("ARCHIVE", str(archive)) in said.err
    assert str(archive) in said.err
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert [entry.name for entry in tmp_path.iterdir()] == [archive.name]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_one_that_unpacks_into_too_much_is_refused_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    archive = pack(tmp_path / f"bomb.{kind}", {f"cat/{number}.png": bytes(300_000) for number in range(4)})
    assert archive.stat().st_size < 10_000
    learn = ["learn", str(archive), "--model", str(tmp_path / "m.sparc"), *QUICK]
    monkeypatch.setattr("sparc.data.archive.LARGEST", 200_000)
    assert main(learn) == 2
    assert "no picture in" in (said := capsys.readouterr().err)
    assert "it is larger than" in said
    monkeypatch.setattr("sparc.data.archive.TOTAL", 1_000_000)
    assert main(learn) == 2
    assert "unpacks to more than" in (said := capsys.readouterr().err)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_one_that_was_cut_off_or_is_none(
    picture_folder: MakeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    archive = pack(tmp_path / f"a.{kind}", contents(picture_folder(per_class=30)))
    for content in (archive.read_bytes()[: archive.stat().st_size // 2], b"not packed at all", b""):
        archive.write_bytes(content)
        assert main(["learn", str(archive), "--model", str(tmp_path / "m.sparc"), *QUICK]) == 2
        said = capsys.readouterr().err
        assert f"{archive} cannot be read" in said
        assert len(said.splitlines()) == 1


def test_a_file_that_is_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cat.png").write_bytes(picture())
    for name in ("cat.png", "none.zip"):
        assert main(["learn", str(tmp_path / name), "--model", str(tmp_path / "m.sparc"), *QUICK]) == 2
        assert "name a folder of class folders, or a zip or tar of them" in capsys.readouterr().err


def test_a_name_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    for kind in ("zip", "tar"):
        archive = tmp_path / f"a.{kind}"
        files = {f"{name}/{number}.png": picture(number) for name in ("cat", "dog") for number in range(3)}
        pack(archive, files)
        if kind == "zip":
            with zipfile.ZipFile(archive, "a") as again, pytest.warns(UserWarning, match="Duplicate"):
                again.writestr("cat/0.png", picture())
        else:
            with tarfile.open(archive, "a") as tar:
                member = tarfile.TarInfo("cat/0.png")
                member.size = len(picture())
                tar.addfile(member, io.BytesIO(picture()))
        assert sum(map(len, Folder(archive).load())) == 6
