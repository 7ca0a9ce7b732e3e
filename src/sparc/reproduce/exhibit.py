"""What a table or a figure of the paper is made from: which runs, and what of each."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from sparc.experiment.config import RunConfig
from sparc.experiment.result import Result, numbers
from sparc.methods import METHODS
from sparc.metrics import stage_accuracies, task_probabilities
from sparc.reproduce.paper import Column, Row, Table, the_paper
from sparc.reproduce.plan import STREAMS, RunSpec, Scale, wish

Setting = Literal["class_il", "task_il"]


@dataclass(frozen=True)
class Exhibit(ABC):
    """A table or a figure."""

    id: str
    label: str
    """In the paper's source."""
    title: str
    notes: tuple[str, ...] = ()
    """What the paper leaves open, and what was taken."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """What the paper shows, in our words."""

    @abstractmethod
    def pairs(self) -> list[tuple[RunSpec, str]]:
        """All that it would need: what is run, on which benchmark."""


@dataclass(frozen=True)
class TableExhibit(Exhibit):
    wish_of: Callable[[Row], RunSpec] = lambda row: wish(row.words[0])

    @property
    def table(self) -> Table:
        return the_paper().table(self.label)

    @property
    def caption(self) -> str:
        return self.table.caption

    def pairs(self) -> list[tuple[RunSpec, str]]:
        cells = [(row, column) for row in self.table.rows for column in self.table.measuring()]
        return [(self.wish_of(row), benchmark_of(row, column)) for row, column in cells]


@dataclass(frozen=True)
class CountExhibit(TableExhibit):
    """A table of nothing but parameters, which are counted without a run."""

    def pairs(self) -> list[tuple[RunSpec, str]]:
        return []


Points = Callable[[Result], list[float] | None]
"""What a run shows in a chart, a number a place; None where it has none."""


@dataclass(frozen=True)
class Curve:
    name: str
    wish: RunSpec
    stream: str
    points: Points


@dataclass(frozen=True)
class Chart:
    title: str
    x: str
    y: str
    kind: Literal["lines", "bars", "scatter"]
    curves: tuple[Curve, ...]
    first: int = 1
    """What is written at the first place."""
    reference: Curve | None = None
    """In relation to which a scatter's accuracies stand."""


@dataclass(frozen=True)
class FigureExhibit(Exhibit):
    charts: tuple[Chart, ...] = ()

    @property
    def caption(self) -> str:
        return the_paper().figure(self.label).caption

    def pairs(self) -> list[tuple[RunSpec, str]]:
        curves = [curve for chart in self.charts for curve in (chart.reference, *chart.curves) if curve]
        return [(curve.wish, STREAMS[curve.stream]) for curve in curves]


def benchmark_of(row: Row, column: Column) -> str:
    """The column says what is measured on, or else the row does, with its first word."""
    return STREAMS[column.stream or row.words[0]]


def needed(exhibit: Exhibit, scale: Scale) -> list[RunConfig]:
    """Every run that the methods that there are would need, each once."""
    configs: list[RunConfig] = []
    for each, benchmark in exhibit.pairs():
        configs += [config for config in each.configs(benchmark, scale) if config not in configs]
    return configs


def missing_methods(exhibit: Exhibit) -> list[str]:
    """What the paper compares with and is not there yet, as it prints the names."""
    return list(dict.fromkeys(each.name for each, _ in exhibit.pairs() if each.missing))


def at_the_end(setting: Setting) -> Points:
    """Accuracy on each task after the last one."""

    def points(result: Result) -> list[float] | None:
        matrix = accuracies(result, setting)
        return None if matrix is None else matrix[-1]

    return points


def stages(setting: Setting) -> Points:
    """A_τ after each task."""

    def points(result: Result) -> list[float] | None:
        matrix = accuracies(result, setting)
        return None if matrix is None else [float(value) for value in stage_accuracies(matrix)]

    return points


def last_stage(setting: Setting) -> Points:
    """A_T."""

    def points(result: Result) -> list[float] | None:
        values = stages(setting)(result)
        return None if values is None else values[-1:]

    return points


def stability_by_stage(result: Result) -> list[float] | None:
    """Class-IL accuracy, in the mean over all tasks before the one just learned, from the second on."""
    matrix = accuracies(result, "class_il")
    return None if matrix is None else [mean(matrix[stage][:stage]) for stage in range(1, len(matrix))]


def probabilities(result: Result) -> list[float] | None:
    """Shares in percent."""
    if result.task_confusion is None or accuracies(result, "class_il") is None:
        return None
    return [100 * float(share) for share in task_probabilities(result.task_confusion, result.sizes)]


def recorded(name: str) -> Points:
    """What the method measured of itself."""
    return lambda result: result.diagnostics.get(name)


def accuracies(result: Result, setting: Setting) -> list[list[float]] | None:
    """None for Class-IL where a method has to be told the task."""
    method = METHODS.classes.get(result.config["method"])
    if setting == "class_il" and method is not None and method.needs_task_id:
        return None
    matrix = getattr(result, setting)
    return None if matrix is None else numbers(matrix)
