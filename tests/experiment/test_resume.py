"""A run that is cut off goes on, and ends as if nothing had happened."""

import contextlib
import errno
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sparc import files
from sparc.cli.main import main
from sparc.data.imageset import Splits
from sparc.errors import InputError
from sparc.experiment import Run, RunConfig, RunWatcher, Stopped, StreamSettings, Workplace, list_runs, run
from sparc.methods.sparc.settings import SparcSettings
from sparc.methods.sparc.sparc import SPARC
from sparc.train import TrainingReport

CONFIG = RunConfig.default("seq-digits", "sparc")
CONFIG = replace(
    CONFIG,
    settings=SparcSettings(width=1 / 8),
    recipe=replace(CONFIG.recipe, epochs=2, batch_size=16),
    stream=StreamSettings(sizes=(3, 3)),
)


Quick = Callable[..., Run]


class StopAt(RunWatcher):
    """Asks for a stop the nth time that it is asked."""

    def __init__(self, times: int) -> None:
        self.left = times

    def stop_asked(self) -> bool:
        self.left -= 1
        return self.left < 0


class Listener(RunWatcher):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.first: TrainingReport | None = None

    def warn(self, sentence: str) -> None:
        self.warnings.append(sentence)

    def training(self, report: TrainingReport) -> None:
        self.first = self.first or report


@pytest.fixture(scope="module")
def quick(splits: Splits) -> Quick:
    """A run of a second, with a checkpoint a step."""

    def start(out: Path, config: RunConfig = CONFIG, watcher: RunWatcher | None = None, fresh: bool = False) -> Run:
        workplace = Workplace(out, checkpoint_minutes=0, fresh=fresh, loaded={(config.benchmark, None): splits})
        return run(config, workplace, watcher)

    return start


