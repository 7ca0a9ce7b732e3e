"""The paper's tables and figures, filled in with what was measured here. All functions are pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from statistics import mean, stdev
from typing import Any

from sparc.data.benchmarks import find
from sparc.experiment.identity import result_of
from sparc.experiment.result import Result
from sparc.methods.parts.single import NetSettings
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.counts import DATA_SETS, backbone_of, measured_work, parameters
from sparc.reproduce.exhibit import Chart, CountExhibit, Curve, Exhibit, FigureExhibit, TableExhibit, benchmark_of
from sparc.reproduce.measures import MEASURES
from sparc.reproduce.paper import Printed, Row
from sparc.reproduce.plan import RunSpec, Scale
from sparc.text import counted

NOT_RUN = "not run"
NOT_DEFINED = "–"
PARAMETERS = "#Params (M)"
MILLION = 10**6
PASSES = {"forward passes": "forward", "backward passes": "backward"}
"""What of a method's costs stands in these columns of the paper."""


@dataclass(frozen=True)
class Measured:
    """What was measured here, or why there is nothing.

    >>> str(Measured((1.0, 3.0))), str(Measured((1.0,), 3, False, counted=True)), str(Measured(reason="not run"))
    ('2.00 ± 1.41', '1.000 ✗', 'not run')
    """

    values: tuple[float, ...] = ()
    """One a seed, or the one that was counted."""
    digits: int = 2
    agrees: bool | None = None
    """Of a count: whether it is the paper's, to the digit that is printed."""
    reason: str = ""
    """Why there are no values."""
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
            return self.reason
        spread = "" if self.deviation is None else f" ± {self.deviation:.{self.digits}f}"
        return f"{self.mean:,.{self.digits}f}{spread}{ {True: ' ✓', False: ' ✗', None: ''}[self.agrees] }"

    def as_json(self) -> dict[str, Any]:
        about = {"mean": self.mean, "deviation": self.deviation, "n": len(self.values)}
        return {**about, "agrees": self.agrees, "word": self.reason or None}


@dataclass(frozen=True)
class FilledRow:
    labels: tuple[str, ...]
    paper: tuple[Printed | None, ...]
    ours: tuple[Measured, ...]
    state: str
    """Why nothing could be measured; empty if something was."""

    @property
    def seeds(self) -> set[int]:
        """How many there are behind its numbers, which need not be the same on every stream."""
        return {len(each.values) for each in self.ours if each.values and not each.counted}

    def as_json(self) -> dict[str, Any]:
        return {
            "words": self.labels,
            "paper": [number and number.as_json() for number in self.paper],
            "ours": [each.as_json() for each in self.ours],
            "state": self.state or None,
        }


@dataclass(frozen=True)
class FilledTable:
    title: str
    label_titles: tuple[str, ...]
    number_titles: tuple[str, ...]
    """A line break stands between stream and measure."""
    rows: tuple[FilledRow, ...]

    def as_json(self) -> dict[str, Any]:
        columns = [*self.label_titles, *self.number_titles]
        return {"title": self.title, "columns": columns, "rows": [row.as_json() for row in self.rows]}


@dataclass(frozen=True)
class FilledCurve:
    name: str
    points: tuple[Measured, ...]
    """One a tick; of a scatter, how far right and how far up."""
    reason: str = ""
    """Why there are none."""

    @property
    def about(self) -> str:
        return self.reason or counted(len(self.points[-1].values), "seed")

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "points": [point.as_json() for point in self.points], "word": self.reason or None}


@dataclass(frozen=True)
class FilledChart:
    chart: Chart
    ticks: tuple[str, ...]
    curves: tuple[FilledCurve, ...]

    def as_json(self) -> dict[str, Any]:
        titles = {"title": self.chart.title, "x": self.chart.x, "y": self.chart.y}
        return {**titles, "places": self.ticks, "curves": [curve.as_json() for curve in self.curves]}


