"""Charts: lines, points, bars and heat maps, each from plain numbers to a drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sparc.experiment.result import Matrix
from sparc.report.axis import Axis
from sparc.report.colours import SERIES, heat, readable_on
from sparc.report.comparison import Cell
from sparc.report.drawing import Area, Box, Dot, Drawing, Line, Shape, Words, fitted, text_width
from sparc.report.labels import percent

WIDTH = 380.0
LEFT, RIGHT, TOP = 42.0, 14.0, 70.0
"""Around the plot; above it stand the title, what was run, and what goes up."""
PLOT_HEIGHT = 210.0
SMALL = 11.5
MOST_WRITTEN = 20
"""Tasks up to which the cells of a heat map have room for their numbers, and lines for their markers."""
CORNERS = {1: (4, 0.125), 2: (3, -0.25), 3: (4, -0.25), 4: (3, 0.25), 5: (5, -0.25)}
"""Of the markers that are no dots: how many, and where the first is, in turns from the right."""


@dataclass(frozen=True)
class Head:
    """What stands above a chart."""

    title: str
    note: str
    """What was run."""


@dataclass(frozen=True)
class Series:
    label: str
    place: int
    """Among the methods, or else the quantities, of a page: the same colour, marker and dash for it in every chart."""
    points: Sequence[tuple[float, Cell]]

    @property
    def colour(self) -> str:
        return f"series-{self.place % SERIES}"

    @property
    def dash(self) -> tuple[float, ...]:
        """Another kind of line once the colours are used up."""
        return ((), (7.0, 3.0), (2.0, 3.0))[self.place // SERIES % 3]

    def known(self) -> list[tuple[float, float, float]]:
        """Where there is a number: x, mean, and deviation, 0 where that cannot be said."""
        return [(x, cell.mean, cell.deviation or 0.0) for x, cell in self.points if cell.mean is not None]


def lines(head: Head, x: Axis, y: Axis, series: Sequence[Series]) -> Drawing:
    """Means as lines, with a band of a deviation to both sides."""
    sheet = _Sheet(head, x, y)
    sheet.axes()
    for each in series:
        known = each.known()
        band = [(at, mean + spread) for at, mean, spread in known]
        band += [(at, mean - spread) for at, mean, spread in reversed(known)]
        if any(spread for *_, spread in known):
            sheet.add(Area(tuple(sheet.at(*point) for point in band), each.colour, opacity=0.16))
    for each in series:
        known = each.known()
        sheet.add(Line(tuple(sheet.at(at, mean) for at, mean, _ in known), each.colour, dash=each.dash))
        for at, mean, spread in known if len(known) <= MOST_WRITTEN else known[-1:]:
            sheet.add(*mark(each.place, *sheet.at(at, mean), _said(each, x, at, mean, spread)))
    sheet.legend(series)
    ends = [(each.label, percent(each.known()[0][1]), percent(each.known()[-1][1])) for each in series]
    said = "; ".join(f"{label} goes from {first} to {last}" for label, first, last in ends)
    return sheet.drawing(f"{y.title} against {x.title}: {said}.")


def points(head: Head, x: Axis, y: Axis, series: Sequence[Series]) -> Drawing:
    """A marker a point, with a deviation up and down as a thin line."""
    sheet = _Sheet(head, x, y)
    sheet.axes(upright=True)
    said, places = [], [(each.label, *sheet.at(at, mean)) for each in series for at, mean, _ in each.known()]
    for each in series:
        for at, mean, spread in each.known():
            if spread:
                sheet.add(Line((sheet.at(at, mean - spread), sheet.at(at, mean + spread)), each.colour, width=1.5))
            said.append(_said(each, x, at, mean, spread))
            sheet.add(*mark(each.place, *sheet.at(at, mean), said[-1], radius=6))
    taken = [_around(x, y, 8, 8) for _, x, y in places]
    named = [sheet.name_beside(*place, taken) for place in places]
    if not all(named):
        sheet.legend(series)
    return sheet.drawing(f"{y.title} against {x.title}: {'; '.join(said)}.")


def bars(head: Head, x_title: str, y: Axis, series: Series, even: Sequence[float], even_label: str) -> Drawing:
    """A bar a task, and a dashed line where it would end if all were even."""
    sheet = _Sheet(head, Axis(x_title, 0.5, len(even) + 0.5, whole=True), y)
    sheet.axes()
    for at, mean, spread in series.known():
        (left, top), (right, bottom) = sheet.at(at - 0.38, mean), sheet.at(at + 0.38, y.low)
        note = f"task {at:g}: {percent(mean, 1)}, even would be {percent(even[round(at) - 1], 1)}"
        sheet.add(Box(left, top, right - left, bottom - top, series.colour, note))
        if spread:
            sheet.add(Line((sheet.at(at, mean - spread), sheet.at(at, mean + spread)), "ink", width=1.2))
    steps = [sheet.at(task + side, share) for task, share in enumerate(even, 1) for side in (-0.5, 0.5)]
    sheet.add(Line(tuple(steps), "ink", width=1.6, dash=(5, 3)))
    sheet.entry(even_label, 0, Line(((0, 0), (24, 0)), "ink", width=1.6, dash=(5, 3)))
    said = "; ".join(f"task {at:g} {percent(mean, 1)}" for at, mean, _ in series.known())
    return sheet.drawing(f"{y.title}: {said}.")


def heat_map(head: Head, x_title: str, y_title: str, matrix: Matrix) -> Drawing:
    """Percentages as colours, with the number in each cell where there is room."""
    tasks = len(matrix)
    width = max(WIDTH, LEFT + RIGHT + 20 * min(tasks, MOST_WRITTEN + 5))
    side = (width - LEFT - RIGHT) / tasks
    size, gap = min(13.0, side * 0.46), min(1.0, side / 10)
    sheet = _Sheet(head, Axis(x_title, 1, tasks, whole=True), Axis(y_title, 1, tasks, whole=True), width, tasks * side)
    for stage, row in enumerate(matrix):
        for task, value in enumerate(row):
            if value is None:
                continue
            left, top, colour = LEFT + task * side, TOP + stage * side, heat(value)
            note = f"after task {stage + 1}, on task {task + 1}: {percent(value)}"
            sheet.add(Box(left, top, side - gap, side - gap, colour, note))
            if tasks <= MOST_WRITTEN:
                text = percent(value, 1 if tasks < 8 else 0)
                middle = left + (side - gap) / 2, top + (side - gap) / 2 + size * 0.36
                sheet.add(Words(*middle, text, size, "middle", readable_on(colour)))
    for tick in sheet.x.ticks():
        middle_of = (tick - 0.5) * side
        sheet.add(Words(LEFT - 7, TOP + middle_of + 4, f"{tick:g}", SMALL, "end", "muted"))
        sheet.add(Words(LEFT + middle_of, TOP + tasks * side + 16, f"{tick:g}", SMALL, "middle", "muted"))
    sheet.below_axis()
    sheet.colour_bar()
    rows = [", ".join(percent(value, 0) for value in row if value is not None) for row in matrix]
    said = "; ".join(f"after task {stage} {row}" for stage, row in enumerate(rows, 1))
    return sheet.drawing(f"Percent right on each task so far: {said}.")


Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def _around(x: float, y: float, across: float, up: float) -> Rectangle:
    return x - across, y - up, x + across, y + up


def _apart(first: Rectangle, second: Rectangle) -> bool:
    return first[2] < second[0] or second[2] < first[0] or first[3] < second[1] or second[3] < first[1]


def _said(series: Series, x: Axis, at: float, mean: float, spread: float) -> str:
    deviation = f" ± {percent(spread)}" if spread else ""
    return f"{series.label}, {x.title} {x.write(at)}: {percent(mean)}{deviation}"


def mark(place: int, x: float, y: float, note: str = "", radius: float = 3.8) -> list[Shape]:
    """Each colour has a shape of its own, as colours alone do not tell everybody enough, and once all are used up the
    shapes are hollow.
    """
    shapes = [_marker(place % SERIES, x, y, radius, f"series-{place % SERIES}", note)]
    if hollow := place // SERIES % 3:
        shapes.append(_marker(place % SERIES, x, y, radius * (0.7, 0.4)[hollow - 1], "paper", note))
    return shapes


def _marker(kind: int, x: float, y: float, radius: float, colour: str, note: str) -> Shape:
    if kind not in CORNERS:
        return Dot(x, y, radius, colour, note)
    corners, first = CORNERS[kind]
    angles = [math.tau * (first + corner / corners) for corner in range(corners)]
    outline = [(x + 1.3 * radius * math.cos(angle), y + 1.3 * radius * math.sin(angle)) for angle in angles]
    return Area(tuple(outline), colour, note=note)


class _Sheet:
    """What a chart is drawn on: its head above, the plot, and then whatever comes below, line by line."""

    def __init__(self, head: Head, x: Axis, y: Axis, width: float = WIDTH, height: float = PLOT_HEIGHT) -> None:
        self.head, self.x, self.y, self.width, self.height = head, x, y, width, height
        self.bottom = TOP + height + 16
        """Where the last line stands."""
        room = width - 12 - RIGHT
        self.shapes: list[Shape] = [
            Words(12, 20, fitted(head.title, 14.5, room), 14.5, bold=True),
            Words(12, 37, fitted(head.note, SMALL, room), SMALL, colour="muted"),
            Words(12, TOP - 11, fitted(y.title, SMALL, room), SMALL, colour="muted"),
        ]

    def add(self, *shapes: Shape) -> None:
        self.shapes += shapes

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a value lies; what is off the scale, such as the end of a deviation, lies at its edge."""
        across = LEFT + self.x.share(x) * (self.width - LEFT - RIGHT)
        return across, TOP + (1 - min(max(self.y.share(y), 0.0), 1.0)) * self.height

    def name_beside(self, label: str, x: float, y: float, taken: list[Rectangle]) -> bool:
        """Write a label right, left, above or below, wherever nothing else is; say whether there was room."""
        half = text_width(label, 12) / 2
        for middle, level in ((x + 12 + half, y), (x - 12 - half, y), (x, y - 16), (x, y + 16)):
            place = _around(middle, level, half, 7)
            left, top, right, bottom = place
            inside = left >= LEFT and right <= self.width and top >= TOP and bottom <= TOP + self.height
            if inside and all(_apart(place, other) for other in taken):
                taken.append(place)
                self.add(Words(middle, level + 4, label, anchor="middle"))
                return True
        return False

    def axes(self, upright: bool = False) -> None:
        for value in self.y.ticks():
            _, level = self.at(self.x.low, value)
            self.add(Line(((LEFT, level), (self.width - RIGHT, level)), "grid", width=1))
            self.add(Words(LEFT - 7, level + 4, self.y.write(value), SMALL, "end", "muted"))
        for value in self.x.ticks():
            across, _ = self.at(value, self.y.low)
            if upright:
                self.add(Line(((across, TOP), (across, TOP + self.height)), "grid", width=1))
            self.add(Words(across, TOP + self.height + 16, self.x.write(value), SMALL, "middle", "muted"))
        base = TOP + self.height
        self.add(Line(((LEFT, base), (self.width - RIGHT, base)), "muted", width=1))
        self.below_axis()

    def below_axis(self) -> None:
        self.bottom += 18
        self.add(Words((LEFT + self.width - RIGHT) / 2, self.bottom, self.x.title, SMALL, "middle", "muted"))

    def legend(self, series: Sequence[Series]) -> None:
        """Two entries a line where the labels are short."""
        room = (self.width - 12 - RIGHT) / 2 - 40
        columns = 2 if len(series) > 1 and all(text_width(each.label, 12) < room for each in series) else 1
        for place, each in enumerate(series):
            sample = Line(((0, 0), (24, 0)), each.colour, dash=each.dash)
            self.entry(each.label, place % columns / columns, sample, each)

    def entry(self, label: str, share: float, sample: Line, series: Series | None = None) -> None:
        """A line of the legend, from so far across on; a new one where that is not far."""
        self.bottom += 0 if share else 20
        left, level = 12 + share * (self.width - 12 - RIGHT), self.bottom - 4
        self.add(Line(tuple((left + x, level + y) for x, y in sample.points), sample.colour, sample.width, sample.dash))
        if series:
            self.add(*mark(series.place, left + 12, level, radius=4))
        self.add(Words(left + 31, self.bottom, fitted(label, 12, self.width - RIGHT - left - 31)))

    def colour_bar(self) -> None:
        self.bottom += 20
        steps, wide = 25, 150.0
        left = (self.width - wide) / 2
        for step in range(steps):
            # Wider than its share, as hairs of paper would show between two.
            self.add(Box(left + step * wide / steps, self.bottom - 9, wide / steps + 0.5, 10, heat(100 * step / 24)))
        self.add(Words(left - 8, self.bottom, "0 %", SMALL, "end", "muted"))
        self.add(Words(left + wide + 8, self.bottom, "100 %", SMALL, colour="muted"))

    def drawing(self, about: str) -> Drawing:
        return Drawing(self.width, self.bottom + 14, f"{self.head.title}, {self.head.note}", about, tuple(self.shapes))
