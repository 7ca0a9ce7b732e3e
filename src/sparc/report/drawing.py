"""A drawing: shapes on a plane whose y goes down, coloured by name, so that a page can show them light or dark."""

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

Points = tuple[tuple[float, float], ...]


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
    """What is shown when it is pointed at."""


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
class Words:
    x: float
    y: float
    """Of the line that letters stand on."""
    text: str
    size: float = 12.0
    anchor: str = "start"
    """Or middle, or end."""
    colour: str = "ink"
    bold: bool = False


Shape = Line | Area | Box | Dot | Words


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    title: str
    about: str
    """What can be seen, for those who do not see it."""
    shapes: tuple[Shape, ...]


def text_width(text: str, size: float) -> float:
    """A guess on the safe side, as the font is not known."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    return 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.58


def fitted(text: str, size: float, room: float) -> str:
    """
    >>> fitted("stability", 12, 100), fitted("stability", 12, 50)
    ('stability', 'stabil…')
    """
    if text_width(text, size) <= room:
        return text
    ends = accumulate(map(_letter_width, text), initial=_letter_width("…"))
    return text[: max(0, bisect_right(list(ends), room / size) - 1)] + "…"
