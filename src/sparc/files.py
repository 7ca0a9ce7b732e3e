"""Files and folders that are either whole or not there."""

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from sparc.errors import InputError

UNFINISHED = ".tmp"
"""Ends the name of a folder that is being written."""
PART = ".part"
"""Ends the name of a file that is being written."""
PATIENCE = 0.25
"""Seconds in which to try again for a lock that somebody may only have looked at."""


def user_cache() -> Path:
    """The user's folder for what can be had again; it need not be there."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sparc"


def boundary(where: str, path: Path) -> None:
    """Passed between two steps of writing; does nothing, unless a test puts a hook here that pulls the plug."""


@contextlib.contextmanager
def whole_file(path: Path, private: bool = False) -> Iterator[IO[bytes]]:
    """Write beside the target, sync, rename: a reader sees the old file or the new one, never a part.

    What is `private` is for the user alone to read.
    """
    path = path.resolve()  # a link stays a link to the file that is replaced
    make_folder(path.parent)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        with part.open("xb") as file:
            if private or path.exists():
                part.chmod(0o600 if private else path.stat().st_mode & 0o777)
            yield file
            file.flush()
            boundary("file written", part)
            os.fsync(file.fileno())
        boundary("file synced", part)
        part.replace(path)
        boundary("file renamed", path)
        sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Fill a new folder under another name, sync it and all in it, rename: a reader sees all of it or nothing."""
    part = path.with_name(f"{path.name}{UNFINISHED}")
    shutil.rmtree(part, ignore_errors=True)
    make_folder(part)
    boundary("folder made", part)
    try:
        yield part
        for file in sorted(part.iterdir()):
            boundary("file written", file)
            file.chmod(part.stat().st_mode & 0o666)  # whoever wrote it may have been secretive
            sync(file)
        sync(part)
        boundary("folder synced", part)
        part.rename(path)
        boundary("folder renamed", path)
        sync(path.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def make_folder(path: Path) -> None:
    """Make a folder and those above it; whichever had to be made is on the disk afterwards."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def clear_parts(folder: Path, name: str = "", older_than: float = 0.0) -> None:
    """Take away files that were being written when a process died, those of one name, or all; where others may be
    writing, those that are older than so many seconds.
    """
    for part in folder.glob(f".*{PART}"):
        with contextlib.suppress(FileNotFoundError):
            is_old = not older_than or time.time() - part.stat().st_mtime > older_than
            if is_old and (not name or part.name.startswith(f".{name}.")):
                part.unlink()


def keep_newest(folder: Path, most: int, size: int) -> None:
    """Of the files in a cache folder keep those that were used last, so many and so many bytes together; and take away
    what somebody who died was writing.
    """
    clear_parts(folder, older_than=60 * 60)
    files = [(path.stat(), path) for path in folder.iterdir() if not path.name.startswith(".")]
    total = 0
    for number, (status, path) in enumerate(sorted(files, key=lambda entry: -entry[0].st_mtime_ns)):
        total += status.st_size
        if number >= most or total > size:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, has reached the disk."""
    is_folder = path.is_dir()
    if is_folder and sys.platform == "win32":  # where a folder cannot be opened
        return
    handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def locked(path: Path, wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Have a file or a folder to oneself; a process that dies loses its lock.

    Whoever comes second is refused, or with `wait`, which is called again and again meanwhile, has to wait.
    """
    from filelock import FileLock, Timeout  # which few need, and for which all would wait

    lock = _lock_of(path)

    def give_up() -> bool:
        if wait is not None:
            wait()
        return False

    try:
        lock.parent.stat()  # which would be made if it were not there
        held = FileLock(lock).acquire(PATIENCE if wait is None else -1, cancel_check=give_up)
    except Timeout as error:
        raise InputError(f"another process is at work on {path}: try again when it has ended") from error
    except OSError as error:
        raise InputError(f"{path} cannot be locked ({error.strerror}): see what {lock} is") from error
    with held:
        try:
            yield
        finally:
            with contextlib.suppress(PermissionError):  # Windows keeps it until it is let go, and then removes it
                lock.unlink(missing_ok=True)


def is_locked(path: Path) -> bool:
    """Whether somebody has it to themselves now; the file that a dead process left says nothing."""
    from filelock import lock_descriptor

    try:
        with _lock_of(path).open("rb") as file:
            return not lock_descriptor(file.fileno(), blocking=False)
    except FileNotFoundError:
        return False


def _lock_of(path: Path) -> Path:
    return path.resolve().with_name(f".{path.resolve().name}.lock")


def check_writable(folder: Path, flag: str) -> None:
    """Find out before hours of work whether its result can be kept, and leave no trace."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=existing):
            pass
    except OSError as error:
        raise InputError(f"{flag} {folder} cannot be written ({error.strerror}): choose another folder") from error


def check_output(path: Path, not_over: Path | None = None) -> None:
    """Find out whether a file can be written before the work that it is for, and that it is not what is read."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for {path.name}: make it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a device or a pipe, which would be replaced: name a file")
    if not_over is not None and path.exists() and not_over.exists() and path.samefile(not_over):
        raise InputError(f"{path} is the model itself: name another file")
    check_writable(path.parent, "the folder")
