"""The paper's tables and figures for people to look at: the paper's numbers beside ours, and the scale on all of it."""

import io
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from rich.table import Table

from sparc.files import write_atomic
from sparc.report.colours import LIGHT, SERIES
from sparc.report.tables import plain_table
from sparc.reproduce.paper import Printed
from sparc.reproduce.tables import Filled, FilledChart, FilledRow, FilledTable
from sparc.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        return row.state or "ours", [str(each) if each.values else "" for each in row.ours]
    if len(row.seeds) == 1:
        return f"ours, {counted(max(row.seeds), 'seed')}", [str(each) for each in row.ours]
    several = [f"{each} ({len(each.values)})" if each.values and not each.counted else str(each) for each in row.ours]
    return "ours (seeds)", several


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
            table.add_row(curve.name, *(map(str, curve.points) if curve.points else ("", "")), curve.about)
        return table
    table = plain_table(chart.title, chart.x, *(f"{curve.name}\n{curve.about}" for curve in filled.curves))
    columns = [map(str, curve.points) for curve in filled.curves]
    for tick, *points in zip_longest(filled.ticks, *columns, fillvalue=""):
        table.add_row(tick, *points)
    return table


def has_points(filled: Filled) -> bool:
    return any(curve.points for each in filled.charts for curve in each.curves)


def draw_exhibit(filled: Filled, path: Path) -> Path:
    """Write a PNG with a chart beside the other."""
    from matplotlib.figure import Figure  # half a second, which tables should not wait for

    figure = Figure(figsize=(6.2 * len(filled.charts), 4.6), layout="constrained")
    words = fill(filled.scale_text, width=75 * len(filled.charts))
    figure.suptitle(f"{filled.exhibit.id}: {filled.exhibit.title}\n{words}", fontsize=10)
    for axis, chart in zip(figure.subplots(1, len(filled.charts), squeeze=False)[0], filled.charts, strict=True):
        _draw(axis, chart)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120)
    write_atomic(path, content.getvalue())
    return path


def _draw(axis: "Axes", filled: FilledChart) -> None:
    chart = filled.chart
    axis.set_title(chart.title, fontsize=9)
    axis.set(xlabel=chart.x, ylabel=chart.y)
    (_scatter if chart.kind == "scatter" else _series)(axis, filled)
    axis.set_ylim(bottom=0)
    for curve in filled.curves:
        if not curve.points:
            axis.plot([], [], " ", label=f"{curve.name}: {curve.about}")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.14))


def _colour(place: int) -> str:
    return LIGHT[f"series-{place % SERIES}"]


def _scatter(axis: "Axes", filled: FilledChart) -> None:
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    for number, curve in enumerate(filled.curves):
        if curve.points:
            right, up = (point.mean or 0.0 for point in curve.points)
            axis.scatter([right], [up], color=_colour(number))
            axis.annotate(curve.name, (right, up), textcoords="offset points", xytext=(5, 4), fontsize=8)


def _series(axis: "Axes", filled: FilledChart) -> None:
    drawn = [curve for curve in filled.curves if curve.points]
    width = 0.8 / max(len(drawn), 1)
    for number, curve in enumerate(drawn):
        label, colour = f"{curve.name} ({curve.about})", _colour(number)
        places = [float(place) for place in range(len(curve.points))]
        heights = [point.mean or 0.0 for point in curve.points]
        spread = [point.deviation or 0.0 for point in curve.points] if curve.points[0].deviation is not None else None
        if filled.chart.kind == "lines":
            axis.errorbar(places, heights, yerr=spread, marker="o", label=label, capsize=2, color=colour)
        else:
            shifted = [place + (number - (len(drawn) - 1) / 2) * width for place in places]
            axis.bar(shifted, heights, width, yerr=spread, label=label, capsize=2, color=colour)
    axis.set_xticks(range(len(filled.ticks)), filled.ticks, fontsize=8)
