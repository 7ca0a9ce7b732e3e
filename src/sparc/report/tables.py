"""Tables for a terminal."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean

from rich.markup import escape
from rich.table import Table

from sparc.experiment.result import Matrix, Result, summarized
from sparc.report.comparison import COLUMNS, Row, accuracies_by_part, mean_and_deviation
from sparc.report.labels import METRIC_SYMBOLS, METRIC_TITLES, SETTING_TITLES
from sparc.report.plain_table import plain_table
from sparc.text import counted, percent, spread

MAX_COLUMNS = 10
"""Tasks up to which the whole matrix fits a terminal."""


def matrix_table(title: str, matrix: Matrix, sizes: list[int]) -> Table:
    """The accuracy matrix R: a row a stage, a column a task; the last column is the stage's mean A_τ.

    Of a matrix that is too wide, only the diagonal, the last row and the means are shown.
    """
    if len(sizes) > MAX_COLUMNS:
        return _tall_table(title, matrix, sizes)
    table = plain_table(title, "after learning", *(f"task {task + 1}" for task in range(len(sizes))), "mean")
    for stage, row in enumerate(matrix):
        seen = [value for value in row if value is not None]
        cells = ["" if value is None else percent(value, 1) for value in row]
        table.add_row(_task_title(stage, sizes[stage]), *cells, f"[bold]{percent(mean(seen), 1)}")
    return table


def _task_title(index: int, classes: int) -> str:
    return f"task {index + 1} ({counted(classes, 'class', 'classes')})"


def _tall_table(title: str, matrix: Matrix, sizes: list[int]) -> Table:
    table = plain_table(title, "task", "when learned", "at the end", "mean when learned")
    for stage, row in enumerate(matrix):
        seen = [value for value in row if value is not None]
        cells = (percent(value, 1) for value in (seen[-1], matrix[-1][stage], mean(seen)))
        table.add_row(_task_title(stage, sizes[stage]), *cells)
    return table


def metrics_table(result: Result) -> Table:
    metrics = result.metrics
    table = plain_table("Metrics, in percent", "metric", *(SETTING_TITLES[setting] for setting in metrics))
    for name, title in METRIC_TITLES.items():
        table.add_row(title, *(percent(asdict(values)[name]) for values in metrics.values()))
    if result.validation:
        held_out = [summarized(result.validation[setting]).accuracy for setting in metrics]
        table.add_row("A_T on pictures held out ↑", *(percent(value) for value in held_out))
    shares = result.task_probabilities
    if shares is not None and len(shares) <= MAX_COLUMNS:
        table.add_row("Lands on each task", "  ".join(percent(100 * share, 1) for share in shares), "")
    table.add_row("A_T per million parameters ↑", percent(result.efficiency), "")
    return table


def parts_table(results: Sequence[Result]) -> Table:
    """A_T by part, mean and sample deviation over seeds; no rows where a method has no parts."""
    table = plain_table(f"{METRIC_SYMBOLS['accuracy']} by parts, in percent", "answers", *SETTING_TITLES.values())
    for name, *accuracies in accuracies_by_part(results):
        table.add_row(escape(name), *accuracies)
    return table


def seeds_table(results: list[Result]) -> Table:
    """Metrics of each seed, a row a seed, then mean and sample deviation."""
    columns = [(setting, name) for setting in SETTING_TITLES for name in ("accuracy", "average", "forgetting")]
    titles = [f"{SETTING_TITLES[setting]}\n{METRIC_SYMBOLS[name]}" for setting, name in columns]
    table = plain_table("All seeds, in percent; deviation of a sample (n − 1)", "seed", *titles)
    rows = [[asdict(result.metrics[setting])[name] for setting, name in columns] for result in results]
    for result, row in zip(results, rows, strict=True):
        table.add_row(str(result.config["seed"]), *(percent(value) for value in row))
    table.add_section()
    summaries = [mean_and_deviation(list(column)) for column in zip(*rows, strict=True)]
    for title, values in zip(("mean", "deviation"), zip(*summaries, strict=True), strict=True):
        table.add_row(f"[bold]{title}", *(f"[bold]{percent(value)}" for value in values))
    return table


def summary(results: list[Result]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Mean and sample deviation of every metric over seeds, for machines."""
    metrics = {setting: [asdict(result.metrics[setting]) for result in results] for setting in SETTING_TITLES}
    return {
        setting: {
            name: dict(zip(("mean", "deviation"), mean_and_deviation([each[name] for each in values]), strict=True))
            for name in METRIC_TITLES
        }
        for setting, values in metrics.items()
    }


def comparison_tables(rows: Sequence[Row]) -> list[Table]:
    """A row a method, best in bold; three tables, as one would be too wide for a terminal."""
    seeds = [len(row.seeds) for row in rows]
    over = f", mean ± deviation of a sample over {spread(seeds, 'seed')}" if max(seeds, default=0) > 1 else ""
    parts = {f"{SETTING_TITLES[setting]}, in percent{over}": f"{setting}." for setting in SETTING_TITLES}
    tables = []
    for title, prefix in {**parts, "Costs": ""}.items():
        columns = [each for each in COLUMNS if each.name.startswith(prefix) and ("." in each.name) is bool(prefix)]
        titles = (each.title.removeprefix(f"{title.split(',')[0]} ") for each in columns)
        table = plain_table(
            title, "method", *(f"{name} {each.arrow}" for name, each in zip(titles, columns, strict=True))
        )
        table.collapse_padding = True
        for row in rows:
            # Without a space, as lines are broken there.
            cells = [
                (each.text(row.cells[each.name]).replace("± ", "±"), row.cells[each.name].best) for each in columns
            ]
            table.add_row(escape(row.label), *(f"[bold]{text}[/bold]" if best else text for text, best in cells))
        tables.append(table)
    return tables
