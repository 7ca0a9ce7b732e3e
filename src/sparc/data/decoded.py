"""Pictures of a set as they were decoded, kept so that the next run need not wait for them.

They lie in a folder of the user's cache, one file a set, by the files that they were decoded from. The file is mapped
into memory, so that all workers of a grid share one copy. None is believed before it was checked, and whatever is wrong
with the folder, pictures are decoded.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sparc.data.imageset import ImageSet, Splits
from sparc.data.progress import Progress
from sparc.errors import InputError
from sparc.files import keep_newest, locked, make_folder, user_cache, whole_file

FOLDER = "decoded-1"
"""In the user's cache folder; another number where files are made otherwise."""
VARIABLE = "SPARC_DECODED"
"""In the environment: with 0 nothing is kept or taken."""
MOST = 8
"""Sets; those that were not used for longest go first."""
BYTES = 4 * 2**30
"""Of all of them together."""
SMALLEST = 2**20
"""Bytes of a set's files from which it is worth one more."""
_SAMPLED = 100
"""Files, at the most, whose beginning and end are looked at: of more, size and time have to do."""
_SAMPLE = 2**16
_CHECKSUM = 32
_ALIGNMENT = 64


def recalled(name: str, sources: Sequence[Path], decode: Callable[[Progress], Splits], progress: Progress) -> Splits:
    """The set that `decode` reads from these files and folders; while they are as they were, not once more."""
    path = _place(name, sources)
    if path is None:
        return decode(progress)
    if (found := _mapped(path)) is not None:
        return found
    with contextlib.ExitStack() as held:
        wait = partial(progress, f"waiting for {name}, which another process decodes", 0, None)
        try:
            make_folder(path.parent.parent)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            held.enter_context(locked(path, wait))
        except (OSError, InputError):  # it may not be written
            path = None
        if path is not None and (found := _mapped(path)) is not None:  # it has been decoded meanwhile
            return found
        splits = decode(progress)
        if path is None:
            return splits
        with contextlib.suppress(OSError):  # the disk is full
            _keep(path, splits)
        return _mapped(path) or splits


def _place(name: str, sources: Sequence[Path]) -> Path | None:
    """The file in which a set is kept, if it is worth one and somebody is at home."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        files = [file for source in sources for file in _files(source)]
        if sum(file.stat().st_size for file in files) < SMALLEST:
            return None
        return user_cache() / FOLDER / f"{name}-{_identity(files)}"
    except (OSError, RuntimeError):
        return None


def _identity(files: Sequence[Path]) -> str:
    """A digest of the names, sizes and times of all files, and where these are few of what they begin and end with."""
    digest = hashlib.sha256()
    for file in files:
        status = file.stat()
        digest.update(repr((str(file.resolve()), status.st_size, status.st_mtime_ns)).encode())
        if len(files) <= _SAMPLED:
            with file.open("rb") as opened:
                digest.update(opened.read(_SAMPLE))
                opened.seek(max(0, status.st_size - _SAMPLE))
                digest.update(opened.read(_SAMPLE))
    return digest.hexdigest()[:32]


def _files(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        yield source
        return
    for folder, inner, names in os.walk(source, followlinks=True):
        inner.sort()
        yield from (Path(folder) / each for each in sorted(names) if (Path(folder) / each).is_file())


def _keep(path: Path, splits: Splits) -> None:
    arrays = [array.contiguous().numpy() for part in splits for array in (part.images, part.labels)]
    header = json.dumps(
        {
            "classes": splits.train.class_names,
            "arrays": [{"dtype": array.dtype.str, "shape": array.shape} for array in arrays],
        }
    ).encode()
    if sum(array.nbytes for array in arrays) > BYTES // 2:
        return
    parts: list[Any] = [len(header).to_bytes(8, "little"), header]
    start = _CHECKSUM + 8 + len(header)
    for array in arrays:
        padding = -start % _ALIGNMENT
        parts += [bytes(padding), array.data]
        start += padding + array.nbytes
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with whole_file(path, private=True) as file:
        for part in (digest.digest(), *parts):
            file.write(part)
    keep_newest(path.parent, MOST, BYTES)


def _mapped(path: Path) -> Splits | None:
    """The set in a file, if that is whole and what was kept."""
    try:
        # Pages are shared until somebody writes to them, which nobody else gets to see.
        content: NDArray[np.uint8] = np.memmap(path, np.uint8, mode="c")
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used
        if hashlib.sha256(content[_CHECKSUM:].data).digest() != content[:_CHECKSUM].tobytes():
            return None
        start = _CHECKSUM + 8
        end = start + int.from_bytes(content[_CHECKSUM:start].tobytes(), "little")
        header = json.loads(content[start:end].tobytes())
        arrays = []
        for kind in header["arrays"]:
            dtype, shape = np.dtype(kind["dtype"]), tuple(kind["shape"])
            end += -end % _ALIGNMENT
            last = end + dtype.itemsize * int(np.prod(shape))
            arrays.append(torch.from_numpy(np.asarray(content[end:last]).view(dtype).reshape(shape)))
            end = last
        names = tuple(header["classes"])
        return Splits(ImageSet(arrays[0], arrays[1], names), ImageSet(arrays[2], arrays[3], names))
    except (OSError, ValueError, LookupError, TypeError):  # it is not there, or it is something else
        return None
