"""Pictures that come with a request. They stay in memory: nothing of a request is written, or names a file."""

import math
import unicodedata
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from sparc.data.tree import Tree
from sparc.edit import check_name
from sparc.errors import InputError, UnreadableError
from sparc.serve.bounds import Limits
from sparc.serve.refused import RefusedError

LONGEST = 200
"""Letters of a name."""
HOW = "send a form in which each picture is a file, such as curl -F picture=@cat.jpg"


@dataclass(frozen=True)
class Sent:
    """One picture of a request."""

    field: str
    """Of the form that it came in: for whoever teaches, the class."""
    name: str
    content: bytes


@dataclass(frozen=True)
class Form:
    pictures: list[Sent]
    settings: dict[str, str]
    """Fields that are no files."""


class _Parser(MultiPartParser):
    """Keeps files in memory, and refuses more of them than there may be."""

    def __init__(self, headers: Headers, stream: AsyncGenerator[bytes, None], most: int, limits: Limits) -> None:
        super().__init__(headers, stream, max_files=math.inf, max_fields=20, max_part_size=4096)
        self.most = most
        self.spool_max_size = limits.upload_bytes + 1

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        if self._current_files > self.most:
            raise RefusedError(413, f"there are more than {self.most:,} pictures: send fewer at a time")


async def read_form(request: Request, limits: Limits, most: int) -> Form:
    """The pictures of a form, or the one that is all of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith("image/") or kind in ("application/octet-stream", ""):
        content = b"".join([chunk async for chunk in request.stream()])
        if not content:
            raise RefusedError(400, f"the request holds no picture: {HOW}")
        _check_size("the picture", len(content), limits)
        return Form([Sent("", "", content)], {})
    if kind != "multipart/form-data":
        raise RefusedError(415, f"a request of the kind “{kind[:100]}” brings no pictures: {HOW}")
    try:
        form = await _Parser(request.headers, request.stream(), most, limits).parse()
    except MultiPartException as error:
        raise RefusedError(400, f"the form cannot be read ({error.message.rstrip('.')}): {HOW}") from error
    except (UnicodeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise RefusedError(400, f"the form cannot be read: {HOW}") from error
    try:
        pictures: list[Sent] = []
        settings: dict[str, str] = {}
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                content = await value.read()
                if value.filename or content:  # a field for files that was left empty has neither
                    pictures.append(Sent(_unquoted(name), _unquoted(value.filename or ""), content))
                    _check_size(pictures[-1].name, len(content), limits)
            else:
                settings[name] = value
    finally:
        await form.close()
    return Form(pictures, settings)


class Upload(Tree):
    """Pictures in memory, listed and read as a folder of class folders is."""

    contents: Mapping[str, bytes]

    @classmethod
    def of(cls, contents: Mapping[str, bytes]) -> "Upload":
        """From contents by names such as `cat/1.jpg`."""
        upload = cls(Path("upload"), packed=tuple(contents))
        object.__setattr__(upload, "contents", contents)
        return upload

    def __str__(self) -> str:
        return "what was sent"

    def __truediv__(self, name: str) -> Tree:
        return _Within(self.path, f"{name}/", self.packed)

    @property
    def is_tar(self) -> bool:
        return False

    def file(self, name: str) -> str:
        return name

    def folders(self) -> list[Tree]:
        return [self / name for name in sorted({name.split("/")[0] for name in self.contents})]

    def pictures(self) -> list[str]:
        return sorted(self.contents, key=lambda name: name.split("/"))

    def read(self, chosen: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        for name in chosen:
            yield name, self.contents[name]


class _Within(Tree):
    """A class's pictures."""

    def __str__(self) -> str:
        return f"“{self.name}”"

    def folders(self) -> list[Tree]:
        return []


def by_class(pictures: Iterable[Sent]) -> dict[str, bytes]:
    """Contents by names such as `cat/1.jpg`, all different.

    By the same file names as in a folder, the same pictures are held out.
    """
    found: dict[str, bytes] = {}
    often = Counter[str]()
    for sent in pictures:
        last = unicodedata.normalize("NFC", sent.name.replace("\\", "/").rpartition("/")[2])[:LONGEST] or "picture"
        name = f"{class_name(sent.field)}/{last}"
        while name in found:
            often[name] += 1
            stem, dot, ending = name.rpartition(".")
            name = f"{stem} ({often[name] + 1}).{ending}" if dot else f"{name} ({often[name] + 1})"
        found[name] = sent.content
    if not found:
        raise InputError(
            "no pictures were sent: each is a file in a field named after its class, such as -F cat=@1.jpg"
        )
    return found


def class_name(text: str) -> str:
    """As a folder's would be, which is what else names a class."""
    name = unicodedata.normalize("NFC", text.strip())
    check_name(name)
    if "/" in name or len(name) > LONGEST:
        raise InputError(f"“{name[:40]}” is no name for a class: take one without “/”, of at most {LONGEST} letters")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name[:40]!a} is no name for a class: take one that is UTF-8") from error
    return name


def _unquoted(text: str) -> str:
    """What browsers write otherwise in the names of a form."""
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def _check_size(name: str, size: int, limits: Limits) -> None:
    if size > limits.picture_bytes:
        most = limits.picture_bytes // 2**20
        raise RefusedError(413, f"{name[:LONGEST]} is larger than {most} MiB: make it smaller")
