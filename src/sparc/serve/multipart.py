"""Forms with files, parsed as they come; all of it stays in memory, and what is too much is refused at once."""

from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from sparc.serve.refused import RefusedError

FIELDS = 20
FIELD_BYTES = 4096
HEAD_BYTES = 8192
HOW = "send a form in which each picture is a file, such as curl -F picture=@cat.jpg"


@dataclass
class Part:
    """One field of a form."""

    head: dict[bytes, bytes] = field(default_factory=dict)
    name: str = ""
    filename: str | None = None
    """None of a field that is no file."""
    content: bytearray = field(default_factory=bytearray)


class Parts:
    """Takes in what the parser finds."""

    def __init__(self, boundary: bytes, most_files: int) -> None:
        self.found: list[Part] = []
        self.most_files = most_files
        self.files = self.fields = self.head_bytes = 0
        self.ended = False
        self.part = Part()
        self.header = b""
        self.value = b""
        self.parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self.begin,
                "on_header_field": self.header_name,
                "on_header_value": self.header_value,
                "on_header_end": self.header_end,
                "on_headers_finished": self.head_end,
                "on_part_data": self.data,
                "on_part_end": self.end,
                "on_end": self.end_all,
            },
        )

    def begin(self) -> None:
        self.part, self.head_bytes = Part(), 0

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self.header += self._head(data[start:end])

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self.value += self._head(data[start:end])

    def _head(self, data: bytes) -> bytes:
        self.head_bytes += len(data)
        if self.head_bytes > HEAD_BYTES:
            raise RefusedError(400, f"the form cannot be read (a field has a head that is too long): {HOW}")
        return data

    def header_end(self) -> None:
        self.part.head[self.header.lower()] = self.value
        self.header = self.value = b""

    def head_end(self) -> None:
        _, options = parse_options_header(self.part.head.get(b"content-disposition", b""))
        if b"name" not in options:
            raise RefusedError(400, f"the form cannot be read (a field has no name): {HOW}")
        self.part.name = options[b"name"].decode(errors="replace")
        if b"filename" in options:
            self.part.filename = options[b"filename"].decode(errors="replace")
            self.files += 1
        else:
            self.fields += 1
        if self.files > self.most_files:
            raise RefusedError(413, f"there are more than {self.most_files:,} pictures: send fewer at a time")
        if self.fields > FIELDS:
            raise RefusedError(413, f"there are more than {FIELDS} fields that are no files: send fewer")

    def data(self, data: bytes, start: int, end: int) -> None:
        self.part.content += memoryview(data)[start:end]
        if self.part.filename is None and len(self.part.content) > FIELD_BYTES:
            raise RefusedError(413, f"the field “{self.part.name[:40]}” is too long: send a picture as a file")

    def end(self) -> None:
        self.found.append(self.part)

    def end_all(self) -> None:
        self.ended = True


async def read_parts(request: Request, most_files: int) -> list[Part]:
    """The fields of a form, in their order."""
    _, options = parse_options_header(request.headers["content-type"])
    try:
        parts = Parts(options.get(b"boundary", b""), most_files)
        if not options.get(b"boundary"):
            raise FormParserError("there is no boundary")
        async for chunk in request.stream():
            parts.parser.write(chunk)
        parts.parser.finalize()
    except FormParserError as error:
        raise RefusedError(400, f"the form cannot be read ({error}): {HOW}") from error
    if not parts.ended:
        raise RefusedError(400, f"the form cannot be read (it ends too early): {HOW}")
    return parts.found
