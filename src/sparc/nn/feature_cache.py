"""Features of pictures that were seen lately, so that nobody waits for them twice.

They lie in one SQLite file of the user's cache folder, by digests of what they were found in, for a day at the most.
Nothing in the file is believed before it was checked, and whatever is wrong with it, work goes on without it.
"""

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sparc.files import make_folder, user_cache

Features = NDArray[np.float32]
FILE = "features-1.sqlite"
"""In the user's cache folder; another number where the table is made otherwise."""
SECONDS = 24 * 60 * 60
"""How long features are kept."""
MOST = 50_000
"""Entries, of 5 kB for 1280 features; the oldest go first."""
PATIENCE = 0.2
"""Seconds to wait while another process writes: less than features take."""
CHECKSUM = 16
"""Bytes of a digest of key and features behind the features."""
_TABLE = """
PRAGMA auto_vacuum = FULL;
CREATE TABLE IF NOT EXISTS features (key BLOB PRIMARY KEY, value BLOB NOT NULL, made REAL NOT NULL);
CREATE INDEX IF NOT EXISTS by_age ON features (made);
"""
_NOT_ITS_FAULT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
}
"""It is locked, or the disk is full, or it may not be written."""
_AT_ONCE = 500
"""Keys in a query; SQLite takes 999 at the least."""


def recalled(keys: Sequence[bytes], count: int, compute: Callable[[list[int]], Features]) -> Features:
    """[N, count]: features by their keys; `compute` gives those of the pictures, by their indices, that are new."""
    found = recall(keys, count)
    new = {key: index for index, key in enumerate(keys) if key not in found}
    if new:
        computed = dict(zip(new, compute(list(new.values())), strict=True))
        keep(computed)
        found |= computed
    return np.stack([found[key] for key in keys])


def recall(keys: Sequence[bytes], count: int) -> dict[bytes, Features]:
    """Features of those keys that there are some for, `count` numbers each."""
    found: dict[bytes, Features] = {}
    now = time.time()
    young = (now - SECONDS, now + SECONDS)  # what comes from the future was kept by a clock that was wrong

    def read(file: sqlite3.Connection) -> None:
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            sound = "length(value) = ? AND made BETWEEN ? AND ?"
            query = f"SELECT key, value FROM features WHERE key IN ({marks}) AND {sound}"  # noqa: S608
            for key, value in file.execute(query, (*some, 4 * count + CHECKSUM, *young)):
                if (features := _checked(key, value)) is not None:
                    found[key] = features
        file.execute("DELETE FROM features WHERE made < ? OR made > ?", young)

    _do(read)
    return found


def keep(found: Mapping[bytes, Features]) -> None:
    """Features by their keys, float32, for a day."""
    now = time.time()

    def write(file: sqlite3.Connection) -> None:
        rows = [(key, _packed(key, features), now) for key, features in found.items()]
        file.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", rows)
        oldest = "SELECT rowid FROM features ORDER BY made DESC LIMIT -1 OFFSET ?"
        file.execute(f"DELETE FROM features WHERE rowid IN ({oldest})", (MOST,))  # noqa: S608

    _do(write)


def _do(work: Callable[[sqlite3.Connection], None]) -> None:
    """Work with the file as far as that is possible; one that is damaged is taken away."""
    try:
        path = user_cache() / FILE
    except RuntimeError:
        return  # nobody is at home
    try:
        make_folder(path.parent)
        path.touch(mode=0o600)  # nobody else's to read
        with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as file, file:
            # It can be had again, so nobody waits for the disk; what is dropped is overwritten.
            file.executescript(f"PRAGMA synchronous = OFF; PRAGMA secure_delete = ON; {_TABLE}")
            work(file)
    except OSError:
        pass  # the disk is full, or it may not be written
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in _NOT_ITS_FAULT:
            return
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _packed(key: bytes, features: Features) -> bytes:
    value = features.astype("<f4").tobytes()
    return value + _checksum(key, value)


def _checked(key: bytes, value: object) -> Features | None:
    """The features, if they are what was kept."""
    if not isinstance(value, bytes) or value[-CHECKSUM:] != _checksum(key, value[:-CHECKSUM]):
        return None
    features = np.frombuffer(value[:-CHECKSUM], "<f4").astype(np.float32)
    return features if np.isfinite(features).all() else None


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:CHECKSUM]
