"""The paper's tables and figures for people to look at: the paper's numbers beside ours, and the scale on all of it."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap

from rich.table import Table

from sparc.files import write_atomic
from sparc.report import charts
from sparc.report.axis import Axis
from sparc.report.charts import Heading, Series
from sparc.report.drawing import Drawing, arranged
from sparc.report.plain_table import plain_table
from sparc.reproduce.exhibit import Chart
from sparc.reproduce.paper import Printed
from sparc.reproduce.tables import Filled, FilledChart, FilledCurve, FilledRow, FilledTable
from sparc.text import counted

WIDTH = 560.0
"""Width of a chart, in which the longest of their titles has room."""


def heading(filled: Filled) -> str:
    return f"{filled.exhibit.id} ({filled.exhibit.shown.label}), {filled.scale_text}"


def exhibit_tables(filled: Filled) -> list[Table]:
    return [*map(_table, filled.tables), *map(_numbers, filled.charts)]


def _table(filled: FilledTable) -> Table:
    """Two lines a row, the paper's, then ours; where there is one number a row, side by side."""
    if len(filled.number_titles) == 1:
        (what,) = filled.number_titles
        table = _labelled(filled, f"{what}\npaper", "\nours")
        for row in filled.rows:
            (paper,), (ours,) = row.paper, row.ours
            table.add_row(*row.labels, _printed(paper), _coloured(str(ours) or row.state))
        return table
    passes = [column for column, title in enumerate(filled.number_titles) if title.endswith("passes")]
    table = _labelled(filled, *_joined(filled.number_titles, passes, "passes\nF, B"))
    table.columns[0].no_wrap = True
    for row in filled.rows:
        table.add_row(*row.labels, *_joined([_printed(number) for number in row.paper], passes))
        state, texts = _ours(row)
        blank = [""] * (len(row.labels) - 1)
        table.add_row(f"[dim] {state}", *blank, *(f"[bold]{_coloured(text)}" for text in _joined(texts, passes)))
    return table


def _labelled(filled: FilledTable, *number_titles: str) -> Table:
    table = plain_table(filled.title, *filled.label_titles, *number_titles)
    for column in table.columns[: len(filled.label_titles)]:
        column.justify = "left"
    return table


def _joined(texts: Sequence[str], columns: Sequence[int], title: str | None = None) -> list[str]:
    """The texts, some columns as one: forward and backward passes are a digit each, and not worth a column each."""
    if not columns:
        return list(texts)
    together = title or ", ".join(texts[column] for column in columns if texts[column])
    rest = [text for column, text in enumerate(texts) if column not in columns]
    return [*rest[: columns[0]], together, *rest[columns[0] :]]


def _ours(row: FilledRow) -> tuple[str, list[str]]:
    """What stands below a method's name, and its numbers; of how many seeds they are is said once if it can be."""
    if not row.seeds:
        return row.state or "ours", [str(each) if each.mean is not None else "" for each in row.ours]
    if len(row.seeds) == 1:
        return f"ours, {counted(max(row.seeds), 'seed')}", [str(each) for each in row.ours]
    return "ours (seeds)", [f"{each} ({each.seeds})" if each.seeds else str(each) for each in row.ours]


def _printed(number: Printed | None) -> str:
    return "–" if number is None else str(number)


def _coloured(text: str) -> str:
    return text.replace("✓", "[green]✓[/green]").replace("✗", "[red]✗[/red]")


def _numbers(filled: FilledChart) -> Table:
    """What a chart shows: a line a tick, a column a curve; of a scatter, a line a curve."""
    chart = filled.chart
    if chart.kind == "scatter":
        table = plain_table(chart.title, "method", chart.x, chart.y, "")
        table.columns[-1].justify = "left"
        for curve in filled.curves:
            texts = [(f"{x:,.2f}", str(y)) for x, y in curve.points] or [("", "")]
            table.add_row(curve.name, *texts[0], curve.about)
        return table
    table = plain_table(chart.title, chart.x, *(f"{curve.name}\n{curve.about}" for curve in filled.curves))
    columns = [[str(y) for _, y in curve.points] for curve in filled.curves]
    for x, points in enumerate(zip_longest(*columns, fillvalue=""), chart.first):
        table.add_row(str(x), *points)
    return table


def has_points(filled: Filled) -> bool:
    return any(curve.points for each in filled.charts for curve in each.curves)


def draw_exhibit(filled: Filled, path: Path) -> Path:
    """Write a PNG with all charts, two in a row."""
    from sparc.report.raster import png  # half a second, which tables should not wait for

    title = f"{filled.exhibit.id}: {filled.exhibit.shown.title}"
    lines = wrap(filled.scale_text, width=75 * min(2, len(filled.charts)))
    write_atomic(path, png(arranged(title, lines, list(map(_drawing, filled.charts)), columns=2), scale=2))
    return path


def _drawing(filled: FilledChart) -> Drawing:
    chart = filled.chart
    title, _, note = chart.title.partition(", ")
    heading = Heading(title, note)
    measured_first = sorted(filled.curves, key=lambda curve: not curve.points)
    series = [_series(chart, curve, index) for index, curve in enumerate(measured_first)]
    points = [point for each in series for point in each.known()]
    y = Axis(chart.y, 0, 1.05 * max((mean + spread for _, mean, spread in points), default=1.0))
    if chart.kind == "scatter":
        sizes = [x for x, *_ in points] or [1.0]
        x = Axis(f"{chart.x} (log scale)", min(sizes) / 2, max(sizes) * 2, log=True)
        return charts.points(heading, x, y, series, WIDTH)
    last = max((x for x, *_ in points), default=chart.first)
    if chart.kind == "lines":
        return charts.lines(heading, Axis(chart.x, chart.first, last, integers=True), y, series, WIDTH)
    x = Axis(chart.x, chart.first - 0.5, last + 0.5, integers=True)
    return charts.bars(heading, x, y, series, width=WIDTH)


def _series(chart: Chart, curve: FilledCurve, index: int) -> Series:
    if not curve.points:
        return Series(f"{curve.name}: {curve.about}", index, [])
    return Series(curve.name if chart.kind == "scatter" else f"{curve.name} ({curve.about})", index, curve.points)
