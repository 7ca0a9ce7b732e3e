"""What people look at: tables and pictures, made from results alone."""

from sparc.report.figure import draw
from sparc.report.tables import matrix_table, metrics_table, parameters_table, plain_table, seeds_table, summary
from sparc.report.words import METRIC_TITLES, percent

__all__ = [
    "METRIC_TITLES",
    "draw",
    "matrix_table",
    "metrics_table",
    "parameters_table",
    "percent",
    "plain_table",
    "seeds_table",
    "summary",
]
