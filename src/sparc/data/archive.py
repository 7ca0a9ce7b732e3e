"""Reading files out of a folder, a zip or a tar in the same way, without writing any of them to the disk."""

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Self

from sparc.errors import InputError, UnreadableError

Wanted = Callable[[str], bool]

LARGEST = 256 * 2**20
"""Most bytes of one file; with `TOTAL` and `MEMBERS` it keeps an archive that unpacks into terabytes out of memory."""
TOTAL = 4 * 2**30
"""Most bytes in one archive, unpacked. A folder is not held to it: what lies on the disk already is no surprise."""
MEMBERS = 1_000_000
_HEADER = 2**20
"""Most bytes of a tar header's own extension, such as a long name."""

_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""What the readers below raise for a file that cannot be opened, was cut off, or is not what its name says."""


def walk(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """Name and content of every wanted file, in one pass.

    Names are relative to the folder or as the archive has them, with `/` between their parts. A folder and a zip are
    read in the order of names, a tar in its own. Links in archives are passed over.
    """
    if path.is_dir() or _is_zip(path):
        yield from read(path, names(path, wanted))
        return
    with _named(path):
        for name, file, size in _tar_files(path):
            if wanted(name):
                yield name, _content(file, size, f"{path}:{name}")


def names(path: Path, wanted: Wanted) -> list[str]:
    """The names that `walk` gives, each once, sorted part by part, without the contents."""
    with _named(path):
        if path.is_dir():
            return [name for name in _folder_names(path) if wanted(name)]
        found = _zip_names(path, wanted) if _is_zip(path) else (name for name, *_ in _tar_files(path) if wanted(name))
        return sorted(set(found), key=lambda name: name.split("/"))


def read(path: Path, chosen: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of the chosen files, in the order in which they are given, or of a tar in its own."""
    for name, content in read_each(path, chosen):
        if isinstance(content, UnreadableError):
            raise content
        yield name, content


def read_each(path: Path, chosen: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
    """As `read`, with what is wrong with a file in the place of its content."""
    with _named(path):
        if path.is_dir():
            for name in chosen:
                yield name, _attempted(partial(_file_content, path / name), str(path / name))
        elif _is_zip(path):
            with zipfile.ZipFile(path) as archive:
                for name in chosen:
                    where = f"{path}:{name}"
                    yield name, _attempted(partial(_member_content, archive, name, where), where)
        else:
            missing = set(chosen)
            for name, file, size in _tar_files(path):
                if name in missing:
                    missing.remove(name)
                    try:
                        yield name, _content(file, size, f"{path}:{name}")
                    except UnreadableError as error:  # what else goes wrong is the whole archive's matter
                        yield name, error
            if missing:
                raise ValueError(f"{min(missing)} is not in it any more")


def unreadable(path: Path | str, error: Exception) -> UnreadableError:
    """What to tell about a file that its reader cannot get through."""
    reason = getattr(error, "strerror", None) or str(error) or "it ends too early"
    where = getattr(error, "filename", None) or path
    return UnreadableError(where, f"cannot be read ({reason}): fetch it again, or remove it")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say of a reader's failure which file it was reading."""
    try:
        yield
    except InputError:  # a ValueError that says it already
        raise
    except _BROKEN as error:
        raise unreadable(path, error) from error


def _attempted(content: Callable[[], bytes], where: str) -> bytes | UnreadableError:
    try:
        return content()
    except UnreadableError as error:
        return error
    except _BROKEN as error:
        return unreadable(where, error)


def _file_content(path: Path) -> bytes:
    with path.open("rb") as file:
        return _content(file, os.fstat(file.fileno()).st_size, path)


def _member_content(archive: zipfile.ZipFile, name: str, where: str) -> bytes:
    try:
        member = archive.getinfo(name)
    except KeyError as error:
        raise UnreadableError(where, "is not there any more: leave the archive as it is while it is read") from error
    if member.flag_bits & 1:
        raise UnreadableError(where, "is encrypted: unpack the archive and name the folder")
    with archive.open(member) as file:
        return _content(file, member.file_size, where)


def _content(file: IO[bytes], size: int, where: Path | str) -> bytes:
    if size > LARGEST:
        raise UnreadableError(
            where, f"is larger than {LARGEST // 2**20} MiB: no file of a picture set is, so remove it"
        )
    return file.read(size)


def _folder_names(folder: Path) -> Iterator[str]:
    """Files below `folder`, sorted; links are followed, as people build subsets from them, but never in a circle."""
    count = 0
    pending: list[tuple[str, frozenset[str]]] = [("", frozenset())]
    while pending:
        name, above = pending.pop()
        path = folder / name
        if path.is_dir():
            real = os.path.realpath(path)
            if real not in above:
                below = sorted((child.name for child in path.iterdir()), reverse=True)
                pending += [(f"{name}/{child}" if name else child, above | {real}) for child in below]
        elif path.is_file():
            count += 1
            _check_count(folder, count)
            yield name


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _zip_names(path: Path, wanted: Wanted) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if _is_file(member)]
    _check_count(path, len(members))
    chosen = [member for member in members if wanted(member.filename)]
    _check_total(path, sum(member.file_size for member in chosen))
    return [member.filename for member in chosen]


def _is_file(member: zipfile.ZipInfo) -> bool:
    is_link = stat.S_ISLNK(member.external_attr >> 16)  # where Unix keeps the mode
    return not is_link and not member.filename.endswith("/") and member.filename != ""


class _Header(tarfile.TarInfo):
    """A member's header, refused before anything of the size that it claims is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if not buf:  # cut off between two files, which tarfile takes for the end; a whole tar has blocks of zeros there
            raise tarfile.ReadError("it ends too early")
        header = super().frombuf(buf, encoding, errors)
        if not 0 <= header.size <= (TOTAL if header.isreg() else _HEADER):
            raise tarfile.ReadError(f"a header claims {header.size} bytes")
        return header


def _tar_files(path: Path) -> Iterator[tuple[str, IO[bytes], int]]:
    """Name, content to be read before going on, and size of every file, in the tar's order."""
    with _unzipped(path) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
        total = 0
        for count, member in enumerate(archive, start=1):
            if member.size < 0:  # as an extended header can have it
                raise tarfile.ReadError(f"a header claims {member.size} bytes")
            total += member.size
            _check_count(path, count)
            _check_total(path, total)
            name = member.name.removeprefix("./")
            file = archive.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
            if file:
                yield name, file, member.size
        # The check sum stands behind the last byte, which the end of the tar does not reach.
        while total <= TOTAL and (rest := stream.read(2**20)):
            total += len(rest)


def _unzipped(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]


def _check_count(path: Path, count: int) -> None:
    if count > MEMBERS:
        raise InputError(f"{path} holds more than {MEMBERS:,} files: name a folder or an archive with fewer")


def _check_total(path: Path, total: int) -> None:
    if total > TOTAL:
        raise InputError(f"{path} unpacks to more than {TOTAL // 2**30} GiB: no archive of a picture set does")
