"""The paper's tables and figures, filled in with what was measured here. All functions are pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import cache
from math import isnan, nan
from statistics import mean, stdev
from typing import Any

from sparc.data.benchmarks import find
from sparc.experiment.identity import result_of
from sparc.experiment.result import Result
from sparc.methods import METHODS
from sparc.methods.parts.single import NetSettings
from sparc.metrics import efficiency, summarize
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.counts import CHANNELS, SETS, SPARC_FAMILY, layout_of, parameters
from sparc.reproduce.exhibit import (
    Chart,
    CountExhibit,
    Curve,
    Exhibit,
    FigureExhibit,
    Setting,
    TableExhibit,
    accuracies,
    benchmark_of,
    needed,
)
from sparc.reproduce.paper import Printed, Row, the_paper
from sparc.reproduce.plan import STREAMS, RunSpec, Scale
from sparc.text import counted
from sparc.train import Work, measure_work

NOT_RUN = "not run"
NOT_DEFINED = "–"
PARAMETERS = "#Params (M)"
MILLION = 10**6


@dataclass(frozen=True)
class Measured:
    """What was measured here, or in a word why there is nothing.

    >>> str(Measured((1.0, 3.0))), str(Measured((1.0,), 3, False, counted=True)), str(Measured(word="not run"))
    ('2.00 ± 1.41', '1.000 ✗', 'not run')
    """

    values: tuple[float, ...] = ()
    """One a seed, or the one that was counted."""
    digits: int = 2
    agrees: bool | None = None
    """Of a count: whether it is the paper's, to the digit that is printed."""
    word: str = ""
    counted: bool = False
    """Worked out rather than measured, so it is not of so many seeds."""

    @property
    def mean(self) -> float | None:
        return mean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Of a sample (n − 1)."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        if not self.values:
            return self.word
        spread = "" if self.deviation is None else f" ± {self.deviation:.{self.digits}f}"
        return f"{self.mean:,.{self.digits}f}{spread}{ {True: ' ✓', False: ' ✗', None: ''}[self.agrees] }"

    def as_json(self) -> dict[str, Any]:
        about = {"mean": self.mean, "deviation": self.deviation, "n": len(self.values)}
        return {**about, "agrees": self.agrees, "word": self.word or None}


@dataclass(frozen=True)
class FilledRow:
    words: tuple[str, ...]
    paper: tuple[Printed | None, ...]
    ours: tuple[Measured, ...]
    state: str
    """Why nothing could be measured; empty if something was."""

    @property
    def seeds(self) -> set[int]:
        """How many there are behind its numbers, which need not be the same on every stream."""
        return {len(each.values) for each in self.ours if each.values and not each.counted}


@dataclass(frozen=True)
class FilledTable:
    title: str
    naming: tuple[str, ...]
    """Titles of the columns of words."""
    measuring: tuple[str, ...]
    """Titles of the columns of numbers; a line break stands between stream and measure."""
    rows: tuple[FilledRow, ...]


@dataclass(frozen=True)
class FilledCurve:
    name: str
    points: tuple[Measured, ...]
    """A number a place; of a scatter, how far right and how far up."""
    word: str = ""
    """Why there are none."""

    @property
    def about(self) -> str:
        return self.word or counted(len(self.points[-1].values), "seed")


@dataclass(frozen=True)
class FilledChart:
    chart: Chart
    places: tuple[str, ...]
    curves: tuple[FilledCurve, ...]


@dataclass(frozen=True)
class Filled:
    """An exhibit as it can be shown."""

    exhibit: Exhibit
    scale: Scale
    tables: tuple[FilledTable, ...]
    charts: tuple[FilledChart, ...]
    notes: tuple[str, ...]

    @property
    def scale_words(self) -> str:
        if isinstance(self.exhibit, CountExhibit):
            return f"scale {self.scale.name}: counted at the paper's widths, as at every scale"
        return self.scale.words

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.exhibit.id,
            "label": self.exhibit.label,
            "caption": self.exhibit.caption,
            "scale": {**asdict(self.scale), "words": self.scale_words},
            "tables": [_table_json(table) for table in self.tables],
            "charts": [_chart_json(each) for each in self.charts],
            "notes": list(self.notes),
        }


def fill(exhibit: Exhibit, results: Sequence[Result], scale: Scale) -> Filled:
    runs = needed(exhibit, scale)
    notes = [*exhibit.notes, *_about_data([result for config in runs if (result := result_of(config, results))])]
    if isinstance(exhibit, CountExhibit):
        return Filled(exhibit, scale, (_counts(exhibit), _counts_elsewhere()), (), tuple(notes))
    if isinstance(exhibit, TableExhibit):
        rows = [_row(exhibit, row, results, scale) for row in exhibit.table.rows]
        return Filled(exhibit, scale, (_table(exhibit, rows),), (), tuple(notes))
    assert isinstance(exhibit, FigureExhibit)
    said = "; ".join(f"{each.what} {each.number}" for each in the_paper().figure(exhibit.label).printed)
    notes.append(f"The paper's text says: {said}." if said else "The paper draws it, and prints no numbers.")
    charts = tuple(_chart(chart, results, scale) for chart in exhibit.charts)
    return Filled(exhibit, scale, (), charts, tuple(notes))


