"""What people look at: tables and pictures, made from results alone."""

from sparc.report.comparison import COLUMNS, MAIN, Cell, Column, Row, compare, grouped, ranked
from sparc.report.labels import METRIC_TITLES, percent
from sparc.report.run_png import draw
from sparc.report.tables import matrix_table, metrics_table, parameters_table, plain_table, seeds_table, summary

__all__ = [
    "COLUMNS",
    "MAIN",
    "METRIC_TITLES",
    "Cell",
    "Column",
    "Row",
    "compare",
    "draw",
    "grouped",
    "matrix_table",
    "metrics_table",
    "parameters_table",
    "percent",
    "plain_table",
    "ranked",
    "seeds_table",
    "summary",
]
