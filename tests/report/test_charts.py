"""Figures: that they are drawings, where things lie in them, and that everybody can tell their colours apart."""

import io
import itertools
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from PIL import Image

from sparc.report.axis import MAX_TICKS, Axis
from sparc.report.charts import MAX_LEGEND, WIDTH, Heading, Series, bars, heat_map, lines, points, table
from sparc.report.colours import DARK, LIGHT, SERIES, contrast, heat, readable_on
from sparc.report.comparison import Cell
from sparc.report.drawing import Area, Box, Drawing, Group, Line, Shape, Text, arranged, fitted, flattened, text_width
from sparc.report.marks import colour, dash, mark
from sparc.report.raster import png
from sparc.report.svg import inline, standalone

HEADING = Heading("Title", "note")
SVG = "{http://www.w3.org/2000/svg}"
PERCENT = Axis("accuracy, %", 0, 100)
TWO_TASKS = Axis("task", 0.5, 2.5, integers=True)


def curve(label: str, index: int, *means: float | None, deviation: float | None = None) -> Series:
    return Series(label, index, [(at, Cell(mean, deviation)) for at, mean in enumerate(means, 1)])


def every_kind(tasks: int = 3) -> list[Drawing]:
    triangle = [[90.0 - stage if task <= stage else None for task in range(tasks)] for stage in range(tasks)]
    series = [curve("one", 0, *[50.0] * tasks, deviation=70.0), curve("two", 7, *[20.0] * tasks)]
    x = Axis("tasks", 1, tasks, integers=True)
    return [
        lines(HEADING, x, PERCENT, series),
        points(HEADING, Axis("size", 0.5, 200, log=True), PERCENT, series),
        bars(HEADING, Axis("task", 0.5, tasks + 0.5, integers=True), PERCENT, series[:1], [100 / tasks] * tasks),
        heat_map(HEADING, "tested on", "after", triangle),
        table(HEADING, ["", "one", "two"], [["accuracy", "1.00", "2.00"]] * min(tasks, 9)),
    ]


@pytest.mark.parametrize("cell", ["100.00 ± 10.00", "1.0", "1,234,567,890"])
def test_a_tables_columns_keep_apart(cell: str) -> None:
    drawing = table(HEADING, ["answers", "Class-IL", "Task-IL"], [["long names " * 5, cell, cell]])
    texts = [shape for shape in shapes_of(drawing) if isinstance(shape, Text)][2:]
    assert len(texts) == 6
    for name, second, first in (texts[:3], texts[3:]):
        assert name.x + text_width(name.text, name.size) < first.x - text_width(first.text, first.size)
        assert first.x < second.x - text_width(second.text, second.size)


def test_labels_keep_off_deviations() -> None:
    series = [Series("a label", 0, [(1.0, Cell(50.0, None))]), Series("bar", 1, [(1.5, Cell(80.0, 60.0))])]
    shapes = shapes_of(points(HEADING, Axis("size", 0, 4), PERCENT, series))
    (text,) = (shape for shape in shapes if isinstance(shape, Text) and shape.text == "a label")
    (bar,) = (shape for shape in shapes if isinstance(shape, Line) and shape.width == 1.5)
    half = text_width(text.text, text.size) / 2
    assert not text.x - half <= bar.points[0][0] <= text.x + half


def test_a_title_says_what_is_shown_however_long_the_label_is() -> None:
    labels = [f"a method with many settings, of which the last is {end}" for end in ("one", "two")]
    first, second = (table(Heading("what it is", "note", label), ["", "n"], []) for label in labels)
    assert first.title != second.title, "a reader of the screen has all of it"
    shown = next(shape.text for shape in shapes_of(first) if isinstance(shape, Text))
    assert shown.endswith("…: what it is")


def shapes_of(drawing: Drawing) -> list[Shape]:
    return list(flattened(drawing.shapes))