@dataclass(frozen=True)
class Filled:
    """An exhibit as it can be shown."""

    exhibit: Exhibit
    scale: Scale
    notes: tuple[str, ...]
    tables: tuple[FilledTable, ...] = ()
    charts: tuple[FilledChart, ...] = ()

    @property
    def scale_text(self) -> str:
        if isinstance(self.exhibit, CountExhibit):
            return f"scale {self.scale.name}: counted at the paper's widths, as at every scale"
        return self.scale.text

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.exhibit.id,
            "label": self.exhibit.shown.label,
            "caption": self.exhibit.shown.caption,
            "scale": {**asdict(self.scale), "words": self.scale_text},
            "tables": [table.as_json() for table in self.tables],
            "charts": [chart.as_json() for chart in self.charts],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Runs:
    """What has been run, at one scale."""

    results: Sequence[Result]
    scale: Scale

    def of(self, spec: RunSpec, benchmark: str) -> list[Result]:
        """One a seed that has been run."""
        found = (result_of(config, self.results) for config in spec.configs(benchmark, self.scale))
        return [result for result in found if result is not None]


def fill(exhibit: Exhibit, results: Sequence[Result], scale: Scale) -> Filled:
    runs = Runs(results, scale)
    notes = (*exhibit.notes, *_about_data(exhibit, runs))
    if isinstance(exhibit, FigureExhibit):
        said = "; ".join(f"{each.what} {each.number}" for each in exhibit.shown.printed)
        note = f"The paper's text says: {said}." if said else "The paper draws it, and prints no numbers."
        return Filled(exhibit, scale, (*notes, note), charts=tuple(_chart(chart, runs) for chart in exhibit.charts))
    assert isinstance(exhibit, TableExhibit)
    more = (_counts_elsewhere(),) if isinstance(exhibit, CountExhibit) else ()
    return Filled(exhibit, scale, notes, (_table(exhibit, runs), *more))


def _about_data(exhibit: Exhibit, runs: Runs) -> list[str]:
    """What was measured on fewer pictures than the paper had is no equal of its numbers."""
    found = [(config, result_of(config, runs.results)) for config in exhibit.needed(runs.scale)]
    seen = {(find(config.benchmark).source, result.data.get("train")) for config, result in found if result}
    return [
        f"Ours were trained on {train:,} of {source}'s {DATA_SETS[source].train:,} pictures."
        for source, train in sorted(seen, key=str)
        if isinstance(train, int) and train < DATA_SETS[source].train
    ]


def _table(exhibit: TableExhibit, runs: Runs) -> FilledTable:
    table = exhibit.shown
    often = Counter(column.title for column in table.number_columns)
    titles = (
        f"{column.stream.removeprefix('Seq-')}\n{column.title}" if often[column.title] > 1 else column.title
        for column in table.number_columns
    )
    row = _counted_row if isinstance(exhibit, CountExhibit) else _measured_row
    labels = tuple(column.title for column in table.label_columns)
    return FilledTable("", labels, tuple(titles), tuple(row(exhibit, each, runs) for each in table.rows))


def _counted_row(exhibit: TableExhibit, row: Row, runs: Runs) -> FilledRow:
    spec = exhibit.spec_of(row)
    cells = exhibit.shown.cells(row)
    ours = tuple(_papers_count(spec, benchmark_of(row, column), printed) for column, printed in cells)
    return FilledRow(row.labels, row.numbers, ours, f"counted; {spec.missing}" if spec.missing else "counted")


def _measured_row(exhibit: TableExhibit, row: Row, runs: Runs) -> FilledRow:
    spec = exhibit.spec_of(row)
    cells = [(benchmark_of(row, column), column.title, printed) for column, printed in exhibit.shown.cells(row)]
    if spec.missing:
        return FilledRow(row.labels, row.numbers, (Measured(),) * len(cells), spec.missing)
    ours = tuple(_cell(spec, *cell, runs) for cell in cells)
    state = "" if any(runs.of(spec, benchmark) for benchmark, *_ in cells) else NOT_RUN
    return FilledRow(row.labels, row.numbers, ours, state)


