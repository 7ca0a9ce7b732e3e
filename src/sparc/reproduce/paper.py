"""The paper as data: what its tables and figures print, and nothing of ours.

`paper.json` has every number of every table's body; labels are those of the LaTeX source, names as they are printed.
"""

import json
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from importlib import resources

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

    def __str__(self) -> str:
        return ("≈ " if self.about else "") + str(self.value) + (f" ± {self.deviation}" if self.deviation else "")


@dataclass(frozen=True)
class Column:
    title: str
    stream: str = ""
    """What is measured on, where the column and not the row says so."""
    words: bool = False
    """Tells rows apart rather than measuring them."""


@dataclass(frozen=True)
class Row:
    words: tuple[str, ...]
    """By which it differs from the other rows, such as the method."""
    numbers: tuple[Printed | None, ...]
    """None where a dash is printed."""


@dataclass(frozen=True)
class Table:
    label: str
    caption: str
    """In our words."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        words = sum(column.words for column in self.columns)
        for row in self.rows:
            if (len(row.words), len(row.numbers)) != (words, len(self.columns) - words):
                raise ValueError(f"the row {' '.join(row.words)} of {self.label} does not fit its columns")

    def naming(self) -> list[Column]:
        return [column for column in self.columns if column.words]

    def measuring(self) -> list[Column]:
        return [column for column in self.columns if not column.words]


@dataclass(frozen=True)
class Statement:
    """A number that the text prints about a figure."""

    what: str
    number: Printed


@dataclass(frozen=True)
class Figure:
    label: str
    caption: str
    printed: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Paper:
    title: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    """Those that show results."""

    def table(self, label: str) -> Table:
        return next(table for table in self.tables if table.label == label)

    def figure(self, label: str) -> Figure:
        return next(figure for figure in self.figures if figure.label == label)


@cache
def the_paper() -> Paper:
    """
    >>> the_paper().table("tab:parameter").rows[-1].numbers[1]
    Printed(value=Decimal('1.90'), deviation=None, about=False)
    """
    content = resources.files(__package__).joinpath("paper.json").read_text(encoding="utf-8")
    return build(Paper, json.loads(content, parse_float=Decimal, parse_int=Decimal))
