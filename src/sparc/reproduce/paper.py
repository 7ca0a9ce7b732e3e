"""The paper as data: what its tables and figures print, which of our names its names stand for, and notes on it.

`paper.json` has every number of every table's body; labels are those of the LaTeX source, names as they are printed.
"""

import json
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from importlib import resources
from typing import Any

from sparc.from_json import build


@dataclass(frozen=True)
class Printed:
    """A number to the digit that is printed: 1.90 is not 1.9.

    >>> str(Printed(Decimal("49.03"), Decimal("0.05"))), str(Printed(Decimal("86"), about=True))
    ('49.03 ± 0.05', '≈ 86')
    """

    value: Decimal
    deviation: Decimal | None = None
    about: bool = False
    """With an ≈ before it."""

    @property
    def digits(self) -> int:
        exponent = self.value.as_tuple().exponent
        assert isinstance(exponent, int), "it is a finite number"
        return -exponent

    def agrees(self, exact: Decimal) -> bool:
        """Whether an exact number is printed like this, rounded or cut off.

        >>> [Printed(Decimal("7.85")).agrees(Decimal(exact)) for exact in ("7.845", "7.855", "7.86")]
        [True, True, False]
        """
        return any(exact.quantize(self.value, rounding) == self.value for rounding in (ROUND_HALF_UP, ROUND_DOWN))

    def as_json(self) -> dict[str, Any]:
        deviation = None if self.deviation is None else float(self.deviation)
        return {"value": float(self.value), "deviation": deviation, "printed": str(self)}

    def __str__(self) -> str:
        return ("≈ " if self.about else "") + str(self.value) + (f" ± {self.deviation}" if self.deviation else "")


@dataclass(frozen=True)
class Column:
    title: str
    stream: str = ""
    """What is measured on, where the column and not the row says so."""
    is_label: bool = False
    """It tells rows apart rather than measuring them."""


@dataclass(frozen=True)
class Row:
    labels: tuple[str, ...]
    """By which it differs from the other rows, such as the method."""
    numbers: tuple[Printed | None, ...]
    """None where a dash is printed."""


@dataclass(frozen=True)
class Shown:
    """A table, or a figure that shows results."""

    id: str
    label: str
    """In the LaTeX source."""
    title: str
    caption: str
    """In our words, as the title is."""


@dataclass(frozen=True)
class Table(Shown):
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if (len(row.labels), len(row.numbers)) != (len(self.label_columns), len(self.number_columns)):
                raise ValueError(f"the row {' '.join(row.labels)} of {self.label} does not fit its columns")

    @property
    def label_columns(self) -> list[Column]:
        return [column for column in self.columns if column.is_label]

    @property
    def number_columns(self) -> list[Column]:
        return [column for column in self.columns if not column.is_label]

    def cells(self, row: Row) -> list[tuple[Column, Printed | None]]:
        """What a row has in each column of numbers."""
        return list(zip(self.number_columns, row.numbers, strict=True))


@dataclass(frozen=True)
class Statement:
    """A number that the text prints about a figure."""

    what: str
    number: Printed


@dataclass(frozen=True)
class Figure(Shown):
    printed: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Note:
    """What the paper leaves open and what was taken, or why numbers differ."""

    text: str
    on: tuple[str, ...]
    """Names of tables and figures."""


@dataclass(frozen=True)
class Paper:
    title: str
    streams: dict[str, str]
    """Our benchmarks by the names that it prints."""
    aliases: dict[str, str]
    """Our titles of methods that it calls otherwise."""
    twice_as_long: dict[str, tuple[str, ...]]
    """Its list of exceptions, methods by benchmark, with 100 epochs a task instead of 50."""
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    notes: tuple[Note, ...]

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.id == name)

    def figure(self, name: str) -> Figure:
        return next(figure for figure in self.figures if figure.id == name)


@cache
def the_paper() -> Paper:
    """
    >>> the_paper().table("table-parameters").rows[-1].numbers[1]
    Printed(value=Decimal('1.90'), deviation=None, about=False)
    """
    content = resources.files(__package__).joinpath("paper.json").read_text(encoding="utf-8")
    return build(Paper, json.loads(content, parse_float=Decimal, parse_int=Decimal))