def _done(wish: RunSpec, benchmark: str, results: Sequence[Result], scale: Scale) -> list[Result]:
    found = [result_of(config, results) for config in wish.configs(benchmark, scale)]
    return [result for result in found if result is not None]


def _table(exhibit: TableExhibit, rows: Sequence[FilledRow]) -> FilledTable:
    columns = exhibit.table.measuring()
    often = Counter(column.title for column in columns)
    titles = [
        f"{column.stream.removeprefix('Seq-')}\n{column.title}" if often[column.title] > 1 else column.title
        for column in columns
    ]
    return FilledTable("", tuple(column.title for column in exhibit.table.naming()), tuple(titles), tuple(rows))


def _row(exhibit: TableExhibit, row: Row, results: Sequence[Result], scale: Scale) -> FilledRow:
    wish = exhibit.wish_of(row)
    columns = exhibit.table.measuring()
    if wish.missing:
        return FilledRow(row.words, row.numbers, tuple(Measured() for _ in columns), wish.missing)
    ours = tuple(
        _cell(wish, benchmark_of(row, column), column.title, printed, results, scale)
        for column, printed in zip(columns, row.numbers, strict=True)
    )
    runs = [_done(wish, benchmark_of(row, column), results, scale) for column in columns]
    return FilledRow(row.words, row.numbers, ours, "" if any(runs) else NOT_RUN)


def _cell(
    wish: RunSpec, benchmark: str, title: str, printed: Printed | None, results: Sequence[Result], scale: Scale
) -> Measured:
    (config, *_) = wish.configs(benchmark, scale)
    if title == PARAMETERS:
        number = parameters(config.method, asdict(config.settings), benchmark)
        if number is None:
            done = _done(wish, benchmark, results, scale)
            return _in_millions(done[0].parameters, None) if done else Measured(word=NOT_RUN)
        full_width = config.method in SPARC_FAMILY or scale.rival_width == 1
        return _in_millions(number, printed if full_width else None)
    if title in PASSES:
        return Measured((PASSES[title](_work(config.method)),), 1, counted=True)
    done = _done(wish, benchmark, results, scale)
    if not done:
        return Measured(word=NOT_RUN)
    known = tuple(value for result in done if (value := MEASURES[title](result)) is not None)
    return Measured(known, word="" if known else NOT_DEFINED)


@cache
def _work(method: str) -> Work:
    """Passes do not depend on the width, so a narrow net tells them."""
    kind = METHODS.find(method)
    settings = kind.Settings()
    if isinstance(settings, NetSettings):
        settings = replace(settings, width=1 / 8)
    return measure_work(kind, 2, settings, CHANNELS, (8, 8))


def _in_millions(number: int, printed: Printed | None) -> Measured:
    """To one digit more than is printed, so that the rounding can be seen."""
    agrees = None if printed is None else printed.agrees(Decimal(number) / MILLION)
    return Measured((number / MILLION,), 3 if printed is None else printed.digits + 1, agrees, counted=True)


def _in_papers_way(wish: RunSpec, benchmark: str, printed: Printed | None) -> Measured:
    number = parameters(wish.method, wish.settings, benchmark)
    assert number is not None, "the layout of every net in the tables of counts is known"
    return _in_millions(number, printed)


def _counts(exhibit: TableExhibit) -> FilledTable:
    rows = []
    for row in exhibit.table.rows:
        wish = exhibit.wish_of(row)
        ours = tuple(
            _in_papers_way(wish, benchmark_of(row, column), printed)
            for column, printed in zip(exhibit.table.measuring(), row.numbers, strict=True)
        )
        rows.append(FilledRow(row.words, row.numbers, ours, f"counted; {wish.missing}" if wish.missing else "counted"))
    return _table(exhibit, rows)


def _counts_elsewhere() -> FilledTable:
    """Of all nets like SPARC's that the other tables print; a row a number."""
    rows = []
    for exhibit in EXHIBITS.values():
        if isinstance(exhibit, TableExhibit):
            columns = exhibit.table.measuring()
            cells = [(row, *cell) for row in exhibit.table.rows for cell in zip(columns, row.numbers, strict=True)]
            for row, column, printed in cells:
                wish, benchmark = exhibit.wish_of(row), benchmark_of(row, column)
                separable = layout_of(wish.method, wish.settings, benchmark).separable
                if column.title == PARAMETERS and printed is not None and separable:
                    ours = _in_papers_way(wish, benchmark, printed)
                    rows.append(FilledRow((exhibit.id, _words(exhibit, row)), (printed,), (ours,), ""))
    title = "Counts of SPARC's nets, and of nets like them, that the other tables print"
    return FilledTable(title, ("table", "row"), (PARAMETERS,), tuple(dict.fromkeys(rows)))


