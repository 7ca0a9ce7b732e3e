"""Tables for a terminal."""

from dataclasses import asdict
from statistics import mean, stdev

from rich import box
from rich.table import Table

from sparc.experiment.result import Matrix, Result
from sparc.metrics import Metrics, efficiency, task_probabilities
from sparc.report.words import METRIC_TITLES, SETTING_TITLES, percent


def plain_table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


MOST_COLUMNS = 10
"""Tasks up to which the whole matrix fits a terminal."""


def matrix_table(title: str, matrix: Matrix, sizes: list[int]) -> Table:
    """R: a row a stage, a column a task; the last column is the stage's mean A_τ.

    Of a matrix that is too wide, only the diagonal, the last row and the means are shown.
    """
    if len(sizes) > MOST_COLUMNS:
        return _tall_table(title, matrix, sizes)
    table = plain_table(title, "after learning", *(f"task {task + 1}" for task in range(len(sizes))), "mean")
    for stage, row in enumerate(matrix):
        seen = [value for value in row if value is not None]
        cells = ["" if value is None else percent(value, 1) for value in row]
        table.add_row(f"task {stage + 1} ({sizes[stage]} classes)", *cells, f"[bold]{percent(mean(seen), 1)}")
    return table


def _tall_table(title: str, matrix: Matrix, sizes: list[int]) -> Table:
    table = plain_table(title, "task", "when learned", "at the end", "mean when learned")
    for stage, row in enumerate(matrix):
        seen = [value for value in row if value is not None]
        cells = (percent(value, 1) for value in (seen[-1], matrix[-1][stage], mean(seen)))
        table.add_row(f"task {stage + 1} ({sizes[stage]} classes)", *cells)
    return table


def metrics_table(result: Result) -> Table:
    metrics = result.metrics()
    table = plain_table("Metrics, in percent", "metric", *(SETTING_TITLES[setting] for setting in metrics))
    for name, title in METRIC_TITLES.items():
        table.add_row(title, *(percent(asdict(values)[name]) for values in metrics.values()))
    shares = task_probabilities(result.landings)
    if len(shares) <= MOST_COLUMNS:
        table.add_row("Task probabilities", "  ".join(percent(100 * share, 1) for share in shares), "")
    table.add_row("Efficiency (A_T per M)", percent(efficiency(metrics["class_il"].accuracy, result.parameters)), "")
    return table


def parameters_table(result: Result) -> Table:
    table = plain_table("Parameters", "owner", "number")
    for owner, count in result.parameters_by_owner.items():
        table.add_row(owner, f"{count:,}")
    table.add_row("[bold]all", f"[bold]{result.parameters:,}")
    return table


def seeds_table(results: list[Result]) -> Table:
    """A row a seed, then mean and sample deviation."""
    shown = {"accuracy": "A_T", "average": "Ā", "forgetting": "forgetting"}
    columns = [(setting, name) for setting in SETTING_TITLES for name in shown]
    titles = [f"{SETTING_TITLES[setting]}\n{shown[name]}" for setting, name in columns]
    table = plain_table("All seeds, in percent", "seed", *titles)
    rows = [[asdict(result.metrics()[setting])[name] for setting, name in columns] for result in results]
    for result, row in zip(results, rows, strict=True):
        table.add_row(str(result.config["seed"]), *(percent(value) for value in row))
    table.add_section()
    for title, function in (("mean", mean), ("deviation", stdev)):
        table.add_row(f"[bold]{title}", *(f"[bold]{percent(function(column))}" for column in zip(*rows, strict=True)))
    return table


def summary(results: list[Result]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Mean and sample deviation of every metric, for machines."""
    values: dict[str, list[Metrics]] = {s: [result.metrics()[s] for result in results] for s in SETTING_TITLES}
    return {
        setting: {
            name: {
                "mean": _or_none(mean(asdict(each)[name] for each in metrics)),
                "deviation": _or_none(stdev(asdict(each)[name] for each in metrics)) if len(metrics) > 1 else None,
            }
            for name in METRIC_TITLES
        }
        for setting, metrics in values.items()
    }


def _or_none(value: float) -> float | None:
    return None if value != value else value
