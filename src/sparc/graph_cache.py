"""Graphs of models that were asked lately, so that nobody waits for them to be made twice.

They lie in a folder of the user's cache, by digests of what they were made from, for the user alone to read. None is
believed before it was checked, and whatever is wrong with the folder, work goes on without it.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from sparc.files import keep_newest, make_folder, user_cache, whole_file

FOLDER = "graphs-1"
"""In the user's cache folder; another number where entries are made otherwise."""
MOST = 16
"""Entries; those that were not used for longest go first."""
BYTES = 2**30
"""Of all entries together."""
_CHECKSUM = 32


def recalled(key: str, make: Callable[[], bytes]) -> bytes:
    """What is kept under a key of letters and digits; what `make` gives if there is nothing, or something else."""
    try:
        path = user_cache() / FOLDER / key
    except RuntimeError:
        return make()  # nobody is at home
    found = _checked(key, path)
    if found is None:
        found = make()
        with contextlib.suppress(OSError):  # the disk is full, or it may not be written
            _keep(key, path, found)
    return found


def drop(key: str) -> None:
    """Take away what is kept under a key."""
    with contextlib.suppress(OSError, RuntimeError):
        (user_cache() / FOLDER / key).unlink(missing_ok=True)


def _checked(key: str, path: Path) -> bytes | None:
    """What was kept, if it is that."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used
    found = content[_CHECKSUM:]
    return found if content[:_CHECKSUM] == _checksum(key, found) else None


def _keep(key: str, path: Path, content: bytes) -> None:
    if len(content) > BYTES // 2:
        return
    make_folder(path.parent.parent)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with whole_file(path, private=True) as file:
        file.write(_checksum(key, content))
        file.write(content)
    keep_newest(path.parent, MOST, BYTES)


def _checksum(key: str, content: bytes) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(content)
    return digest.digest()