def corners(drawing: Drawing) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for shape in shapes_of(drawing):
        if isinstance(shape, Line | Area):
            found += shape.points
        elif isinstance(shape, Box):
            found += [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
        else:
            found.append((shape.x, shape.y))
    return found


@pytest.mark.parametrize("tasks", [1, 2, 5, 20, 50])
def test_everything_lies_on_the_sheet(tasks: int) -> None:
    for drawing in every_kind(tasks):
        assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in corners(drawing))
        root = ET.fromstring(standalone(drawing))
        assert root.get("role") == "img"
        assert root.findtext(f"{SVG}title") == "Title, note"
        assert root.findtext(f"{SVG}desc")


def test_every_kind_can_be_drawn_as_a_picture() -> None:
    for drawing in every_kind():
        with Image.open(io.BytesIO(png(drawing))) as picture:
            assert picture.size == pytest.approx((2.5 * drawing.width, 2.5 * drawing.height), abs=1.5)
            assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 20, "it is not blank"


def test_a_line_goes_where_the_numbers_are() -> None:
    drawing = lines(HEADING, Axis("x", 1, 3, integers=True), PERCENT, [curve("one", 0, 0.0, 50.0, 100.0)])
    (line,) = [shape for shape in shapes_of(drawing) if isinstance(shape, Line) and len(shape.points) == 3]
    (left, bottom), (middle, half), (right, top) = line.points
    assert middle == pytest.approx((left + right) / 2)
    assert half == pytest.approx((top + bottom) / 2)
    assert top < bottom


def test_bars_are_as_high_as_their_numbers_and_the_even_line_is_dashed() -> None:
    drawing = bars(HEADING, TWO_TASKS, PERCENT, [curve("one", 0, 10.0, 40.0)], [50, 50])
    small, large = [shape for shape in shapes_of(drawing) if isinstance(shape, Box)]
    assert large.height == pytest.approx(4 * small.height)
    assert small.y + small.height == pytest.approx(large.y + large.height)
    even, _ = [shape for shape in shapes_of(drawing) if isinstance(shape, Line) and shape.dash]
    assert len({y for _, y in even.points}) == 1
    assert "task 1: 10.0, even would be 50.0" in small.note


def test_cells_of_a_heat_map_have_their_number_until_they_are_too_small() -> None:
    def numbers(tasks: int) -> list[str]:
        texts = [shape for shape in shapes_of(every_kind(tasks)[3]) if isinstance(shape, Text)]
        return [shape.text for shape in texts if shape.colour in ("#000000", "#ffffff")]

    assert numbers(2) == ["90.0", "89.0", "89.0"]
    assert len(numbers(20)) == 210
    assert numbers(21) == []
    cells = [shape for shape in shapes_of(every_kind(21)[3]) if isinstance(shape, Box) and shape.note]
    assert cells[0].note == "after task 1, on task 1: 90.00"


@given(st.floats(0, 100))
def test_numbers_can_be_read_on_every_heat(value: float) -> None:
    assert contrast(readable_on(heat(value)), heat(value)) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_colours_stand_out_from_the_paper(palette: dict[str, str]) -> None:
    assert contrast(palette["ink"], palette["paper"]) >= 7
    assert contrast(palette["muted"], palette["paper"]) >= 4.5
    for index in range(SERIES):
        assert contrast(palette[f"series-{index}"], palette["paper"]) >= 3


# Machado, Oliveira and Fernandes 2009, at full severity, on linear light.
SIGHT = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def oklab(colour: str, sight: object) -> np.ndarray:
    srgb = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    light = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(sight) @ light, 0, 1)
    cones = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
    cones.append([0.0883024619, 0.2817188376, 0.6299787005])
    lab = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099]]
    lab.append([0.0259040371, 0.7827717662, -0.808675766])
    return np.array(lab) @ np.cbrt(np.array(cones) @ seen)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_colours_are_told_apart_by_everybody(palette: dict[str, str], sight: str) -> None:
    """0.02 is about what can just be seen."""
    seen = [oklab(palette[f"series-{index}"], SIGHT[sight]) for index in range(SERIES)]
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)) > 0.1


def test_forty_methods_have_forty_marks_and_lines() -> None:
    assert len({repr(mark(index, 0, 0)) for index in range(40)}) == 40
    assert len({(colour(index), dash(index)) for index in range(40)}) == 40
    kinds = {(type(mark(index, 0, 0)[0]), len(getattr(mark(index, 0, 0)[0], "points", ()))) for index in range(SERIES)}
    assert len(kinds) >= 4, "not by colour alone"


