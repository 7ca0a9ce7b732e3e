"""Learning that is stopped, fails or is killed leaves the model as it was, and no picture anywhere."""

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparc.cli.main import main
from sparc.files import is_locked, locked
from sparc.learner import Wishes
from sparc.serve.learning import Learning
from sparc.serve.refused import RefusedError
from sparc.serve.served import Served
from sparc.serve.worker import Job
from sparc.starts import USUAL
from tests.serve.conftest import Site, form_of


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the folder for temporary files, which the worker has from us."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


def left(path: Path) -> list[str]:
    """All that lies beside a model, and in the folder for temporary files, where torch has one of its own."""
    return sorted(entry.name for entry in path.parent.rglob("*") if not entry.name.startswith("torchinductor"))


def test_stopped_in_the_middle(own: Path, pictures: Path, serve: Callable[..., Site]) -> None:
    site, before = serve(own), own.read_bytes()
    content = (pictures / "marks" / "ring" / "0.png").read_bytes()
    begun = site.learn(pictures / "shapes", epochs="10000")
    assert (begun.status_code, begun.json()["task"]) == (202, "task 3")
    progress = site.until("learning")
    assert site.post("/forget", json={"classes": ["round"]}).status_code == 409
    while progress["epoch"] is None or progress["accuracy"] is None or progress["seconds_left"] is None:
        assert site.post("/predict", content=content).json()["pictures"][0]["predictions"][0]["class"] == "ring"
        time.sleep(0.1)  # the worker is of lower priority than we are
        progress = site.until("learning")
    assert 0 < progress["share"] < 1
    assert progress["loss"] > 0
    assert 0 <= progress["accuracy"] <= 100
    assert is_locked(own)
    assert site.post("/stop").json()["stopping"]
    ended = site.until("stopped")
    assert ended["message"] == "Stopped: the model is as it was before. The 60 pictures that were sent are deleted."
    assert own.read_bytes() == before
    assert not is_locked(own)
    assert left(own) == ["demo.sparc", "temporary"]
    assert not multiprocessing.active_children()
    idle = site.post("/stop")
    assert (idle.status_code, idle.json()["error"]) == (409, "nothing is being learned: there is nothing to stop")


def test_stopped_before_it_has_begun(own: Path, pictures: Path, serve: Callable[..., Site]) -> None:
    site, before = serve(own), own.read_bytes()
    site.learn(pictures / "shapes", task="again", epochs="10000")
    site.post("/stop")
    site.until("stopped")
    assert own.read_bytes() == before


def test_killed(own: Path, pictures: Path, serve: Callable[..., Site]) -> None:
    site, before = serve(own), own.read_bytes()
    site.learn(pictures / "shapes", task="again", epochs="10000")
    site.until("learning")
    (own.parent / f".{own.name}.0123abcd.part").write_bytes(b"half of a model")
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) > os.getpriority(os.PRIO_PROCESS, 0)
    os.kill(worker.pid, signal.SIGKILL)
    ended = site.until("died")
    assert ended["message"] == (
        "The process that learned was killed (signal 9), perhaps for want of memory: the model is as it was before. "
        "The 60 pictures that were sent are deleted."
    )
    assert own.read_bytes() == before
    assert left(own) == ["demo.sparc", "temporary"]
    content = (pictures / "marks" / "ring" / "0.png").read_bytes()
    assert site.post("/predict", content=content).json()["pictures"][0]["predictions"][0]["class"] == "ring"
    assert main(["rename", str(own), "ring", "hoop"]) == 0


@pytest.mark.long
def test_what_cannot_be_learned_is_said_as_on_the_command_line(own: Path, serve: Callable[..., Site]) -> None:
    site = serve(own)
    before = own.read_bytes()
    files = [("cat", ("1.png", b"nonsense")), ("cat", ("2.png", b"")), ("dog", ("3.png", b"GIF89a"))]
    assert site.post("/learn", files=files).status_code == 202
    ended = site.until("failed")
    assert ended["message"] == (
        "no picture in what was sent can be read, cat/2.png for one: it cannot be decoded (it is no picture of a known "
        "kind): repair or remove it. The model is as it was before. The 3 pictures that were sent are deleted."
    )
    assert own.read_bytes() == before


