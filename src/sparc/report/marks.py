"""How series are told apart: by colour, and as colours alone do not tell everybody enough, by marker and dash too."""

import math

from sparc.report.colours import SERIES
from sparc.report.drawing import Area, Dot, Shape

DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 3), (9, 3, 2, 3), (14, 4), (9, 3, 2, 3, 2, 3), (4, 6))
CORNERS = {1: (4, 0.125), 2: (3, -0.25), 3: (4, -0.25), 4: (3, 0.25), 5: (5, -0.25)}
"""Number of corners of each marker that is no dot, and where its first corner is, in turns from the right."""
FILLS = (0.0, 0.7, 0.4)
"""How much of a marker is hollow: none, most, some."""


def colour(index: int) -> str:
    return f"series-{index % SERIES}"


def dash(index: int) -> tuple[float, ...]:
    """A solid line until the colours are used up, and then another dash each time they are."""
    return DASHES[index // SERIES % len(DASHES)]


def mark(index: int, x: float, y: float, note: str = "", radius: float = 3.8) -> tuple[Shape, ...]:
    """A marker: each colour has a shape of its own, which gets hollow, and then another, when colours come again."""
    again, fill = divmod(index // SERIES, len(FILLS))
    corners = CORNERS.get((index + again) % SERIES)
    outer = _marker(corners, x, y, radius, colour(index), note)
    return (outer, _marker(corners, x, y, radius * FILLS[fill], "paper", note)) if fill else (outer,)


def _marker(corners: tuple[int, float] | None, x: float, y: float, radius: float, colour: str, note: str) -> Shape:
    if corners is None:
        return Dot(x, y, radius, colour, note)
    number, first = corners
    angles = [math.tau * (first + corner / number) for corner in range(number)]
    outline = [(x + 1.3 * radius * math.cos(angle), y + 1.3 * radius * math.sin(angle)) for angle in angles]
    return Area(tuple(outline), colour, note=note)