def _words(exhibit: TableExhibit, row: Row) -> str:
    """Each but the method with what it is."""
    titled = zip(exhibit.table.naming(), row.words, strict=True)
    return ", ".join(
        word if column.title == "Method" else f"{column.title.lower().removeprefix('#')} {word}"
        for column, word in titled
    )


def _metric(name: str, setting: Setting = "class_il") -> Callable[[Result], float | None]:
    def value(result: Result) -> float | None:
        matrix = accuracies(result, setting)
        number = nan if matrix is None else float(getattr(summarize(matrix), name))
        return None if isnan(number) else number

    return value


def _efficiency(result: Result) -> float | None:
    accuracy = _metric("accuracy")(result)
    return None if accuracy is None else efficiency(accuracy, result.parameters)


MEASURES: dict[str, Callable[[Result], float | None]] = {
    "Class-IL A_T (%)": _metric("accuracy"),
    "Task-IL A_T (%)": _metric("accuracy", "task_il"),
    "A_T (%)": _metric("accuracy"),
    "Ā (%)": _metric("average"),
    "Forgetting (%)": _metric("forgetting"),
    "Stability (%)": _metric("stability"),
    "Plasticity (%)": _metric("plasticity"),
    "Trade-off": _metric("trade_off"),
    "Efficiency": _efficiency,
}
"""By the titles of the paper's columns; None where a method has no such thing."""
PASSES: dict[str, Callable[[Work], float]] = {
    "forward passes": lambda work: work.forward,
    "backward passes": lambda work: work.backward,
}


def _chart(chart: Chart, results: Sequence[Result], scale: Scale) -> FilledChart:
    if chart.reference is not None:
        return FilledChart(chart, (), _scatter(chart.curves, chart.reference, results, scale))
    curves = tuple(_curve(curve, results, scale) for curve in chart.curves)
    length = max(len(curve.points) for curve in curves)
    return FilledChart(chart, tuple(str(chart.first + place) for place in range(length)), curves)


def _curve(curve: Curve, results: Sequence[Result], scale: Scale) -> FilledCurve:
    done = _done(curve.wish, STREAMS[curve.stream], results, scale)
    if not done:
        return FilledCurve(curve.name, (), curve.wish.missing or NOT_RUN)
    runs = [points for result in done if (points := curve.points(result))]
    if not runs:
        return FilledCurve(curve.name, (), "not recorded: remove its runs, and they are run again")
    return FilledCurve(curve.name, tuple(Measured(values) for values in zip(*runs, strict=False)))


def _scatter(
    curves: Sequence[Curve], reference: Curve, results: Sequence[Result], scale: Scale
) -> tuple[FilledCurve, ...]:
    bound = _curve(reference, results, scale)
    highest = bound.points[0].mean if bound.points else None
    filled = []
    for curve in curves:
        measured = _curve(curve, results, scale)
        if measured.points and highest:
            done = _done(curve.wish, STREAMS[curve.stream], results, scale)
            size = Measured((done[0].parameters / MILLION,), counted=True)
            height = Measured(tuple(100 * value / highest for value in measured.points[0].values))
            measured = FilledCurve(curve.name, (size, height))
        elif measured.points:
            measured = FilledCurve(curve.name, (), f"{reference.name} {bound.word or 'is at 0'}")
        filled.append(measured)
    return tuple(filled)


def _about_data(results: Sequence[Result]) -> list[str]:
    """What was measured on fewer pictures than the paper had is no equal of its numbers."""
    seen = {(find(result.config["benchmark"]).source, result.data.get("train")) for result in results}
    return [
        f"Measured were trained on {train:,} of {source}'s {SETS[source].train:,} pictures."
        for source, train in sorted(seen, key=str)
        if isinstance(train, int) and train < SETS[source].train
    ]


def _table_json(table: FilledTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "columns": [*table.naming, *table.measuring],
        "rows": [
            {
                "words": row.words,
                "paper": [number and _printed_json(number) for number in row.paper],
                "ours": [each.as_json() for each in row.ours],
                "state": row.state or None,
            }
            for row in table.rows
        ],
    }


def _printed_json(number: Printed) -> dict[str, Any]:
    deviation = None if number.deviation is None else float(number.deviation)
    return {"value": float(number.value), "deviation": deviation, "printed": str(number)}


def _chart_json(filled: FilledChart) -> dict[str, Any]:
    chart = filled.chart
    return {
        **{"title": chart.title, "x": chart.x, "y": chart.y, "places": filled.places},
        "curves": [
            {"name": curve.name, "points": [point.as_json() for point in curve.points], "word": curve.word or None}
            for curve in filled.curves
        ],
    }
