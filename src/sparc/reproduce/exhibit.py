"""What a table or a figure of the paper is made from: which runs, and what of each."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparc.experiment.config import RunConfig
from sparc.reproduce.measures import Points
from sparc.reproduce.paper import Column, Figure, Row, Shown, Table, the_paper
from sparc.reproduce.plan import RunSpec, Scale


@dataclass(frozen=True)
class Exhibit(ABC):
    """A table or a figure."""

    shown: Shown
    """What the paper has of it."""

    @property
    def id(self) -> str:
        return self.shown.id

    @property
    def notes(self) -> list[str]:
        return [note.text for note in the_paper().notes if self.id in note.on]

    @abstractmethod
    def specs(self) -> list[tuple[RunSpec, str]]:
        """All that it would need: what is run, on which benchmark."""

    def needed(self, scale: Scale) -> list[RunConfig]:
        """Every run that the methods that there are would need, each once."""
        return list(dict.fromkeys(config for spec, on in self.specs() for config in spec.configs(on, scale)))

    def missing_methods(self) -> list[str]:
        """What the paper compares with and is not there yet, as it prints the names."""
        return list(dict.fromkeys(spec.name for spec, _ in self.specs() if spec.missing))


@dataclass(frozen=True)
class TableExhibit(Exhibit):
    shown: Table
    spec_of: Callable[[Row], RunSpec]

    def specs(self) -> list[tuple[RunSpec, str]]:
        rows, columns = self.shown.rows, self.shown.number_columns
        return [(self.spec_of(row), benchmark_of(row, column)) for row in rows for column in columns]


@dataclass(frozen=True)
class CountExhibit(TableExhibit):
    """A table of nothing but parameters, which are counted without a run."""

    def specs(self) -> list[tuple[RunSpec, str]]:
        return []


def benchmark_of(row: Row, column: Column) -> str:
    """The column says what is measured on, or else the row does, with its first label."""
    return the_paper().streams[column.stream or row.labels[0]]


@dataclass(frozen=True)
class Curve:
    name: str
    spec: RunSpec
    benchmark: str
    points: Points


@dataclass(frozen=True)
class Chart:
    title: str
    x: str
    y: str
    kind: Literal["lines", "bars", "scatter"]
    curves: tuple[Curve, ...]
    first: int = 1
    """The x of the first point."""
    reference: Curve | None = None
    """In relation to which a scatter's accuracies stand."""


@dataclass(frozen=True)
class FigureExhibit(Exhibit):
    shown: Figure
    charts: tuple[Chart, ...]

    def specs(self) -> list[tuple[RunSpec, str]]:
        curves = [curve for chart in self.charts for curve in (chart.reference, *chart.curves) if curve]
        return [(curve.spec, curve.benchmark) for curve in curves]
