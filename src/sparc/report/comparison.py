"""The numbers of a comparison: a row a method, mean and deviation over its seeds, and which of them are best."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from math import isnan
from statistics import mean, stdev
from typing import Any, Literal

from sparc.experiment.config import differing, flat_settings
from sparc.experiment.folder import Run
from sparc.experiment.result import Matrix, Result, Setting, numbers
from sparc.metrics import stage_accuracies
from sparc.report.labels import METRIC_MEANINGS, METRIC_SYMBOLS, SETTING_TITLES
from sparc.text import one_line, percent, size

LONGEST_LABEL = 60
BUDGET = ("epochs", "width", "depth", "backbone", "buffer_size")
"""How long is learned, how large the net is and how much it keeps: what rows of all methods should have alike."""
SAID_BY_SIZES = ("tasks", "sizes")
"""Settings of the stream that a result's own sizes tell without doubt."""


@dataclass(frozen=True)
class Cell:
    """Over the seeds of a row; None for what cannot be said, such as the deviation of a single seed."""

    mean: float | None
    deviation: float | None
    best: bool = False
    """As good as any other row's, and better than some."""


@dataclass(frozen=True)
class Column:
    name: str
    """For machines."""
    title: str
    group: str
    """What a table says above it and its neighbours."""
    short: str
    """What it then need say itself."""
    meaning: str
    better: Literal["higher", "lower"]
    value: Callable[[Result], float]
    """What a run has there, nan where that is not defined."""
    number: Callable[[float], str] = percent
    spread: bool = True
    """Whether a deviation says something: a method has as many parameters with every seed."""

    @property
    def arrow(self) -> str:
        return {"higher": "↑", "lower": "↓"}[self.better]

    def parts(self, cell: Cell) -> tuple[str, str]:
        """What is written: the mean, and the deviation if there is one."""
        if cell.mean is None:
            return "–", ""
        deviation = cell.deviation if self.spread else None
        return self.number(cell.mean), "" if deviation is None else self.number(deviation)

    def text(self, cell: Cell) -> str:
        return " ± ".join(filter(None, self.parts(cell)))


