"""Pictures that come with a request. They stay in memory: nothing of a request is written, or names a file."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.requests import Request

from sparc.edit import check_name
from sparc.errors import InputError
from sparc.serve.bounds import Limits
from sparc.serve.multipart import HOW, read_parts
from sparc.serve.refused import RefusedError

LONGEST = 200
"""Letters of a name."""


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
    pictures: list[Sent] = []
    settings: dict[str, str] = {}
    for part in await read_parts(request, most):
        if part.filename is None:
            settings[part.name] = part.content.decode(errors="replace")
        elif part.filename or part.content:  # a field for files that was left empty has neither
            pictures.append(Sent(_unquoted(part.name), _unquoted(part.filename), bytes(part.content)))
            _check_size(pictures[-1].name, len(part.content), limits)
            part.content.clear()
    return Form(pictures, settings)


def by_class(pictures: Iterable[Sent]) -> dict[str, bytes]:
    """Contents by names such as `cat/1.jpg`, all different.

    By the same file names as in a folder, the same pictures are held out.
    """
    found: dict[str, bytes] = {}
    often = Counter[str]()
    for sent in pictures:
        last = unicodedata.normalize("NFC", sent.name.replace("\\", "/").rpartition("/")[2])[:LONGEST] or "picture"
        of_class = class_name(sent.field)
        while (name := f"{of_class}/{last}") in found:
            often[name] += 1
            stem, dot, ending = last.rpartition(".")
            last = f"{stem} ({often[name] + 1}).{ending}" if dot else f"{last} ({often[name] + 1})"
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
    return name


def _unquoted(text: str) -> str:
    """What browsers write otherwise in the names of a form."""
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def _check_size(name: str, size: int, limits: Limits) -> None:
    if size > limits.picture_bytes:
        most = limits.picture_bytes // 2**20
        raise RefusedError(413, f"{name[:LONGEST]} is larger than {most} MiB: make it smaller")
