"""Comparisons as files for other programs: CSV, a line a run; LaTeX and Markdown, a table a study."""

import csv
import io
import re
from collections.abc import Sequence

from sparc.report.comparison import COLUMNS, MAIN, Column, Row, grouped
from sparc.report.study import Study
from sparc.text import markdown, one_line

LATEX_LETTERS = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
}
SYMBOLS = {"A_T": "$A_T$", "Ā": r"$\bar{A}$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"}


def as_csv(studies: Sequence[Study]) -> str:
    """A line a run, a column a number, empty where it is not defined."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    heads = [column.name.replace(".", "_") for column in COLUMNS]
    lines.writerow(["benchmark", "label", "method", "seed", "tasks", "epochs", "folder", *heads])
    for study in studies:
        for row in study.rows:
            for run in row.runs:
                values = [column.value(run.measured) for column in COLUMNS]
                names = map(_harmless, (study.benchmark, row.label, row.method))
                about = (run.config["seed"], len(run.measured.sizes), row.settings.get("epochs", ""))
                # nan, such as forgetting after a single task, is the one value that is not itself.
                numbers = ("" if value is None or value != value else value for value in values)
                lines.writerow([*names, *about, _harmless(run.folder.name), *numbers])
    return written.getvalue()


def as_latex(studies: Sequence[Study]) -> str:
    return "% Needs \\usepackage{booktabs}.\n" + "\n".join(map(_latex_table, studies))


def as_markdown(studies: Sequence[Study]) -> str:
    return "\n".join(map(_markdown_table, studies))


def latex(text: str) -> str:
    r"""The text, escaped so that LaTeX shows it as it stands.

    >>> print(latex("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(LATEX_LETTERS.get(letter, letter) for letter in one_line(text))


def _harmless(text: str) -> str:
    """The text of a cell that no spreadsheet takes for a formula: a quotation mark before it makes it text."""
    return f"'{one_line(text)}" if re.match(r"[=+\-@\t\r]", text) else one_line(text)


def _latex_table(study: Study) -> str:
    groups, rules, start = [], [], 2
    for group, columns in grouped(MAIN):
        groups.append(rf"\multicolumn{{{len(columns)}}}{{c}}{{{_symbols(group)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + len(columns) - 1}}}")
        start += len(columns)
    titles = [f"{_symbols(column.short)} {SYMBOLS[column.arrow]}" for column in MAIN]
    lines = [
        f"% {latex(study.in_a_line())}; mean and deviation of a sample",
        rf"\begin{{tabular}}{{l{'r' * len(MAIN)}}}",
        r"\toprule",
        " & ".join(["", *groups]) + r" \\",
        " ".join(rules),
        " & ".join(["Method", *titles]) + r" \\",
        r"\midrule",
        *(
            " & ".join([latex(row.label), *(_latex_cell(column, row) for column in MAIN)]) + r" \\"
            for row in study.rows
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _symbols(title: str) -> str:
    """Our own titles, with what is mathematics in them set as such."""
    return "".join(SYMBOLS.get(part) or latex(part) for part in re.split("(A_T|Ā)", title))


def _latex_cell(column: Column, row: Row) -> str:
    cell = row.cells[column.name]
    mean, spread = map(latex, column.parts(cell))
    mean = rf"\textbf{{{mean}}}" if cell.best else mean
    return rf"{mean} $\pm$ {spread}" if spread else mean


def _markdown_table(study: Study) -> str:
    titles = [f"{column.title} {column.arrow}" for column in MAIN]
    lines = [
        ["Method", *titles],
        ["---", *("---:" for _ in titles)],
        *([markdown(row.label), *(_markdown_cell(column, row) for column in MAIN)] for row in study.rows),
    ]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    # Words of ours come first, or a benchmark named "- a" would begin a list.
    return f"Accuracies in percent, mean ± deviation of a sample; {markdown(study.in_a_line())}\n\n{table}"


def _markdown_cell(column: Column, row: Row) -> str:
    cell = row.cells[column.name]
    mean, spread = column.parts(cell)
    return " ± ".join(filter(None, (f"**{mean}**" if cell.best else mean, spread)))