@dataclass(frozen=True)
class Row:
    """The runs that differ in nothing but the seed."""

    title: str
    """The method's, in one line and not escaped."""
    method: str
    settings: dict[str, Any]
    """All of them, without the seed."""
    runs: tuple[Run, ...]
    """One a seed, all of them done."""
    cells: dict[str, Cell]
    """By the column's name."""
    said: Mapping[str, str] = field(default_factory=dict)
    """Settings that set the row apart from others, as texts."""

    @property
    def label(self) -> str:
        """The method's title, and whatever sets the row apart from others of the same method."""
        return self.label_without()

    def label_without(self, setting: str | None = None) -> str:
        """The same, but for a setting of which it need not speak."""
        return ", ".join([self.title, *(text for name, text in self.said.items() if name != setting)])

    @property
    def results(self) -> list[Result]:
        return [run.measured for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        return [run.config["seed"] for run in self.runs]

    @property
    def upper_bound(self) -> bool:
        """It sees all pictures again, so it shows what can be had and does not compete."""
        return self.runs[0].measured.upper_bound

    def as_json(self) -> dict[str, Any]:
        cells = {name: asdict(cell) for name, cell in self.cells.items()}
        about = {"label": self.label, "method": self.method, "settings": self.settings, "seeds": self.seeds}
        return {**about, "numbers": cells}


def streams(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that can be compared with each other, together: same benchmark, pictures and cut into tasks."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        key = json.dumps([run.config["benchmark"], run.measured.sizes, run.measured.data.get("fingerprint")])
        groups.setdefault(key, []).append(run)
    return list(groups.values())


def compare(runs: Sequence[Run]) -> list[Row]:
    """A row a method and setting, in the order in which they come; runs must be done, and on one stream.

    Of runs that differ in nothing, seed included, the first counts.
    """
    assert len(streams(runs)) <= 1, "runs on several streams are not comparable"
    groups: dict[str, dict[int, Run]] = {}
    for run in runs:
        key = json.dumps([run.config["method"], _settings(run)], sort_keys=True)
        groups.setdefault(key, {}).setdefault(run.config["seed"], run)
    rows = [
        Row(
            title=one_line(seeds[0].measured.title or seeds[0].config["method"])[:LONGEST_LABEL],
            method=seeds[0].config["method"],
            settings=_settings(seeds[0]),
            runs=tuple(seeds),
            cells={column.name: _cell([column.value(run.measured) for run in seeds]) for column in COLUMNS},
        )
        for seeds in ([group[seed] for seed in sorted(group)] for group in groups.values())
    ]
    return _with_best(_with_labels(rows))


def ranked(rows: Sequence[Row]) -> list[Row]:
    """By Class-IL accuracy, best first; those that have none come last, by Task-IL accuracy."""

    def height(row: Row) -> tuple[float, ...]:
        means = (row.cells[f"{setting}.accuracy"].mean for setting in SETTING_TITLES)
        return tuple(-1.0 if value is None else value for value in means)

    return sorted(rows, key=height, reverse=True)


def matrix(row: Row, setting: Setting) -> Matrix | None:
    """R, mean over seeds."""
    if (each := _matrices(row, setting)) is None:
        return None
    return [
        [None if None in values else mean(values) for values in zip(*rows, strict=True)]
        for rows in zip(*each, strict=True)
    ]


def stages(row: Row, setting: Setting) -> list[Cell] | None:
    """A_τ after each task."""
    return _over_tasks(row, setting, lambda accuracies: stage_accuracies(accuracies).tolist())


def at_the_end(row: Row, setting: Setting) -> list[Cell] | None:
    """Accuracy on each task after the last one."""
    return _over_tasks(row, setting, lambda accuracies: accuracies[-1])


def _over_tasks(
    row: Row, setting: Setting, of_matrix: Callable[[list[list[float]]], Iterable[float]]
) -> list[Cell] | None:
    """A number a task that follows from the accuracy matrix, over seeds."""
    if (each := _matrices(row, setting)) is None:
        return None
    return [_cell(values) for values in zip(*(of_matrix(numbers(r)) for r in each), strict=True)]


def task_confusion(row: Row) -> list[Cell] | None:
    """The share of a balanced test set, in percent, that is given a class of each task at the end."""
    known = [result.task_probabilities for result in row.results if result.class_il]
    shares = [[100 * share for share in each] for each in known if each is not None]
    return [_cell(values) for values in zip(*shares, strict=True)] if len(shares) == len(row.runs) else None


def accuracies_by_part(results: Sequence[Result]) -> list[list[str]]:
    """Rows of a table: A_T in both settings, of the whole and of each part that every seed has; none without parts."""
    named = [name for name in results[0].by_part if all(name in result.by_part for result in results)]
    whole = [{setting: metrics.accuracy for setting, metrics in result.metrics.items()} for result in results]
    found = [(one_line(name)[:LONGEST_LABEL], [result.by_part[name] for result in results]) for name in named]
    rows = []
    for name, seeds in [("all parts", whole), *found] if found else []:
        cells = [_cell([each[setting] for each in seeds]) for setting in SETTING_TITLES]
        rows.append([name, *(column.text(cell) for column, cell in zip(ACCURACIES, cells, strict=True))])
    return rows


def diagnostics_by_task(row: Row) -> dict[str, list[Cell]]:
    """What the method itself tells of each task, by its name; only what every seed has for all tasks."""
    cells = {}
    for name in row.results[0].diagnostics:
        each = [result.diagnostics.get(name, []) for result in row.results]
        if all(len(values) == len(result.sizes) for values, result in zip(each, row.results, strict=True)):
            cells[one_line(name)] = [_cell(values) for values in zip(*each, strict=True)]
    return cells


def mean_and_deviation(values: Sequence[float]) -> tuple[float | None, float | None]:
    """None for what cannot be said, such as the deviation of a single value.

    >>> mean_and_deviation([1.0, 3.0]), mean_and_deviation([1.0]), mean_and_deviation([float("nan")] * 2)
    ((2.0, 1.4142135623730951), (1.0, None), (None, None))
    """
    if any(isnan(value) for value in values):
        return None, None
    return mean(values), stdev(values) if len(values) > 1 else None


def setting_text(name: str, value: object) -> str:
    """A setting for people.

    >>> setting_text("weight_decay", 1e-4), setting_text("sizes", [2, 3]), setting_text("depth", None)
    ('weight decay 0.0001', 'sizes 2 3', 'depth –')
    """
    return f"{name.replace('_', ' ')} {value_text(value)}"


def value_text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(value_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else one_line(str(value))


def _matrices(row: Row, setting: Setting) -> list[Matrix] | None:
    """R of each seed, if all have it."""
    known = [matrix for result in row.results if (matrix := result.matrices[setting]) is not None]
    return known if len(known) == len(row.runs) else None


def _metric_columns(setting: Setting) -> list[Column]:
    return [
        Column(
            name=f"{setting}.{name}",
            title=f"{SETTING_TITLES[setting]} {symbol}",
            group="Accuracy A_T, %" if name == "accuracy" else f"{SETTING_TITLES[setting]}, %",
            short=SETTING_TITLES[setting] if name == "accuracy" else symbol,
            meaning=f"{SETTING_TITLES[setting]}: {METRIC_MEANINGS[name]}, in percent",
            better="lower" if name == "forgetting" else "higher",
            value=lambda result, name=name: getattr(result.metrics[setting], name),  # type: ignore[misc]
        )
        for name, symbol in METRIC_SYMBOLS.items()
    ]


def _cost(
    name: str,
    title: str,
    meaning: str,
    value: Callable[[Result], float],
    number: Callable[[float], str] = "{:g}".format,
    spread: bool = False,
) -> Column:
    return Column(name, title, "Costs", title, meaning, "lower", value, number, spread)


COLUMNS: tuple[Column, ...] = (
    *_metric_columns("class_il"),
    *_metric_columns("task_il"),
    _cost(
        "parameters",
        "Parameters, M",
        "numbers kept after the last task, in millions, copies of the model and masks included",
        lambda result: result.parameters,
        lambda value: f"{value / 1e6:.3f}",
    ),
    _cost(
        "forward",
        "Passes fwd",
        "passes forward through the net that a training step of a later task takes; 0 where later tasks train no net",
        lambda result: result.passes["forward"],
    ),
    _cost(
        "backward",
        "Passes bwd",
        "passes backward through the net that a training step of a later task takes; 0 where later tasks train no net",
        lambda result: result.passes["backward"],
    ),
    _cost("buffer", "Buffer", "old pictures and logits that are kept", lambda result: result.buffer_bytes, size),
    _cost(
        "seconds",
        "Training, s",
        "seconds of training, all tasks together",
        lambda result: sum(result.seconds["train"]),
        lambda value: f"{value:,.{0 if value >= 100 else 1}f}",
        spread=True,
    ),
)
COLUMN = {column.name: column for column in COLUMNS}
ACCURACIES = (COLUMN["class_il.accuracy"], COLUMN["task_il.accuracy"])
MAIN = (
    *ACCURACIES,
    *(column for column in COLUMNS if not column.name.startswith("task_il.") and column not in ACCURACIES),
)
"""The columns that a table shows first: both accuracies, the other Class-IL metrics, and the costs."""


def grouped(columns: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Neighbours that belong together, with what is said above them."""
    return [(group, list(inner)) for group, inner in groupby(columns, key=lambda column: column.group)]


def _cell(values: Sequence[float]) -> Cell:
    return Cell(*mean_and_deviation(values))


def _settings(run: Run) -> dict[str, Any]:
    """All of them, without what the stream is, however that was spelled."""
    stream = run.config.get("stream")
    if not isinstance(stream, dict):
        return flat_settings(run.config)
    stream = {name: value for name, value in stream.items() if name not in SAID_BY_SIZES}
    return flat_settings({**run.config, "stream": stream})


def _with_labels(rows: list[Row]) -> list[Row]:
    """Labels of a method that has several rows say in what they differ; of their budget, all rows speak."""
    labelled = []
    budgets = {name: {json.dumps(row.settings[name]) for row in rows if name in row.settings} for name in BUDGET}
    unequal = {name for name, values in budgets.items() if len(values) > 1}
    for row in rows:
        same = [other.settings for other in rows if other.method == row.method]
        apart = unequal.union(differing(same))
        names = [name for name in dict.fromkeys(name for settings in same for name in settings) if name in apart]
        said = {name: setting_text(one_line(name), row.settings.get(name))[:LONGEST_LABEL] for name in names}
        labelled.append(replace(row, said=said))
    return labelled


def _with_best(rows: list[Row]) -> list[Row]:
    top = {column.name: _top(column, rows) for column in COLUMNS}

    def marked(cells: dict[str, Cell]) -> dict[str, Cell]:
        return {name: replace(cell, best=COLUMN[name].parts(cell)[0] == top[name]) for name, cell in cells.items()}

    return [row if row.upper_bound else replace(row, cells=marked(row.cells)) for row in rows]


def _top(column: Column, rows: list[Row]) -> str | None:
    """The best as it is written: what is written alike is equally good, and where all are alike none is best."""
    cells = [row.cells[column.name] for row in rows if not row.upper_bound]
    known = [cell.mean for cell in cells if cell.mean is not None]
    if len(set(map(column.number, known))) < 2:
        return None
    return column.number((max if column.better == "higher" else min)(known))
