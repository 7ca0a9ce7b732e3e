"""The numbers of a comparison: a row a method, mean and deviation over its seeds, and which of them are best."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from math import isnan
from statistics import mean, stdev
from typing import Any, Literal

from sparc.experiment.config import differing
from sparc.experiment.result import Matrix, Result, numbers
from sparc.methods import METHODS
from sparc.metrics import stage_accuracies, summarize, task_probabilities
from sparc.report.labels import METRIC_MEANINGS, METRIC_SYMBOLS, SETTING_TITLES, percent, size
from sparc.text import one_line

Setting = Literal["class_il", "task_il"]
LONGEST_LABEL = 60
SAID_BY_SIZES = (("stream", "tasks"), ("stream", "sizes"))
"""Settings of a cut that a result's own sizes tell without doubt."""


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
    value: Callable[[Result], float | None]
    """What a run has there, None where that is not defined."""
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

    label: str
    """The method's title, and whatever sets the row apart from others of the same method; one line, not escaped."""
    method: str
    settings: dict[str, Any]
    """All of them, without the seed."""
    results: tuple[Result, ...]
    """One a seed."""
    cells: dict[str, Cell]
    """By the column's name."""

    @property
    def seeds(self) -> list[int]:
        return [result.config["seed"] for result in self.results]

    @property
    def is_bound(self) -> bool:
        """It sees all pictures again, so it shows what can be had and does not compete."""
        return getattr(METHODS.classes.get(self.method), "kind", "") == "upper bound"

    def as_json(self) -> dict[str, Any]:
        cells = {name: asdict(cell) for name, cell in self.cells.items()}
        about = {"label": self.label, "method": self.method, "settings": self.settings, "seeds": self.seeds}
        return {**about, "numbers": cells}


