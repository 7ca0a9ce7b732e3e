"""A picture of a run: both accuracy matrices and the metrics."""

import io
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparc.experiment.result import Matrix, Result, numbers
from sparc.files import write_atomic
from sparc.metrics import task_probabilities
from sparc.report.labels import METRIC_TITLES, SETTING_TITLES, heading, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_WRITTEN = 12
"""Tasks up to which every cell has its number written into it."""


def draw(result: Result, path: Path) -> Path:
    """Write a PNG."""
    # Half a second, which verbs that draw nothing should not wait for.
    from matplotlib.figure import Figure

    # `Figure` alone, not pyplot: no window system is touched and no global state is left behind.
    figure = Figure(figsize=(14, 4.8), layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 0.75, 1])
    figure.suptitle(heading(result.config), fontweight="bold", parse_math=False)  # a folder may have a $ in its name
    for axis, (setting, title) in zip(axes, SETTING_TITLES.items(), strict=False):
        matrix = getattr(result, setting)
        if matrix is None:
            _nothing(axis, f"{title} accuracy, %")
        else:
            image = _matrix(axis, matrix, f"{title} accuracy, %")
    figure.colorbar(image, ax=axes[1], shrink=0.7)
    _task_confusion(axes[2], result)
    _metrics(axes[3], result)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120)
    write_atomic(path, content.getvalue())
    return path


def _matrix(axis: "Axes", matrix: Matrix, title: str):  # type: ignore[no-untyped-def] # matplotlib's own type is private
    values = np.array(numbers(matrix))
    image = axis.imshow(values, vmin=0, vmax=100, cmap="viridis")
    axis.set(title=title, xlabel="tested on task", ylabel="after learning task")
    axis.set_xticks(*_ticks(len(values)))
    axis.set_yticks(*_ticks(len(values)))
    if len(values) <= MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(values):
            if column <= row:
                colour = "black" if value > 60 else "white"
                axis.text(column, row, percent(value, 0), ha="center", va="center", color=colour)
    return image


def _ticks(tasks: int) -> tuple[range, list[str]]:
    """Places from 0 and what is written there, from 1; about ten at the most."""
    places = range(0, tasks, max(1, tasks // 10))
    return places, [str(place + 1) for place in places]


def _nothing(axis: "Axes", title: str) -> None:
    axis.set_title(title)
    axis.axis("off")
    axis.text(0.5, 0.5, "–\nit must be told the task", ha="center", va="center", transform=axis.transAxes)


def _task_confusion(axis: "Axes", result: Result) -> None:
    title = "Where test pictures land at the end, %"
    if result.class_il is None or result.task_confusion is None:
        _nothing(axis, title)
        return
    shares = 100 * task_probabilities(result.task_confusion, result.sizes)
    places = np.arange(len(shares))
    axis.bar(places, shares, color="tab:blue")
    even = 100 * np.array(result.sizes) / sum(result.sizes)
    axis.step([-0.5, *(places + 0.5)], [even[0], *even], where="pre", color="black", linestyle="--", label="if even")
    axis.set(title=title, xlabel="task", ylim=(0, 1.2 * max(*shares, *even)))  # the legend is above the bars
    axis.set_xticks(*_ticks(len(shares)))
    axis.legend(frameon=False)


def _metrics(axis: "Axes", result: Result) -> None:
    axis.axis("off")
    metrics = {setting: asdict(values) for setting, values in result.metrics.items()}
    rows = [[title, *(percent(values[name]) for values in metrics.values())] for name, title in METRIC_TITLES.items()]
    rows.append(["Parameters", f"{result.parameters / 1e6:.3f} M", ""])
    table = axis.table(rows, colLabels=["", *SETTING_TITLES.values()], loc="center", colWidths=[0.56, 0.24, 0.24])
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    table.scale(1, 1.7)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor("0.85")
        cell.set_text_props(ha="left" if column == 0 else "right", fontweight="bold" if row == 0 else "normal")
