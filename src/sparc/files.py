"""Files that are either whole or not there."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sparc.errors import InputError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write beside the target, sync, rename: a reader sees the old file or the new one, never a part."""
    path = path.resolve()  # a link stays a link to the file that is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


def _umask() -> int:
    """What new files are not allowed; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have a file to oneself: whoever comes second is refused. The lock of a process that died is gone with it."""
    lock = path.resolve().with_name(f".{path.resolve().name}.lock")
    try:
        # Not through a link, which somebody else may have put there.
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(f"{path} cannot be locked ({error.strerror}): see what {lock} is") from error
    with os.fdopen(handle, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last owner may have removed the file between our opening and our locking it.
            mine = lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat())
        except BlockingIOError:
            mine = False
        if not mine:
            raise InputError(f"another process is at work on {path}: try again when it has ended")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


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
    if not_over is not None and path.exists() and not_over.exists() and path.samefile(not_over):
        raise InputError(f"{path} is the model itself: name another file")
    check_writable(path.parent, "the folder")
