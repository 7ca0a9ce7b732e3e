"""Ctrl-C and the like: a checkpoint is kept, and the run can go on."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparc import files
from sparc.cli.main import main

COMMAND = ["run", "seq-digits", "--width", "0.125", "--tasks", "2", "--batch-size", "128", "--json", "--seed", "3"]


def started(out: Path, program: str) -> subprocess.Popen[str]:
    """`sparc run`, once it trains."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *COMMAND, "--fresh", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        if list(out.glob("*/checkpoints/step-*")):
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_a_checkpoint_and_tells_how_to_go_on(
    tmp_path: Path, number: signal.Signals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "boundary", signal_at_the_first_checkpoint(number))
    before = signal.getsignal(number)
    command = [*COMMAND, "--epochs", "2", "--out", str(tmp_path)]
    assert main([*command, "--fresh"]) == 128 + number
    assert signal.getsignal(number) is before
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert "stopped at task" in last
    assert list(tmp_path.glob("*/checkpoints/step-*"))
    again = shlex.split(last.split("to go on: ")[1])
    assert again == ["sparc", *command]
    if number == signal.SIGTERM:
        return
    assert main(again[1:]) == 0
    resumed = json.loads(capsys.readouterr().out)["runs"][0]
    assert main([*command[:-1], str(tmp_path / "whole")]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["state_sha256"] == resumed["state_sha256"]


def signal_at_the_first_checkpoint(number: signal.Signals) -> Callable[[str, Path], None]:
    sent: list[str] = []

    def boundary(where: str, path: Path) -> None:
        if where == "folder renamed" and not sent:
            sent.append(where)
            signal.raise_signal(number)

    return boundary


SLOW = """
import sys, time
from sparc import files
from sparc import files
from sparc.cli.main import main
files.boundary = lambda where, path: time.sleep(0.5)
sys.exit(main())
"""


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    process = started(tmp_path, SLOW)  # whose checkpoints take seconds
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "keeping a checkpoint" not in (line := process.stderr.readline()):
        assert line, "the notice comes"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped at" not in said


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc here to see processes in")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_to_all_while_workers_are_being_made(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C in a terminal reaches every process, also the one that workers are made from, as it starts."""
    command = [sys.executable, "-m", "sparc", "compare", "seq-digits", "--out", str(tmp_path), "--seeds", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not any(
            b"forkserver" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children.read_text().split()
        ):
            time.sleep(0.01)
        time.sleep(0.05)  # Python has handlers of its own by now, which would tell where it was
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "stopped with 0 of 2 runs done" in said
    assert "Traceback" not in said
