"""Files that are either whole or not there."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sparc.errors import InputError


def write_atomic(path: Path, content: bytes) -> None:
    """Write beside the target, sync, rename: a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have a file to oneself: whoever comes second is refused. The lock of a process that died is gone with it."""
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as file:
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


def check_writable(folder: Path) -> None:
    """Find out before hours of work whether its result can be kept, and leave no trace."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=existing):
            pass
    except OSError as error:
        raise InputError(f"--out {folder} cannot be written ({error.strerror}): choose another folder") from error