def _cell(spec: RunSpec, benchmark: str, title: str, printed: Printed | None, runs: Runs) -> Measured:
    if title in PASSES:
        assert spec.method is not None, "its row is not missing"
        passes = float(getattr(measured_work(spec.method), PASSES[title]))
        return Measured((passes,), 0 if round(passes, 1).is_integer() else 1, counted=True)
    done = runs.of(spec, benchmark)
    if title == PARAMETERS:
        settings = spec.configs(benchmark, runs.scale)[0].settings
        number = parameters(spec.name, settings, benchmark, as_built=True) or (done[0].parameters if done else None)
        full_width = settings == spec.config(benchmark).settings
        return Measured(reason=NOT_RUN) if number is None else _in_millions(number, printed if full_width else None)
    known = tuple(value for result in done if (value := MEASURES[title](result)) is not None)
    return Measured(known, reason="" if known else NOT_DEFINED if done else NOT_RUN)


def _papers_count(spec: RunSpec, benchmark: str, printed: Printed | None) -> Measured:
    number = parameters(spec.name, NetSettings() if spec.missing else spec.config(benchmark).settings, benchmark)
    assert number is not None, "all that the paper counts are nets with a width"
    return _in_millions(number, printed)


def _in_millions(number: int, printed: Printed | None) -> Measured:
    """To one digit more than is printed, so that the rounding can be seen."""
    agrees = None if printed is None else printed.agrees(Decimal(number) / MILLION)
    return Measured((number / MILLION,), 3 if printed is None else printed.digits + 1, agrees, counted=True)


def _counts_elsewhere() -> FilledTable:
    """Of all nets like SPARC's that the other tables print; a row a number."""
    rows = []
    for exhibit in EXHIBITS.values():
        if not isinstance(exhibit, TableExhibit):
            continue
        for row in exhibit.shown.rows:
            spec = exhibit.spec_of(row)
            for column, printed in exhibit.shown.cells(row):
                if column.title != PARAMETERS or printed is None or spec.missing:
                    continue
                benchmark = benchmark_of(row, column)
                if backbone_of(spec.method, spec.config(benchmark).settings) == "separable":
                    ours = _papers_count(spec, benchmark, printed)
                    rows.append(FilledRow((exhibit.id, _joined_labels(exhibit, row)), (printed,), (ours,), ""))
    title = "Counts of SPARC's nets, and of nets like them, that the other tables print"
    return FilledTable(title, ("table", "row"), (PARAMETERS,), tuple(dict.fromkeys(rows)))


def _joined_labels(exhibit: TableExhibit, row: Row) -> str:
    """Each but the method with what it is."""
    return ", ".join(
        label if column.title == "Method" else f"{column.title.lower().removeprefix('#')} {label}"
        for column, label in zip(exhibit.shown.label_columns, row.labels, strict=True)
    )


def _chart(chart: Chart, runs: Runs) -> FilledChart:
    curves = tuple(_curve(curve, runs) for curve in chart.curves)
    if chart.reference is None:
        length = max(len(curve.points) for curve in curves)
        return FilledChart(chart, tuple(str(chart.first + index) for index in range(length)), curves)
    bound = _curve(chart.reference, runs)
    pairs = zip(chart.curves, curves, strict=True)
    return FilledChart(chart, (), tuple(_relative(filled, curve, bound, runs) for curve, filled in pairs))


def _curve(curve: Curve, runs: Runs) -> FilledCurve:
    done = runs.of(curve.spec, curve.benchmark)
    if not done:
        return FilledCurve(curve.name, (), curve.spec.missing or NOT_RUN)
    series = [points for result in done if (points := curve.points(result))]
    if not series:
        return FilledCurve(curve.name, (), "not recorded: remove its runs, and they are run again")
    return FilledCurve(curve.name, tuple(Measured(values) for values in zip(*series, strict=False)))


def _relative(filled: FilledCurve, curve: Curve, bound: FilledCurve, runs: Runs) -> FilledCurve:
    """How many parameters it has, and how much of the bound it reaches."""
    if not filled.points:
        return filled
    highest = bound.points[0].mean if bound.points else None
    if not highest:
        return FilledCurve(curve.name, (), f"{bound.name} {bound.reason or 'is at 0'}")
    size = runs.of(curve.spec, curve.benchmark)[0].parameters / MILLION
    heights = tuple(100 * value / highest for value in filled.points[0].values)
    return FilledCurve(curve.name, (Measured((size,), counted=True), Measured(heights)))
