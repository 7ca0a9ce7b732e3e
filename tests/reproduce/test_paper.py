"""The paper's numbers as data, checked against its source where that lies beside the checkout."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from sparc.reproduce.paper import Column, Paper, Printed, Row, Table, the_paper

SOURCE = next(
    (path for parent in Path(__file__).parents if (path := parent / "shared/paper/sparc.tex").is_file()), None
)
NO_RESULTS = {"fig:main", "fig:cil"}
"""Figures that explain the method."""
with_source = pytest.mark.skipif(SOURCE is None, reason="the paper's LaTeX source does not lie beside the checkout")


def source() -> str:
    assert SOURCE is not None
    return SOURCE.read_text()


def body(label: str) -> str:
    """What stands below a table's head."""
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", source(), re.DOTALL)
    (table,) = (table for table in tables if rf"\label{{{label}}}" in table)
    inside = re.search(r"\\begin\{tabular\}(.*)\\end\{tabular\}", table, re.DOTALL)
    assert inside is not None
    head_end = r"\toprule" if inside[1].count(r"\toprule") == 2 else r"\midrule"
    return inside[1].replace(r"\toprule", "", inside[1].count(r"\toprule") - 1).split(head_end, 1)[1]


def without_citations(text: str) -> str:
    return re.sub(r"\\cite[pt]?\{[^}]*\}", "", text)


def text_of(cell: str) -> str:
    """What is left to read when all commands are gone."""
    plain = without_citations(cell).replace("$^{2}$", "²").replace(r"\multirow{4}{*}", "")
    plain = re.sub(r"\\(midrule|rowcolor\{[^}]*\}|textbf|underline|small)", "", plain)
    return " ".join(re.sub(r"[{}$]", " ", plain).split())


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", without_citations(text))


def printed(row: Row) -> list[str]:
    found = []
    for number in row.numbers:
        if number is not None:
            found += [str(number.value), *([str(number.deviation)] if number.deviation is not None else [])]
    return found


def lines(label: str) -> list[list[str]]:
    """The cells of every row of a table's body."""
    rows = [line.split("&") for line in body(label).split(r"\\")]
    return [row for row in rows if len(row) > 1]


@with_source
def test_the_file_has_every_table_and_every_figure_that_shows_results() -> None:
    labels = re.findall(r"\\label\{((?:tab|fig):[^}]*)\}", source())
    assert [table.label for table in the_paper().tables] == [label for label in labels if label.startswith("tab:")]
    figures = [label for label in labels if label.startswith("fig:") and label not in NO_RESULTS]
    assert [figure.label for figure in the_paper().figures] == figures
    assert the_paper().title in source()


@with_source
@pytest.mark.parametrize("table", the_paper().tables, ids=lambda table: table.label)
def test_every_row_is_as_it_is_printed_and_none_is_missing(table: Table) -> None:
    rows = lines(table.label)
    assert len(rows) == len(table.rows)
    above = ""
    for cells, row in zip(rows, table.rows, strict=True):
        # Forward and backward passes are two columns here and one there.
        columns = [column for column in table.columns if column.title != "backward passes"]
        assert len(cells) == len(columns)
        named = [text_of(cell) for cell, column in zip(cells, columns, strict=True) if column.is_label]
        named[0] = above = named[0] or above
        assert tuple(named) == row.labels
        measured = [cell for cell, column in zip(cells, columns, strict=True) if not column.is_label]
        assert [number for cell in measured for number in numbers(cell)] == printed(row)
        if "forward passes" not in [column.title for column in table.columns]:
            for cell, number in zip(measured, row.numbers, strict=True):
                assert (text_of(cell) == "-") == (number is None)
                assert (r"\approx" in cell) == (number is not None and number.about)


@with_source
@pytest.mark.parametrize("table", the_paper().tables, ids=lambda table: table.label)
def test_no_number_stands_outside_of_the_rows(table: Table) -> None:
    between = [line for line in body(table.label).split(r"\\") if "&" not in line]
    assert not numbers("".join(between))


@with_source
def test_what_is_said_of_a_figure_is_printed_where_it_is_spoken_of() -> None:
    for figure in the_paper().figures:
        paragraphs = [text for text in source().split("\n\n") if rf"\ref{{{figure.label}}}" in text]
        assert paragraphs, f"{figure.label} is spoken of somewhere"
        for statement in figure.printed:
            assert any(str(statement.number) in numbers(text) for text in paragraphs)


def test_ten_tables_and_seven_figures_with_their_own_labels() -> None:
    paper = the_paper()
    labels = [each.label for each in (*paper.tables, *paper.figures)]
    assert len(set(labels)) == len(labels) == 17
    assert len(paper.tables) == 10


def test_notes_are_on_tables_and_figures_that_there_are() -> None:
    names = {each.id for each in (*the_paper().tables, *the_paper().figures)}
    assert all(note.on and names.issuperset(note.on) for note in the_paper().notes)


def test_digits_are_kept_as_printed() -> None:
    width = the_paper().table("table-width-depth").rows[6]
    assert str(width.numbers[0]) == "1.040"
    assert width.numbers[0] is not None
    assert width.numbers[0].digits == 3
    assert str(the_paper().table("table-results").rows[0].numbers[-1]) == "82.04 ± 0.10"


def test_rounded_and_cut_off_both_agree_and_nothing_else_does() -> None:
    number = Printed(Decimal("1.97"))
    assert [number.agrees(Decimal(exact)) for exact in ("1.965", "1.9649", "1.9799", "1.98", "1.926657")] == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_row_that_does_not_fit_its_table_is_refused() -> None:
    row = Row(("ER",), (Printed(Decimal("1")),))
    with pytest.raises(ValueError, match="ER of tab:x does not fit"):
        Table("table-x", "tab:x", "", "", (Column("Method", is_label=True),), (row,))


def test_every_number_is_finite_and_no_deviation_is_negative() -> None:
    def all_numbers(paper: Paper) -> list[Printed]:
        return [number for table in paper.tables for row in table.rows for number in row.numbers if number is not None]

    for number in all_numbers(the_paper()):
        assert number.value.is_finite()
        assert number.value > 0
        assert number.deviation is None or number.deviation > 0