@pytest.mark.long
def test_while_somebody_else_writes(own: Path, pictures: Path, serve: Callable[..., Site]) -> None:
    site = serve(own)
    with locked(own):
        refused = site.post("/rename", json={"old": "ring", "new": "hoop"})
        assert refused.status_code == 400
        assert refused.json()["error"].startswith("another process is at work on ")
        site.learn(pictures / "shapes", task="again")
        assert "another process is at work on" in site.until("failed")["message"]


@pytest.mark.long
def test_the_end_of_the_server_is_the_end_of_learning(own: Path, pictures: Path, serve: Callable[..., Site]) -> None:
    site, before = serve(own), own.read_bytes()
    site.learn(pictures / "shapes", task="again", epochs="10000")
    site.until("learning")
    site.server.learning.close()
    assert site.progress()["state"] == "stopped"
    assert not multiprocessing.active_children()
    assert own.read_bytes() == before


def job(path: Path) -> Job:
    return Job(
        path, "again", ("cat/1.png",), Wishes(USUAL, "auto", None, "crop", True, 0, "normal", None, False), 0.1, 1
    )


def test_what_goes_wrong_at_the_end_is_an_end(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learning = Learning(Served(own))

    def fail(*_: object) -> None:
        raise RuntimeError("this")

    monkeypatch.setattr(learning, "_started", fail)
    monkeypatch.setattr(learning.served, "read", fail)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    learning.begin(job(own), [b""])
    learning.close()
    assert learning.progress.state == "failed"
    assert learning.progress.message == (
        "Learning has ended, but what is in the file now could not be found out: see where the server was started."
    )
    assert "RuntimeError: this" in capsys.readouterr().err
    learning.check_free()


def test_no_thread_to_learn_with(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learning = Learning(Served(own))

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    contents = [b""]
    with pytest.raises(RefusedError, match="no thread left to learn with: try again later"):
        learning.begin(job(own), contents)
    assert (learning.progress.state, contents) == ("failed", [])
    learning.check_free()
    learning.close()


@pytest.mark.parametrize(
    ("settings", "files", "sentence"),
    [
        ({}, [], "no pictures were sent: each is a file in a field named after its class, such as -F cat=@1.jpg"),
        ({"effort": "huge"}, None, "effort huge is not known: choose quick, normal, thorough"),
        ({"epochs": "0"}, None, "epochs 0 must be a whole number from 1 to 10,000"),
        ({"epochs": "3", "effort": "quick"}, None, "--quick and --epochs each say how long: give one of them"),
        ({"cat": "x"}, None, "“cat” is not known here: there are task, effort, epochs, start, fit, flip; a picture is"),
        ({"task": "a\x07b"}, None, "“a\\x07b” is no name for a task or a class: take one that can be printed"),
        ({}, [("a/b", ("1.png", b"x"))], "“a/b” is no name for a class: take one without “/”, of at most 200 letters"),
        ({}, [(" ", ("1.png", b"x"))], "“” is no name for a task or a class: take one that can be printed"),
        ({"fit": "pad"}, None, "fit of demo.sparc is crop for good: leave it out, or make another model"),
    ],
)
def test_wishes_that_make_no_sense(
    site: Site, pictures: Path, settings: dict[str, str], files: list[tuple[str, object]] | None, sentence: str
) -> None:
    files = form_of(pictures / "shapes")[:4] if files is None else files
    form = [(name, (None, value.encode())) for name, value in settings.items()] + (files or [("task", (None, b""))])
    answer = site.post("/learn", files=form)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(sentence)
    assert site.progress()["state"] == "idle"


@pytest.mark.long
def test_pictures_of_one_name_are_all_learned(own: Path, pictures: Path, serve: Callable[..., Site]) -> None:
    site = serve(own)
    contents = [path.read_bytes() for path in sorted((pictures / "shapes" / "round").iterdir())[:6]]
    files = [("round", ("camera", content)) for content in contents[:3]]
    files += [("round", ("image.png", content)) for content in contents[3:]]
    assert site.post("/learn", data={"task": "more"}, files=files).status_code == 202
    learned = site.until("learned")["learned"]
    assert learned["pictures"] == [6]
    assert learned["known_before"] == ["round"]


@pytest.mark.long
def test_a_worker_that_does_not_stop_is_killed(
    own: Path, pictures: Path, serve: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparc.serve.learning.PATIENCE", 0.5)
    site = serve(own)
    site.learn(pictures / "shapes", task="again", epochs="10000")
    site.until("learning")
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)
    assert isinstance(site.server.learning, Learning)
    site.post("/stop")
    assert site.until("stopped")["message"].startswith("Stopped: the model is as it was before.")
