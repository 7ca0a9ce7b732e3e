"""`sparc serve` as people start it."""

import contextlib
import json
import queue
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

import sparc.cli.serve
from sparc.cli.main import main


@pytest.fixture
def started() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """The process, and the address that it has printed."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "sparc", "serve", *arguments, "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().rpartition(": ")[2].strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_ctrl_c_ends_it(own: Path, started: Callable[..., tuple[subprocess.Popen[str], str]]) -> None:
    process, url = started(str(own), "--port", "0")
    assert urlsplit(url).hostname == "127.0.0.1"
    assert len(httpx.get(f"{url}/model").json()["classes"]) == 4
    port = urlsplit(url).port
    assert main(["serve", str(own), "--port", str(port), "--no-browser"]) == 2
    with httpx.Client() as lasting:  # whose connection stays open
        lasting.get(url)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said.splitlines() == ["sparc: Ctrl-C ends it", "sparc: stopped"]


@pytest.mark.long
def test_killed_in_the_middle_of_learning(
    own: Path, pictures: Path, started: Callable[..., tuple[subprocess.Popen[str], str]]
) -> None:
    from tests.serve.conftest import form_of

    before = own.read_bytes()
    process, url = started(str(own), "--port", "0")
    with httpx.Client(base_url=url) as client:
        client.post("/learn", data={"task": "again", "epochs": "10000"}, files=form_of(pictures / "shapes"))
        while client.get("/progress").json()["state"] != "learning":
            pass
        threads = Path(f"/proc/{process.pid}/task").iterdir()
        children = [child for thread in threads for child in (thread / "children").read_text().split()]
        assert children
        process.kill()
        process.wait()
    for child in map(int, children):
        for _ in range(1200):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    time.sleep(0.1)
                    continue
            break
        else:
            raise AssertionError("the worker outlives the server")
    assert own.read_bytes() == before


def test_another_address_asks_for_a_token(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[object] = []

    def listen(app: object, listening: socket.socket, ready: Callable[[], None]) -> None:
        ready()
        seen.append(app)

    monkeypatch.setattr("sparc.serve.listen.listen", listen)
    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(sparc.cli.serve.webbrowser, "open", opened.put)
    monkeypatch.setenv("DISPLAY", ":0")
    assert main(["serve", str(own), "--host", "0.0.0.0", "--port", "0"]) == 0
    url = capsys.readouterr().out.rpartition(": ")[2].strip()
    (token,) = parse_qs(urlsplit(url).query)["token"]
    assert len(token) > 20
    assert opened.get(timeout=60) == url
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main(["serve", str(own), "--port", "0"]) == 0
    capsys.readouterr()
    assert main(["serve", str(own), "--host", "::1", "--port", "0", "--no-browser"]) == 0
    assert "token" not in capsys.readouterr().out
    assert main(["serve", str(own), "--host", "0.0.0.0", "--port", "0", "--token", "secretsecret", "--no-browser"]) == 0
    assert "token=secretsecret" in capsys.readouterr().out
    assert opened.empty()
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--port", "99999"], "--port 99999 is out of range: choose from 1 to 65535, or 0 for one that is free"),
        (["--host", "203.0.113.9"], "--host 203.0.113.9 is no address of this machine: give one, such as 0.0.0.0"),
        (["--token", "short"], "--token is too short, or no plain letters: give at least eight, or leave it out"),
        (["--threads", "0"], "--threads 0 must lie between 1 and"),
    ],
)
def test_what_cannot_be_served(
    own: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["serve", str(own), *arguments, "--no-browser"]) == 2
    assert capsys.readouterr().err.startswith(f"sparc: {sentence}")


def test_files_that_cannot_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "damaged.sparc").write_bytes(b"nonsense")
    for name, sentence in (
        ("damaged.sparc", "is not a model, or was cut off"),
        ("missing/new.sparc", "there is no folder"),
        (".", "is a folder: name a file in it"),
    ):
        assert main(["serve", str(tmp_path / name), "--port", "0", "--no-browser"]) == 2
        assert sentence in capsys.readouterr().err


def test_a_missing_extra_is_said_in_a_sentence(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(own)]) == 2
    said = "sparc: sparc serve needs starlette, uvicorn and python-multipart: pip install 'sparc-cl[serve]'\n"
    assert capsys.readouterr().err == said


def test_help_comes_without_a_server() -> None:
    script = "import sys, json; from sparc.cli.main import main; main(['--help']); print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "serve" in done.stdout
    assert not {"starlette", "uvicorn", "torch"} & set(json.loads(done.stdout.splitlines()[-1]))