@pytest.mark.parametrize("chart", [lines, points])
def test_a_long_legend_names_the_first_and_counts_the_rest(chart: Callable[..., Drawing]) -> None:
    series = [curve(f"method {index}", index, 50.0, 40.0) for index in range(40)]
    drawing = chart(HEADING, TWO_TASKS, PERCENT, series)
    groups = [shape for shape in drawing.shapes if isinstance(shape, Group)]
    assert {group.series for group in groups if group.part == ""} == set(range(40)), "all are drawn"
    entries = [group for group in groups if group.part == "entry"]
    assert [group.series for group in entries if not group.hidden] == list(range(MAX_LEGEND))
    assert [group.series for group in entries if group.hidden] == list(range(MAX_LEGEND, 40)), "a script may show them"
    texts = [shape.text for shape in shapes_of(drawing) if isinstance(shape, Text)]
    assert f"and {40 - MAX_LEGEND} more" in texts
    assert f"method {MAX_LEGEND - 1}" in texts
    assert f"method {MAX_LEGEND}" not in texts
    assert 'data-series="39"' in standalone(drawing)
    assert standalone(drawing).count('display="none"') == 40 - MAX_LEGEND


def test_bars_of_several_series_stand_side_by_side() -> None:
    series = [curve("one", 0, 10.0, 40.0), curve("two", 1, 20.0, 30.0, deviation=1.0), curve("three: not run", 2)]
    drawing = bars(HEADING, TWO_TASKS, PERCENT, series)
    boxes = [shape for shape in shapes_of(drawing) if isinstance(shape, Box) and shape.note]
    boxes.sort(key=lambda box: box.x)
    assert [box.note for box in boxes] == [
        *("one, task 1: 10.00", "two, task 1: 20.00 ± 1.00", "one, task 2: 40.00", "two, task 2: 30.00 ± 1.00")
    ]
    assert all(one.x + one.width <= other.x + 1e-9 for one, other in itertools.pairwise(boxes))
    assert "three: not run" in [shape.text for shape in shapes_of(drawing) if isinstance(shape, Text)]


@pytest.mark.parametrize("chart", [lines, points, bars])
def test_a_chart_of_nothing_says_so_in_its_legend(chart: Callable[..., Drawing]) -> None:
    drawing = chart(HEADING, TWO_TASKS, PERCENT, [curve("one: not run", 0), curve("two: not run", 1)])
    assert {"one: not run", "two: not run"} <= {shape.text for shape in shapes_of(drawing) if isinstance(shape, Text)}


def test_drawings_are_arranged_in_rows_and_none_covers_another() -> None:
    drawings = every_kind()
    whole = arranged("Title", ["a line"], drawings, columns=2)
    boxes = [
        (group.x, group.y, group.x + drawing.width, group.y + drawing.height)
        for group, drawing in zip([each for each in whole.shapes if isinstance(each, Group)], drawings, strict=True)
    ]
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    assert max(box[2] for box in boxes) <= whole.width
    assert max(box[3] for box in boxes) <= whole.height
    assert len(shapes_of(whole)) == 2 + sum(len(shapes_of(drawing)) for drawing in drawings)


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e6), st.booleans())
def test_ticks_are_few_rise_and_lie_on_the_axis(low: float, room: float, whole: bool) -> None:
    axis = Axis("", low, low + room, integers=whole)
    ticks = axis.ticks()
    assert len(ticks) <= MAX_TICKS
    assert ticks == sorted(set(ticks))
    assert all(-1e-6 <= axis.fraction(tick) <= 1 + 1e-6 for tick in ticks)
    assert whole or len(ticks) >= 2
    assert not whole or all(tick == round(tick) for tick in ticks)


@given(st.floats(1e-9, 1e12), st.floats(1.5, 1e12))
def test_ticks_of_a_logarithmic_axis_too(low: float, factor: float) -> None:
    axis = Axis("", low, low * factor, log=True)
    ticks = axis.ticks()
    assert len(ticks) <= 15
    assert ticks == sorted(set(ticks))
    assert all(-1e-6 <= axis.fraction(tick) <= 1 + 1e-6 for tick in ticks)
    assert ticks or factor < 5


