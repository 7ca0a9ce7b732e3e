"""The paper's tables and figures, filled in with what was measured here. All functions are pure."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from math import isnan
from typing import Any

from sparc.experiment.config import RunConfig
from sparc.experiment.folder import Run
from sparc.experiment.identity import find_done
from sparc.experiment.result import Result
from sparc.methods.settings import NetSettings
from sparc.report.comparison import Cell, mean_and_deviation
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.counts import backbone_of, data_of, measured_work, parameters
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


@dataclass(frozen=True, kw_only=True)
class Measured(Cell):
    """What was measured or counted here, or why there is nothing.

    >>> str(over_seeds([1.0, 3.0])), str(Measured(mean=1.0, digits=3, agrees=False)), str(Measured(reason="not run"))
    ('2.00 ± 1.41', '1.000 ✗', 'not run')
    """

    mean: float | None = None
    deviation: float | None = None
    seeds: int = 0
    """How many it is the mean over; 0 for what was counted."""
    digits: int = 2
    agrees: bool | None = None
    """Of a count: whether it is the paper's, to the digit that is printed."""
    reason: str = ""
    """Why there is no number."""

    def __str__(self) -> str:
        if self.mean is None:
            return self.reason
        spread = "" if self.deviation is None else f" ± {self.deviation:.{self.digits}f}"
        return f"{self.mean:,.{self.digits}f}{spread}{ {True: ' ✓', False: ' ✗', None: ''}[self.agrees] }"

    def as_json(self) -> dict[str, Any]:
        about = {"mean": self.mean, "deviation": self.deviation, "n": self.seeds}
        return {**about, "agrees": self.agrees, "reason": self.reason or None}


def over_seeds(values: Sequence[float]) -> Measured:
    mean, deviation = mean_and_deviation(list(values))
    return Measured(mean=mean, deviation=deviation, seeds=len(values))


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
        return {each.seeds for each in self.ours} - {0}

    def as_json(self) -> dict[str, Any]:
        return {
            "labels": self.labels,
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
    points: tuple[tuple[float, Measured], ...] = ()
    """How far right, and how far up."""
    reason: str = ""
    """Why there are none."""

    @property
    def about(self) -> str:
        return self.reason or counted(self.points[-1][1].seeds, "seed")

    def as_json(self) -> dict[str, Any]:
        points = [{"x": x, **y.as_json()} for x, y in self.points]
        return {"name": self.name, "points": points, "reason": self.reason or None}


@dataclass(frozen=True)
class FilledChart:
    chart: Chart
    curves: tuple[FilledCurve, ...]

    def as_json(self) -> dict[str, Any]:
        titles = {"title": self.chart.title, "x": self.chart.x, "y": self.chart.y}
        return {**titles, "curves": [curve.as_json() for curve in self.curves]}


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
            "scale": {**asdict(self.scale), "text": self.scale_text},
            "tables": [table.as_json() for table in self.tables],
            "charts": [chart.as_json() for chart in self.charts],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Runs:
    """What has been run, at one scale."""

    done: Sequence[Run]
    scale: Scale

    def of(self, spec: RunSpec, benchmark: str) -> list[Result]:
        """One a seed that has been run."""
        return self.with_configs(spec.configs(benchmark, self.scale))

    def with_configs(self, configs: Iterable[RunConfig]) -> list[Result]:
        return [run.measured for config in configs if (run := find_done(config, self.done)) is not None]


def fill(exhibit: Exhibit, done: Sequence[Run], scale: Scale) -> Filled:
    runs = Runs(done, scale)
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
    sentences = set()
    for result in runs.with_configs(exhibit.needed(runs.scale)):
        data, train = data_of(result.config["benchmark"]), result.data.get("train")
        if isinstance(train, int) and train < data.train_pictures:
            sentences.add(f"Ours were trained on {train:,} of {data.name}'s {data.train_pictures:,} pictures.")
    return sorted(sentences)


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
        # What is done beside passes weighs more beside the small net that they are counted on than beside a real one.
        whole = math.isclose(passes, round(passes), rel_tol=0.06)
        return Measured(mean=passes, digits=0 if whole else 1)
    done = runs.of(spec, benchmark)
    if title == PARAMETERS:
        settings = spec.configs(benchmark, runs.scale)[0].settings
        number = parameters(spec.name, settings, benchmark, as_built=True) or (done[0].parameters if done else None)
        full_width = settings == spec.config(benchmark).settings
        return Measured(reason=NOT_RUN) if number is None else _in_millions(number, printed if full_width else None)
    values = (MEASURES[title](result) for result in done)
    known = [value for value in values if value is not None and not isnan(value)]
    return over_seeds(known) if known else Measured(reason=NOT_DEFINED if done else NOT_RUN)


def _papers_count(spec: RunSpec, benchmark: str, printed: Printed | None) -> Measured:
    number = parameters(spec.name, NetSettings() if spec.missing else spec.config(benchmark).settings, benchmark)
    assert number is not None, "all that the paper counts are nets with a width"
    return _in_millions(number, printed)


def _in_millions(number: int, printed: Printed | None) -> Measured:
    """To one digit more than is printed, so that the rounding can be seen."""
    agrees = None if printed is None else printed.agrees(Decimal(number) / MILLION)
    return Measured(mean=number / MILLION, digits=3 if printed is None else printed.digits + 1, agrees=agrees)


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
    curves = tuple(_curve(curve, chart.first, runs) for curve in chart.curves)
    if chart.reference is None:
        return FilledChart(chart, curves)
    bound = _curve(chart.reference, chart.first, runs)
    pairs = zip(chart.curves, curves, strict=True)
    return FilledChart(chart, tuple(_relative(filled, curve, bound, runs) for curve, filled in pairs))


def _curve(curve: Curve, first: int, runs: Runs) -> FilledCurve:
    done = runs.of(curve.spec, curve.benchmark)
    if not done:
        return FilledCurve(curve.name, reason=curve.spec.missing or NOT_RUN)
    series = [points for result in done if (points := curve.points(result))]
    if not series:
        return FilledCurve(curve.name, reason="not recorded: remove its runs, and they are run again")
    return FilledCurve(curve.name, tuple(enumerate(map(over_seeds, zip(*series, strict=False)), first)))


def _relative(filled: FilledCurve, curve: Curve, bound: FilledCurve, runs: Runs) -> FilledCurve:
    """How many parameters it has, and how much of the bound it reaches."""
    if not filled.points:
        return filled
    highest = bound.points[0][1].mean if bound.points else None
    if not highest:
        return FilledCurve(curve.name, reason=f"{bound.name} {bound.reason or 'is at 0'}")
    done = runs.of(curve.spec, curve.benchmark)
    heights = [100 * values[0] / highest for result in done if (values := curve.points(result))]
    return FilledCurve(curve.name, ((done[0].parameters / MILLION, over_seeds(heights)),))
