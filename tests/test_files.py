"""Files are whole or not there, and belong to one process at a time, on every system."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sparc import files
from sparc.errors import InputError
from sparc.files import is_locked, locked, whole_folder, write_atomic

EVERY_MODULE = """
import importlib, pkgutil, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # which Windows does not have
import sparc
for module in pkgutil.walk_packages(sparc.__path__, "sparc."):
    if module.name != "sparc.__main__":
        importlib.import_module(module.name)
        print(module.name)
"""


def test_every_module_can_be_imported_where_there_is_no_unix() -> None:
    command = [sys.executable, "-W", "ignore:only soft file lock", "-c", EVERY_MODULE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"after {done.stdout.split()[-1:]}: {done.stderr}"
    assert {"sparc.files", "sparc.cli.main", "sparc.data.sources.cifar"} <= {*done.stdout.split()}


def test_what_is_locked_can_be_seen_without_disturbing_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert not is_locked(path)
    with locked(path):
        assert is_locked(path)
        assert is_locked(path)
        with pytest.raises(InputError, match=f"another process is at work on {path}: try again"), locked(path):
            pass
    assert not is_locked(path)
    assert list(tmp_path.iterdir()) == []


def test_whoever_only_looks_stops_nobody(tmp_path: Path) -> None:
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.0001):
            is_locked(tmp_path / "run")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            with locked(tmp_path / "run"):
                pass
    finally:
        done.set()
        looking.join()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_file_of_the_dead_says_nothing(tmp_path: Path) -> None:
    lock = tmp_path / ".run.lock"
    lock.touch()
    assert not is_locked(tmp_path / "run")
    assert lock.exists()
    lock.chmod(0o400)  # somebody else's, which can only be looked at
    assert not is_locked(tmp_path / "run")


def test_who_waits_is_asked_again_and_again_and_never_shares(tmp_path: Path) -> None:
    """Eight threads that take turns: a lock file that goes while others wait for it is locked by one of them alone."""
    inside: list[int] = []
    waits: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            with locked(tmp_path / "set", wait=lambda: waits.append(number)):
                inside.append(number)
                assert inside == [number]
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    with locked(tmp_path / "set"):
        for thread in threads:
            thread.start()
        while len({*waits}) < len(threads):
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert list(tmp_path.iterdir()) == []


def test_waiting_can_be_broken_off(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    def work() -> None:
        with locked(tmp_path / "set", wait=interrupt):
            pass

    with ThreadPoolExecutor(1) as pool, locked(tmp_path / "set"):
        with pytest.raises(KeyboardInterrupt):
            pool.submit(work).result()
        assert is_locked(tmp_path / "set")


def test_no_folder_is_made_for_a_lock(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be locked"), locked(tmp_path / "nowhere" / "pets.sparc"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_writing_works_where_folders_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which also syncs only what was opened for writing."""
    really_open, really_sync = os.open, os.fsync

    def open_file(path: Path, flags: int) -> int:
        if path.is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, flags)

    def sync(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        really_sync(handle)

    monkeypatch.setattr(files.sys, "platform", "win32")
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "fsync", sync)
    write_atomic(tmp_path / "new" / "note.txt", b"whole")
    with whole_folder(tmp_path / "step-1") as folder:
        (folder / "state.json").write_bytes(b"{}")
    assert (tmp_path / "new" / "note.txt").read_bytes() == b"whole"
    assert (tmp_path / "step-1" / "state.json").read_bytes() == b"{}"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_files_have_the_mode_that_the_user_has_asked_for(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_atomic(tmp_path / "note.txt", b"")
        with whole_folder(tmp_path / "step-1") as folder:
            (folder / "secretive").touch(0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "note.txt").stat().st_mode & 0o777 == mode
    assert (tmp_path / "step-1" / "secretive").stat().st_mode & 0o777 == mode


def test_a_private_file_is_private_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.touch(0o600)
    with files.whole_file(path) as file:
        assert Path(file.name).stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600