def test_an_axis_of_one_value_has_it_in_the_middle() -> None:
    axis = Axis("", 1, 1, integers=True)
    assert axis.fraction(1) == 0.5
    assert axis.ticks() == [1]


@given(st.text(min_size=1), st.floats(20, 400))
def test_what_is_fitted_fits(text: str, room: float) -> None:
    assert text_width(fitted(text, 12, room), 12) <= room


@pytest.mark.parametrize(
    "text",
    [
        "seq-cifar100-5, 5 tasks, 5 to 20 epochs a task, 1 seed",
        "mean accuracy on the tasks learned so far, %",
        "LiDER on ER-ACE, lipschitz weight 0.3",
        "BMKP WSN CPG NISPA",
        "12.34 ± 0.56",
    ],
)
def test_a_texts_width_is_about_that_in_a_wide_font(text: str) -> None:
    font = FT2Font(findfont(FontProperties(family="DejaVu Sans", weight="bold")))
    font.set_size(100, 72)
    real = sum(font.load_char(ord(letter)).linearHoriAdvance / 65536 for letter in text) / 100
    assert 0.97 * real <= text_width(text, 1.0) <= 1.15 * real


def test_names_stand_beside_points_and_only_where_there_is_room() -> None:
    x = Axis("size", 1, 100, log=True)
    pair = [Series("one", 0, [(2, Cell(20, None))]), Series("two", 1, [(50, Cell(80, None))])]
    apart = points(HEADING, x, PERCENT, pair)
    assert apart.height < points(HEADING, x, PERCENT, [curve("l" * 80, 0, 50.0)]).height, "the second needs a legend"
    assert [shape.text for shape in shapes_of(apart) if isinstance(shape, Text)][-2:] == ["one", "two"]
    crowd = [Series(f"method {index}", index, [(10, Cell(50, None))]) for index in range(8)]
    names = [shape for shape in shapes_of(points(HEADING, x, PERCENT, crowd)) if isinstance(shape, Text)]
    boxes = [(name.x, name.y) for name in names]
    assert len(set(boxes)) == len(boxes)


@given(st.text(), st.text())
def test_any_text_makes_a_whole_svg(title: str, label: str) -> None:
    drawing = lines(Heading(title, label), Axis(label, 1, 2), PERCENT, [curve(label, 0, 1.0, 2.0)])
    root = ET.fromstring(standalone(drawing))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "g", "title", "desc", "rect", "polyline", "polygon", "circle", "text")
    }


def test_a_page_colours_by_variables_and_a_file_by_values() -> None:
    drawing = every_kind()[0]
    assert "var(--series-0)" in inline(drawing, "key")
    assert 'id="key-title"' in inline(drawing, "key")
    assert "var(" not in standalone(drawing)
    assert LIGHT["series-0"] in standalone(drawing)


def test_letters_that_a_font_lacks_and_mathematics_are_no_error_in_a_picture() -> None:
    drawing = lines(Heading("猫 $\\frac", "\ud800"), Axis("x", 1, 2), PERCENT, [curve("$a_", 0, 1.0, 2.0)])
    assert png(drawing).startswith(b"\x89PNG")


def test_a_value_that_is_not_there_leaves_a_gap_and_no_number() -> None:
    drawing = lines(HEADING, Axis("x", 1, 3), PERCENT, [curve("one", 0, 10.0, None, 30.0)])
    (line,) = [shape for shape in shapes_of(drawing) if isinstance(shape, Line) and shape.colour == "series-0"][:1]
    assert len(line.points) == 2


def test_wide_heat_maps_grow_so_that_their_numbers_can_be_read() -> None:
    def smallest(tasks: int) -> float:
        drawing = every_kind(tasks)[3]
        return min(shape.size for shape in shapes_of(drawing) if isinstance(shape, Text))

    assert every_kind(5)[3].width == WIDTH
    assert smallest(20) >= 9
    assert math.isclose(every_kind(60)[3].width, every_kind(40)[3].width)