@pytest.fixture(scope="module")
def whole(quick: Quick, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run as it ends if it is left alone."""
    return quick(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def cut_off(quick: Quick, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, stopped on its way."""
    out = tmp_path_factory.mktemp("cut")
    with pytest.raises(Stopped):
        quick(out, watcher=StopAt(25))
    return out


@pytest.fixture
def cut(cut_off: Path, tmp_path: Path) -> Path:
    """The checkpoints, in `tmp_path`, of a run that was stopped."""
    shutil.copytree(cut_off, tmp_path, dirs_exist_ok=True)
    (folder,) = tmp_path.glob("*/checkpoints")
    return folder


def newest(checkpoints: Path) -> Path:
    return max(checkpoints.iterdir(), key=lambda path: int(path.name.removeprefix("step-")))


def kills(folder: Path, **kinds: int) -> dict[str, Any]:
    """What `tests/kills.py` reports."""
    script = Path(__file__).parents[1] / "kills.py"
    command = [sys.executable, str(script), str(folder), *(f"{kind}={times}" for kind, times in kinds.items())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=9000, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return kills(tmp_path_factory.mktemp("kills"), boundaries=1, random=5, corrupt=5)


def test_killed_at_each_kind_of_write_boundary(killed: dict[str, Any]) -> None:
    counts = killed["boundaries"]
    assert counts["kills"] == counts["resumes"] == counts["identical ends"] >= 10


def test_killed_at_random_moments(killed: dict[str, Any]) -> None:
    assert killed["random"] == {"kills": 5, "resumes": 5, "identical ends": 5}


def test_fed_corrupt_checkpoints(killed: dict[str, Any]) -> None:
    assert killed["corrupt"] == {"kills": 5, "corrupt checkpoints fed": 5, "resumes": 5, "identical ends": 5}


def test_memory_stays_flat_over_100_epochs(
    killed: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    growth = killed["memory growth"]
    if growth is None:
        pytest.skip("there is no /proc here to read the memory from")
    record_property("figures", f"memory: {growth:.3f} MiB more an epoch over 90 epochs")
    assert growth < 0.1


@pytest.mark.long
def test_killed_and_corrupted_many_times(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    report = kills(tmp_path, boundaries=1000, random=100, corrupt=100)
    for kind in ("boundaries", "random", "corrupt"):
        counts = report[kind]
        record_property("figures", f"{kind}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
        assert len(set(counts.values())) == 1
        assert counts["identical ends"] >= 100


def test_the_first_checkpoint_that_is_damaged_is_named_and_the_older_one_used(
    quick: Quick, whole: Run, cut: Path, tmp_path: Path
) -> None:
    assert len(list(cut.iterdir())) == 2
    file = newest(cut) / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    listener = Listener()
    done = quick(tmp_path, watcher=listener)
    (sentence,) = listener.warnings
    assert "damaged (state.safetensors does not match its checksum)" in sentence
    assert done.measured.state_sha256 == whole.measured.state_sha256


def test_a_checkpoint_of_another_run_is_refused(quick: Quick, cut: Path, tmp_path: Path) -> None:
    other, out = replace(CONFIG, seed=1), tmp_path / "two"
    with pytest.raises(Stopped):
        quick(out, other, StopAt(3))
    (target,) = out.glob("*/checkpoints")
    newest(cut).rename(target / "step-99999")
    with pytest.raises(InputError, match=r"step-99999 is of another run: .* --fresh"):
        quick(out, other)
    assert quick(out, other, fresh=True).config["seed"] == 1


@pytest.mark.usefixtures("cut")
def test_another_version_and_another_number_of_threads_go_on_and_warn(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.0")
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    listener = Listener()
    quick(tmp_path, watcher=listener)
    (sentence,) = listener.warnings
    assert "going on with python 3.99.0 instead of" in sentence
    assert sentence.endswith("threads 2 instead of 1: the last bits may come out otherwise")


@pytest.mark.usefixtures("cut")
def test_a_checkpoint_that_does_not_fit_the_code_is_told(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SPARC, "__init__", with_something_new(SPARC.__init__))
    with pytest.raises(
        InputError, match=r"does not fit this version of sparc \(RuntimeError\): start over with --fresh"
    ):
        quick(tmp_path)


def with_something_new(make: Callable[..., None]) -> Callable[..., None]:
    def made(method: SPARC, *rest: object) -> None:
        make(method, *rest)
        method.register_buffer("something new", torch.zeros(1))

    return made


def test_what_is_nobodys_fault_leaves_a_run_part_way(quick: Quick, tmp_path: Path) -> None:
    """Whoever watched has gone: the run can go on, and its folder has nothing to do with it."""

    class Gone(RunWatcher):
        def training(self, report: TrainingReport) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    with pytest.raises(BrokenPipeError):
        quick(tmp_path, watcher=Gone())
    (listed,) = list_runs(tmp_path)
    assert listed.state == "part-way"
    assert not quick(tmp_path).was_there


def test_what_a_dead_writer_left_is_cleared_away(quick: Quick, cut: Path, tmp_path: Path) -> None:
    (cut.parent / ".result.json.abc.part").write_text("{")
    (cut / "step-777.tmp").mkdir()
    (cut / "step-777.tmp" / "state.json").write_text("{")
    with pytest.raises(Stopped):
        quick(tmp_path, watcher=StopAt(3))
    assert not list(cut.glob("*.tmp"))
    assert not list(cut.parent.glob(".*.part"))


def test_a_run_folder_belongs_to_one_process_at_a_time(quick: Quick, cut: Path, tmp_path: Path) -> None:
    folder = cut.parent
    with files.locked(folder), pytest.raises(InputError, match="another process is at work on"):
        quick(tmp_path)
    # A lock file whose owner died says nothing.
    (tmp_path / f".{folder.name}.lock").write_text("")
    assert not quick(tmp_path).was_there


@pytest.mark.usefixtures("cut")
def test_fresh_starts_over(quick: Quick, tmp_path: Path) -> None:
    listener = Listener()
    quick(tmp_path, watcher=listener, fresh=True)
    assert listener.first is not None
    assert (listener.first.task, listener.first.epoch) == (1, 1)


def test_runs_lists_what_is_done_part_way_and_failed(
    quick: Quick,
    whole: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shutil.copytree(whole.folder, tmp_path / whole.folder.name)
    with pytest.raises(Stopped):
        quick(tmp_path, replace(CONFIG, seed=1), StopAt(16))
    with pytest.raises(InputError, match="lower --lr"):
        quick(tmp_path, replace(CONFIG, seed=2, recipe=replace(CONFIG.recipe, lr=1e30)))
    done, part_way, failed = list_runs(tmp_path)
    assert (done.state, part_way.state, failed.state) == ("done", "part-way", "failed")
    assert part_way.note == "task 1 of 2, epoch 2 of 2"
    assert "the loss is" in failed.note
    with files.locked(part_way.folder):
        assert list_runs(tmp_path)[1].state == "running"
    assert main(["runs", str(tmp_path)]) == 0
    table = capsys.readouterr().out
    assert "part-way" in table
    assert "lr=1e+30 sizes=[3, 3]; the loss is" in " ".join(table.split()), "what is set otherwise than usual"
    assert "lower --lr" in " ".join(table.split())
    assert main(["runs", str(tmp_path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["state"] for each in listed] == ["done", "part-way", "failed"]
    assert listed[0]["metrics"]["task_il"]["accuracy"] > 50


def test_runs_lists_what_cannot_be_read_beside_the_rest(whole: Run, tmp_path: Path) -> None:
    shutil.copytree(whole.folder, tmp_path / whole.folder.name)
    for name, content in (("a", "{"), ("b", '{"format": 99}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(content)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "run.json").write_text("[]")
    *broken, done = list_runs(tmp_path)
    assert [each.state for each in broken] == ["failed"] * 3
    assert "is not a result" in broken[0].note
    assert "is of format 99" in broken[1].note
    assert "cannot be read" in broken[2].note
    assert done.state == "done"


def test_runs_refuses_what_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(tmp_path / "nothing")]) == 2
    assert "is not there: name the folder" in capsys.readouterr().err


def test_a_full_disk_is_told_and_nothing_is_lost(
    quick: Quick, whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = 0

    def full(where: str, path: Path) -> None:
        nonlocal written
        written += 1
        if written > 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(files, "boundary", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\): mend that and give the same"):
        quick(tmp_path / "full")
    monkeypatch.undo()
    (listed,) = list_runs(tmp_path / "full")
    assert len(list(listed.checkpoints.glob("step-*"))) == 2
    assert not list(listed.checkpoints.glob("*.tmp"))
    assert quick(tmp_path / "full").measured.state_sha256 == whole.measured.state_sha256


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    folder.mkdir()
    size = f"size={kilobytes}k"
    mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(quick: Quick, whole: Run, tmp_path: Path) -> None:
    out = tmp_path / "small"
    with small_disk(out, kilobytes=200):
        with pytest.raises(InputError, match=r"cannot be written \(.*No space left"):
            quick(out)
        subprocess.run(["mount", "-o", "remount,size=50m", str(out)], check=True)
        assert quick(out).measured.state_sha256 == whole.measured.state_sha256


def test_a_read_only_disk_is_refused_before_the_work(quick: Quick, tmp_path: Path) -> None:
    out = tmp_path / "read-only"
    with small_disk(out, kilobytes=500):
        subprocess.run(["mount", "-o", "remount,ro", str(out)], check=True)
        with pytest.raises(InputError, match=r"--out .* cannot be written \(Read-only file system\)"):
            quick(out / "runs")


def test_a_log_that_was_cut_short_is_told(quick: Quick, cut: Path, tmp_path: Path) -> None:
    (cut.parent / "log.jsonl").write_bytes(b"")
    listener = Listener()
    quick(tmp_path, watcher=listener)
    assert "has lost its last" in listener.warnings[0]


def test_minutes_below_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "seq-digits", "--checkpoint-minutes", "-1", "--out", str(tmp_path / "runs")]
    assert main(command) == 2
    assert "--checkpoint-minutes -1 must not be negative" in capsys.readouterr().err
