"""A drawing: shapes on a plane whose y goes down, coloured by name, so that a page can show them light or dark."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

Points = tuple[tuple[float, float], ...]
NARROW = frozenset(" .,:;'|!/()[]-iIjlftr")
"""Letters that take less room than others."""
WIDE = frozenset("mMwW%@+=<>±×−→↑↓…—")
"""Letters that take more."""


@dataclass(frozen=True)
class Line:
    points: Points
    colour: str
    width: float = 2.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Area:
    points: Points
    colour: str
    opacity: float = 1.0
    note: str = ""
    """Shown when the shape is pointed at."""


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    colour: str
    note: str = ""


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    radius: float
    colour: str
    note: str = ""


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    """The baseline, on which letters stand."""
    text: str
    size: float = 12.0
    anchor: Literal["start", "middle", "end"] = "start"
    colour: str = "ink"
    bold: bool = False


@dataclass(frozen=True)
class Group:
    """Shapes that belong together, drawn from an origin of their own."""

    shapes: tuple["Shape | Group", ...]
    x: float = 0.0
    y: float = 0.0
    series: int | None = None
    """The index of the series that is drawn, by which a page's script finds it."""
    part: str = ""
    """What it is for the page's script and style, such as an entry of a legend."""
    hidden: bool = False
    """Not drawn until a page's script shows it."""


Shape = Line | Area | Box | Dot | Text


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    title: str
    description: str
    """What can be seen, for those who do not see it."""
    shapes: tuple[Shape | Group, ...]


def flattened(shapes: Iterable[Shape | Group], x: float = 0.0, y: float = 0.0) -> Iterator[Shape]:
    """All shapes that are not hidden, where they lie on the drawing, those of groups in place of the group."""
    for shape in shapes:
        if isinstance(shape, Group):
            if not shape.hidden:
                yield from flattened(shape.shapes, x + shape.x, y + shape.y)
        elif isinstance(shape, Line | Area):
            yield replace(shape, points=tuple((across + x, down + y) for across, down in shape.points))
        else:
            yield replace(shape, x=shape.x + x, y=shape.y + y)


def arranged(title: str, lines: Sequence[str], drawings: Sequence[Drawing], columns: int) -> Drawing:
    """Drawings in rows of so many, below a title and lines of text."""
    width = max(drawing.width for drawing in drawings)
    whole = width * min(columns, len(drawings))
    shapes: list[Shape | Group] = [Text(12, 26, fitted(title, 17, whole - 24), 17, bold=True)]
    shapes += [Text(12, 46 + 16 * line, text, 11.5, colour="muted") for line, text in enumerate(lines)]
    bottom = 40.0 + 16 * len(lines)
    for start in range(0, len(drawings), columns):
        row = drawings[start : start + columns]
        shapes += [Group(drawing.shapes, column * width, bottom) for column, drawing in enumerate(row)]
        bottom += max(drawing.height for drawing in row)
    description = " ".join(f"{drawing.title}: {drawing.description}" for drawing in drawings)
    return Drawing(whole, bottom, title, description, tuple(shapes))


def text_width(text: str, size: float) -> float:
    """A guess, as the font is not known."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    """About that of DejaVu Sans in bold, which is wider than most."""
    if letter in NARROW:
        return 0.42
    if letter in WIDE or unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.78 if letter.isupper() or not letter.isascii() else 0.65


def fitted(text: str, size: float, room: float) -> str:
    """The text, cut off where it is wider than the room.

    >>> fitted("stability", 12, 100), fitted("stability", 12, 50)
    ('stability', 'stabi…')
    """
    if text_width(text, size) <= room:
        return text
    ends = accumulate(map(_letter_width, text), initial=_letter_width("…"))
    return text[: max(0, bisect_right(list(ends), room / size) - 1)] + "…"
