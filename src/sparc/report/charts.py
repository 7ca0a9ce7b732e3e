"""Charts: lines, points, bars, heat maps and tables, each from plain numbers to a drawing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sparc.experiment.result import Matrix
from sparc.report.axis import Axis
from sparc.report.colours import heat, readable_on
from sparc.report.comparison import Cell
from sparc.report.drawing import Area, Box, Drawing, Group, Line, Shape, Text, fitted, text_width
from sparc.report.marks import colour, dash, mark
from sparc.text import percent

WIDTH = 380.0
LEFT, RIGHT, TOP = 42.0, 14.0, 70.0
"""Margins around the plot; above it stand the title, what was run, and the title of the y axis."""
MARGIN = 12.0
"""Left of all text that is not beside the plot."""
PLOT_HEIGHT = 210.0
TITLE, SMALL = 14.5, 11.5
"""Sizes of letters."""
MAX_WRITTEN = 20
"""Tasks up to which the cells of a heat map have room for their numbers, and lines for their markers."""
MAX_LEGEND = 18
"""Series that a legend names, three of each colour; of the rest it says how many there are."""


@dataclass(frozen=True)
class Heading:
    """The two lines above a chart."""

    what: str
    """What is shown."""
    note: str
    """What was run."""
    label: str = ""
    """What it is shown of, if not of all: cut off where there is no room for both."""

    @property
    def title(self) -> str:
        return f"{self.label}: {self.what}" if self.label else self.what

    def fitted(self, room: float) -> str:
        if not self.label:
            return fitted(self.what, TITLE, room)
        return fitted(
            f"{fitted(self.label, TITLE, room - text_width(f': {self.what}', TITLE))}: {self.what}", TITLE, room
        )


@dataclass(frozen=True)
class Series:
    label: str
    index: int
    """Among the methods, or else the quantities, of a page: the same colour, marker and dash for it in every chart."""
    points: Sequence[tuple[float, Cell]]

    def known(self) -> list[tuple[float, float, float]]:
        """The points that have a number: x, mean, and deviation, 0 where that cannot be said."""
        return [(x, cell.mean, cell.deviation or 0.0) for x, cell in self.points if cell.mean is not None]


def lines(heading: Heading, x: Axis, y: Axis, series: Sequence[Series], width: float = WIDTH) -> Drawing:
    """Means as lines, with a band of a deviation to both sides."""
    sheet = _Sheet(heading, x, y, width)
    sheet.axes()
    for each in series:
        known = each.known()
        band = [(at, mean + spread) for at, mean, spread in known]
        band += [(at, mean - spread) for at, mean, spread in reversed(known)]
        if any(spread for *_, spread in known):
            area = Area(tuple(sheet.at(*point) for point in band), colour(each.index), opacity=0.16)
            sheet.add(Group((area,), series=each.index))
    ends = []
    for each in series:
        if known := each.known():
            path = Line(tuple(sheet.at(at, mean) for at, mean, _ in known), colour(each.index), dash=dash(each.index))
            marks = [
                mark(each.index, *sheet.at(at, mean), _describe(each, x, at, mean, spread))
                for at, mean, spread in (known if len(known) <= MAX_WRITTEN else known[-1:])
            ]
            sheet.add(Group((path, *(shape for shapes in marks for shape in shapes)), series=each.index))
            ends.append(f"{each.label} from {percent(known[0][1])} at the left to {percent(known[-1][1])} at the right")
    sheet.legend(series)
    return sheet.drawing(f"{y.title} against {x.title}: {'; '.join(ends)}.")


def points(heading: Heading, x: Axis, y: Axis, series: Sequence[Series], width: float = WIDTH) -> Drawing:
    """A marker a point, with a deviation up and down as a thin line."""
    sheet = _Sheet(heading, x, y, width)
    sheet.axes(upright=True)
    known = [point for each in series for point in each.known()]
    taken = [_around(*sheet.at(at, mean), 8, 8) for at, mean, _ in known]
    taken += [(*sheet.at(at, mean + spread), *sheet.at(at, mean - spread)) for at, mean, spread in known]
    descriptions, named = [], True
    for each in series:
        shapes: list[Shape] = []
        for at, mean, spread in each.known():
            if spread:
                ends = sheet.at(at, mean - spread), sheet.at(at, mean + spread)
                shapes.append(Line(ends, colour(each.index), width=1.5))
            descriptions.append(_describe(each, x, at, mean, spread))
            shapes += mark(each.index, *sheet.at(at, mean), descriptions[-1], radius=6)
            shapes += (label := sheet.label_beside(each.label, *sheet.at(at, mean), taken))
            named &= bool(label)
        sheet.add(Group(tuple(shapes), series=each.index))
    if not named or not all(each.known() for each in series):
        sheet.legend(series)
    return sheet.drawing(f"{y.title} against {x.title}: {'; '.join(descriptions)}.")


def bars(
    heading: Heading, x: Axis, y: Axis, series: Sequence[Series], even: Sequence[float] = (), width: float = WIDTH
) -> Drawing:
    """A bar a task for each series, side by side, and a dashed line where they would end if all classes were even."""
    sheet = _Sheet(heading, x, y, width)
    sheet.axes()
    drawn = [each for each in series if each.known()]
    thickness = 0.76 / max(len(drawn), 1)
    descriptions = []
    for order, each in enumerate(drawn):
        shapes: list[Shape] = []
        for at, mean, spread in each.known():
            start = at - 0.38 + order * thickness
            (left, top), (right, bottom) = sheet.at(start, mean), sheet.at(start + thickness, y.low)
            note = _describe(each, x, at, mean, spread)
            if even:
                note = f"task {at:g}: {percent(mean, 1)}, even would be {percent(even[round(at) - 1], 1)}"
            shapes.append(Box(left, top, right - left, bottom - top, colour(each.index), note))
            if spread:
                ends = [sheet.at(start + thickness / 2, mean + side * spread) for side in (-1, 1)]
                shapes.append(Line(tuple(ends), "ink", width=1.2))
        sheet.add(Group(tuple(shapes), series=each.index))
        of = f"{each.label}: " if len(drawn) > 1 else ""
        descriptions.append(of + "; ".join(f"task {at:g} {percent(mean, 1)}" for at, mean, _ in each.known()))
    if even:
        steps = [sheet.at(task + side, share) for task, share in enumerate(even, 1) for side in (-0.5, 0.5)]
        sheet.add(Line(tuple(steps), "ink", width=1.6, dash=(5, 3)))
        sample = Line(((0, -4), (24, -4)), "ink", width=1.6, dash=(5, 3))
        sheet.entry("if every class were given as often", (sample,))
    if len(series) > 1:
        sheet.legend(series, lambda each: (Box(2, -9, 20, 10, colour(each.index)),))
    return sheet.drawing(f"{y.title}: {'. '.join(descriptions)}.")


def heat_map(heading: Heading, x_title: str, y_title: str, matrix: Matrix) -> Drawing:
    """Percentages as colours, with the number in each cell where there is room."""
    tasks = len(matrix)
    width = max(WIDTH, LEFT + RIGHT + 20 * min(tasks, MAX_WRITTEN + 5))
    side = (width - LEFT - RIGHT) / tasks
    size, gap = min(13.0, side * 0.46), min(1.0, side / 10)
    x, y = Axis(x_title, 1, tasks, integers=True), Axis(y_title, 1, tasks, integers=True)
    sheet = _Sheet(heading, x, y, width, tasks * side)
    for stage, row in enumerate(matrix):
        for task, value in enumerate(row):
            if value is None:
                continue
            left, top, fill = LEFT + task * side, TOP + stage * side, heat(value)
            note = f"after task {stage + 1}, on task {task + 1}: {percent(value)}"
            sheet.add(Box(left, top, side - gap, side - gap, fill, note))
            if tasks <= MAX_WRITTEN:
                text = percent(value, 1 if tasks < 8 else 0)
                middle = left + (side - gap) / 2, top + (side - gap) / 2 + size * 0.36
                sheet.add(Text(*middle, text, size, "middle", readable_on(fill)))
    for tick in sheet.x.ticks():
        middle_of = (tick - 0.5) * side
        sheet.add(Text(LEFT - 7, TOP + middle_of + 4, f"{tick:g}", SMALL, "end", "muted"))
        sheet.add(Text(LEFT + middle_of, TOP + tasks * side + 16, f"{tick:g}", SMALL, "middle", "muted"))
    sheet.x_title()
    sheet.colour_bar()
    rows = [", ".join(percent(value, 0) for value in row if value is not None) for row in matrix]
    stages = "; ".join(f"after task {stage} {row}" for stage, row in enumerate(rows, 1))
    return sheet.drawing(f"Percent right on each task so far: {stages}.")


def table(heading: Heading, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Drawing:
    """A table as a drawing: names at the left, numbers at the right."""
    shapes: list[Shape] = _heading_texts(heading, WIDTH)
    widths = [max(text_width(cell, SMALL) for cell in cells) + SMALL for cells in zip(columns, *rows, strict=True)]
    ends = [WIDTH - RIGHT - sum(widths[column + 1 :]) for column in range(len(widths))]
    for line, (name, *cells) in enumerate([columns, *rows]):
        level, bold = TOP + 26 * line, line == 0
        shapes.append(Text(MARGIN, level, fitted(name, SMALL, ends[0] - MARGIN), SMALL, bold=bold))
        for end, cell in zip(reversed(ends[1:]), reversed(cells), strict=True):
            shapes.append(Text(end, level, cell, SMALL, "end", bold=bold))
        shapes.append(Line(((MARGIN, level + 8), (WIDTH - RIGHT, level + 8)), "muted" if bold else "grid", width=1))
    description = "; ".join(" ".join(filter(None, row)) for row in rows)
    title = f"{heading.title}, {heading.note}"
    return Drawing(WIDTH, TOP + 26 * len(rows) + 22, title, f"{description}.", tuple(shapes))


Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def _around(x: float, y: float, across: float, up: float) -> Rectangle:
    return x - across, y - up, x + across, y + up


def _apart(first: Rectangle, second: Rectangle) -> bool:
    return first[2] < second[0] or second[2] < first[0] or first[3] < second[1] or second[3] < first[1]


def _describe(series: Series, x: Axis, at: float, mean: float, spread: float) -> str:
    deviation = f" ± {percent(spread)}" if spread else ""
    return f"{series.label}, {x.title} {x.format(at)}: {percent(mean)}{deviation}"


def _line_sample(series: Series) -> tuple[Shape, ...]:
    line = Line(((0, -4), (24, -4)), colour(series.index), dash=dash(series.index))
    return line, *mark(series.index, 12, -4, radius=4)


def _heading_texts(heading: Heading, width: float) -> list[Shape]:
    room = width - MARGIN - RIGHT
    return [
        Text(MARGIN, 20, heading.fitted(room), TITLE, bold=True),
        Text(MARGIN, 37, fitted(heading.note, SMALL, room), SMALL, colour="muted"),
    ]


class _Sheet:
    """What a chart is drawn on: its heading above, the plot, and then whatever comes below, line by line."""

    def __init__(self, heading: Heading, x: Axis, y: Axis, width: float = WIDTH, height: float = PLOT_HEIGHT) -> None:
        self.heading, self.x, self.y, self.width, self.height = heading, x, y, width, height
        self.bottom = TOP + height + 16
        """The baseline of the last line."""
        self.room = width - MARGIN - RIGHT
        self.shapes: list[Shape | Group] = [
            *_heading_texts(heading, width),
            Text(MARGIN, TOP - 11, fitted(y.title, SMALL, self.room), SMALL, colour="muted"),
        ]

    def add(self, *shapes: Shape | Group) -> None:
        self.shapes += shapes

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The point of a pair of values; what is off the scale, such as the end of a deviation, lies at its edge."""
        across = LEFT + self.x.fraction(x) * (self.width - LEFT - RIGHT)
        return across, TOP + (1 - min(max(self.y.fraction(y), 0.0), 1.0)) * self.height

    def label_beside(self, label: str, x: float, y: float, taken: list[Rectangle]) -> list[Shape]:
        """A label right, left, above or below, wherever nothing else is; none if there is no room."""
        half = text_width(label, 12) / 2
        for middle, level in ((x + 12 + half, y), (x - 12 - half, y), (x, y - 16), (x, y + 16)):
            box = _around(middle, level, half, 7)
            left, top, right, bottom = box
            inside = left >= LEFT and right <= self.width and top >= TOP and bottom <= TOP + self.height
            if inside and all(_apart(box, other) for other in taken):
                taken.append(box)
                return [Text(middle, level + 4, label, anchor="middle")]
        return []

    def axes(self, upright: bool = False) -> None:
        for value in self.y.ticks():
            _, level = self.at(self.x.low, value)
            self.add(Line(((LEFT, level), (self.width - RIGHT, level)), "grid", width=1))
            self.add(Text(LEFT - 7, level + 4, self.y.format(value), SMALL, "end", "muted"))
        for value in self._marked():
            across, half = self._label_below(value)
            if upright:
                self.add(Line(((across, TOP), (across, TOP + self.height)), "grid", width=1))
            inside = min(across, self.width - half)
            self.add(Text(inside, TOP + self.height + 16, self.x.format(value), SMALL, "middle", "muted"))
        base = TOP + self.height
        self.add(Line(((LEFT, base), (self.width - RIGHT, base)), "muted", width=1))
        self.x_title()

    def _marked(self) -> Sequence[float]:
        """Where the x axis is marked: at the values that it names, if their labels keep apart, or at round numbers."""
        labels = [self._label_below(value) for value in self.x.values]
        apart = all(right - left > more + most for (left, more), (right, most) in pairwise(labels))
        distinct = len({self.x.format(value) for value in self.x.values}) == len(labels)
        return self.x.values if labels and apart and distinct else self.x.ticks()

    def _label_below(self, value: float) -> tuple[float, float]:
        """Where the middle of a mark's label is, and half of its width."""
        return self.at(value, self.y.low)[0], text_width(self.x.format(value), SMALL) / 2

    def x_title(self) -> None:
        self.bottom += 18
        title = fitted(self.x.title, SMALL, self.room)
        self.add(Text((LEFT + self.width - RIGHT) / 2, self.bottom, title, SMALL, "middle", "muted"))

    def legend(self, series: Sequence[Series], sample: Callable[[Series], tuple[Shape, ...]] = _line_sample) -> None:
        """Two entries a line where the labels are short; the first few series, and how many more there are."""
        short = all(text_width(each.label, 12) < self.room / 2 - 40 for each in series)
        columns = 2 if len(series) > 1 and short else 1
        for order, each in enumerate(series):
            samples = sample(each) if each.known() else ()
            self.entry(each.label, samples, order % columns / columns, each.index, hidden=order >= MAX_LEGEND)
        if len(series) > MAX_LEGEND:
            self.bottom += 20
            text = Text(31, 0, f"and {len(series) - MAX_LEGEND} more", colour="muted")
            self.add(Group((text,), MARGIN, self.bottom, part="more"))

    def entry(
        self,
        label: str,
        sample: tuple[Shape, ...],
        fraction: float = 0.0,
        series: int | None = None,
        hidden: bool = False,
    ) -> None:
        """An entry of the legend, from so far across on; on a new line where that is not far."""
        self.bottom += 20 if not fraction and not hidden else 0
        text = Text(31, 0, fitted(label, 12, self.room * (1 - fraction) - 31))
        self.add(Group((*sample, text), MARGIN + fraction * self.room, self.bottom, series, "entry", hidden))

    def colour_bar(self) -> None:
        self.bottom += 20
        steps, wide = 25, 150.0
        left = (self.width - wide) / 2
        for step in range(steps):
            # Wider than its share, as hairs of paper would show between two.
            self.add(Box(left + step * wide / steps, self.bottom - 9, wide / steps + 0.5, 10, heat(100 * step / 24)))
        self.add(Text(left - 8, self.bottom, "0 %", SMALL, "end", "muted"))
        self.add(Text(left + wide + 8, self.bottom, "100 %", SMALL, colour="muted"))

    def drawing(self, description: str) -> Drawing:
        title = f"{self.heading.title}, {self.heading.note}"
        return Drawing(self.width, self.bottom + 14, title, description, tuple(self.shapes))