def streams(results: Iterable[Result]) -> list[list[Result]]:
    """Results that can be compared with each other, together: same benchmark, pictures and cut into tasks."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        key = json.dumps([result.config["benchmark"], result.sizes, result.data.get("fingerprint")])
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def compare(results: Sequence[Result]) -> list[Row]:
    """A row a method and setting, in the order in which they come; results must be of one stream.

    Of runs that differ in nothing, seed included, the first counts.
    """
    assert len(streams(results)) <= 1, "results of several streams are not comparable"
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        key = json.dumps([result.config["method"], _settings(result)], sort_keys=True)
        groups.setdefault(key, {}).setdefault(result.config["seed"], result)
    rows = [
        Row(
            label=_title(seeds[0].config["method"]),
            method=seeds[0].config["method"],
            settings=_settings(seeds[0]),
            results=tuple(seeds),
            cells={column.name: _cell([column.value(result) for result in seeds]) for column in COLUMNS},
        )
        for seeds in ([group[seed] for seed in sorted(group)] for group in groups.values())
    ]
    return _with_best(_told_apart(rows))


def ranked(rows: Sequence[Row]) -> list[Row]:
    """By Class-IL accuracy, best first; those that have none come last, by Task-IL accuracy."""

    def height(row: Row) -> tuple[float, ...]:
        means = (row.cells[f"{setting}.accuracy"].mean for setting in SETTING_TITLES)
        return tuple(-1.0 if value is None else value for value in means)

    return sorted(rows, key=height, reverse=True)


def matrix(row: Row, setting: Setting) -> Matrix | None:
    """R, mean over seeds."""
    each = [_matrix(result, setting) for result in row.results]
    known = [matrix for matrix in each if matrix is not None]
    if not known or len(known) < len(each):
        return None
    return [
        [None if None in values else mean(values) for values in zip(*rows, strict=True)]
        for rows in zip(*known, strict=True)
    ]


def stages(row: Row, setting: Setting) -> list[Cell] | None:
    """A_τ after each task."""
    each = [_matrix(result, setting) for result in row.results]
    curves = [stage_accuracies(numbers(matrix)).tolist() for matrix in each if matrix is not None]
    return [_cell(list(values)) for values in zip(*curves, strict=True)] if len(curves) == len(each) else None


def task_confusion(row: Row) -> list[Cell] | None:
    """The share of a balanced test set, in percent, that is given a class of each task at the end."""
    counts = [
        (result.task_confusion, result.sizes) for result in row.results if result.class_il and result.task_confusion
    ]
    if len(counts) < len(row.results):
        return None
    shares = [(100 * task_probabilities(each, sizes)).tolist() for each, sizes in counts]
    return [_cell(list(values)) for values in zip(*shares, strict=True)]


def diagnostics_by_task(row: Row) -> dict[str, list[Cell]]:
    """What the method itself tells of each task, by its name; only what every seed has for all tasks."""
    told = {}
    for name in row.results[0].diagnostics:
        each = [result.diagnostics.get(name, []) for result in row.results]
        if all(len(values) == len(result.sizes) for values, result in zip(each, row.results, strict=True)):
            told[one_line(name)] = [_cell(list(values)) for values in zip(*each, strict=True)]
    return told


def mean_and_deviation(values: list[float]) -> tuple[float | None, float | None]:
    """None for what cannot be said, such as the deviation of a single value.

    >>> mean_and_deviation([1.0, 3.0]), mean_and_deviation([1.0]), mean_and_deviation([float("nan")] * 2)
    ((2.0, 1.4142135623730951), (1.0, None), (None, None))
    """
    if any(isnan(value) for value in values):
        return None, None
    return mean(values), stdev(values) if len(values) > 1 else None


def setting_words(name: str, value: object) -> str:
    """
    >>> setting_words("weight_decay", 1e-4), setting_words("sizes", [2, 3]), setting_words("depth", None)
    ('weight decay 0.0001', 'sizes 2 3', 'depth –')
    """
    return f"{name.replace('_', ' ')} {value_words(value)}"


def value_words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(value_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else one_line(str(value))


def _matrix(result: Result, setting: Setting) -> Matrix | None:
    matrix: Matrix | None = getattr(result, setting)
    return matrix


def _metric(setting: Setting, name: str) -> Callable[[Result], float | None]:
    def value(result: Result) -> float | None:
        matrix = _matrix(result, setting)
        return None if matrix is None else getattr(summarize(numbers(matrix)), name)

    return value


def _metric_columns(setting: Setting) -> list[Column]:
    return [
        Column(
            name=f"{setting}.{name}",
            title=f"{SETTING_TITLES[setting]} {symbol}",
            group="Accuracy A_T, %" if name == "accuracy" else f"{SETTING_TITLES[setting]}, %",
            short=SETTING_TITLES[setting] if name == "accuracy" else symbol,
            meaning=f"{SETTING_TITLES[setting]}: {METRIC_MEANINGS[name]}, in percent",
            better="lower" if name == "forgetting" else "higher",
            value=_metric(setting, name),
        )
        for name, symbol in METRIC_SYMBOLS.items()
    ]


def _cost(
    name: str,
    title: str,
    meaning: str,
    value: Callable[[Result], float | None],
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
        "passes forward through the net that a training step takes",
        lambda result: result.passes["forward"],
    ),
    _cost(
        "backward",
        "Passes bwd",
        "passes backward through the net that a training step takes",
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


def _cell(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(*mean_and_deviation(known)) if known and len(known) == len(values) else Cell(None, None)


def _settings(result: Result) -> dict[str, Any]:
    """The config, flat, without the seed and what the stream is, however that was spelled."""
    flat: dict[str, Any] = {}
    for name, value in result.config.items():
        if isinstance(value, dict):
            parts = {inner: part for inner, part in value.items() if (name, inner) not in SAID_BY_SIZES}
            flat |= {f"{name}.{inner}" if inner in flat else inner: part for inner, part in parts.items()}
        elif name not in ("benchmark", "method", "seed"):
            flat[name] = value
    return flat


def _title(method: str) -> str:
    known = METHODS.classes.get(method)
    return one_line(known.title if known else method)[:LONGEST_LABEL]


def _told_apart(rows: list[Row]) -> list[Row]:
    """Labels of a method that has several rows say in what they differ; of how long was learned, all rows speak."""
    labelled = []
    known = {row.settings.get("epochs") for row in rows if isinstance(row.settings.get("epochs"), int)}
    epochs = {"epochs"} if len(known) > 1 else set()
    for row in rows:
        same = [other.settings for other in rows if other.method == row.method]
        apart = epochs.union(differing(same))
        names = [name for name in dict.fromkeys(name for settings in same for name in settings) if name in apart]
        words = [setting_words(one_line(name), row.settings.get(name))[:LONGEST_LABEL] for name in names]
        labelled.append(replace(row, label=", ".join([row.label, *words])))
    return labelled


def _with_best(rows: list[Row]) -> list[Row]:
    best: dict[str, set[str]] = {}
    for column in COLUMNS:
        values = [row.cells[column.name].mean for row in rows if not row.is_bound]
        known = [value for value in values if value is not None]
        shown = {column.number(value) for value in known}
        # What is written alike is equally good, and where all are alike none is best.
        top = {column.number((max if column.better == "higher" else min)(known))} if len(shown) > 1 else set()
        best[column.name] = top
    return [
        replace(
            row,
            cells={
                name: replace(
                    cell,
                    best=cell.mean is not None and not row.is_bound and COLUMN[name].number(cell.mean) in best[name],
                )
                for name, cell in row.cells.items()
            },
        )
        for row in rows
    ]
