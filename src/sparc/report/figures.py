"""The figures of a comparison: which there are, and how each is to be read."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparc.report.axis import Axis
from sparc.report.charts import MOST_WRITTEN, Head, Series, bars, heat_map, lines, points
from sparc.report.colours import SERIES
from sparc.report.comparison import (
    Cell,
    Setting,
    diagnostics_by_task,
    matrix,
    mean_and_deviation,
    stages,
    task_confusion,
)
from sparc.report.drawing import Drawing
from sparc.report.labels import SETTING_TITLES
from sparc.report.study import Study

SETTINGS: tuple[Setting, ...] = ("class_il", "task_il")
MOST_POINTS = 300
"""Of a line; more cannot be seen."""
MOST_TOLD = 3 * SERIES
"""Lines in a chart that can be told apart."""


@dataclass(frozen=True)
class Figure:
    name: str
    """A file's, without its ending."""
    caption: str
    drawing: Drawing


def stage_figures(study: Study) -> list[Figure]:
    """Mean accuracy after each task."""
    drawn = []
    for setting in SETTINGS:
        series = [
            Series(row.label, place, list(enumerate(curve, 1)))
            for place, row in enumerate(study.rows)
            if (curve := stages(row, setting)) is not None
        ]
        if series:
            x = Axis("tasks learned", 1, len(series[0].points), whole=True)
            y = _accuracy_axis("mean accuracy on the tasks learned so far, %", series)
            head = Head(f"{SETTING_TITLES[setting]} accuracy, task after task", study.in_a_line())
            drawn.append(Figure(f"stages-{_file(setting)}", STAGE_CAPTIONS[setting], lines(head, x, y, series)))
    return drawn


def size_figures(study: Study) -> list[Figure]:
    """Parameters against accuracy."""
    sizes = [(row.cells["parameters"].mean or 1) / 1e6 for row in study.rows]
    x = Axis("parameters, in millions (log scale)", min(sizes) / 2, max(sizes) * 2, log=True)
    drawn = []
    for setting in SETTINGS:
        series = [
            Series(row.label, place, [(size, cell)])
            for place, (row, size) in enumerate(zip(study.rows, sizes, strict=True))
            if (cell := row.cells[f"{setting}.accuracy"]).mean is not None
        ]
        if series:
            y = _accuracy_axis("accuracy A_T after the last task, %", series)
            head = Head(f"Size against {SETTING_TITLES[setting]} accuracy", study.in_a_line())
            drawn.append(Figure(f"size-{_file(setting)}", SIZE_CAPTION, points(head, x, y, series)))
    return drawn


def _accuracy_axis(title: str, series: Sequence[Series]) -> Axis:
    """Methods that are all far from 100 % could not be told apart below it."""
    return Axis(title, 0, _top(mean + spread for each in series for _, mean, spread in each.known()))


def _top(values: Iterable[float]) -> float:
    """The next percentage above all of these that an axis has a mark at."""
    highest = max(values)
    return next((top for top in (10, 20, 30, 40, 50, 60, 80) if top > highest), 100)


def loss_figures(study: Study) -> list[Figure]:
    """Training loss, where there are logs."""
    series = []
    for place, row in enumerate(study.rows):
        each = [run.losses for run in row.runs if run.losses]
        # An epoch whose line was lost with a machine would shift all that come after it.
        if each and all([at for at, _ in curve] == [at for at, _ in each[0]] for curve in each):
            cells = [Cell(*mean_and_deviation([loss for _, loss in epoch])) for epoch in zip(*each, strict=True)]
            curve = list(zip([at for at, _ in each[0]], cells, strict=True))
            series.append(Series(row.label, place, curve[:: math.ceil(len(curve) / MOST_POINTS)]))
    if not series:
        return []
    means = [mean for each in series for _, mean, _ in each.known()]
    low, high = min(means), max(means)
    logarithmic = low > 0 and high / low > 20
    edges = (max(low, high / 1e4), high) if logarithmic else (min(low, 0.0), high)
    x = Axis("tasks learned", 0, len(study.first.sizes), whole=True)
    y = Axis(f"mean loss of an epoch{' (log scale)' if logarithmic else ''}", *edges, log=logarithmic)
    head = Head("Training loss, epoch by epoch", study.in_a_line())
    return [Figure("training-loss", LOSS_CAPTION, lines(head, x, y, series))]


def row_figures(study: Study, place: int) -> list[Figure]:
    """A method's accuracy matrices, where test pictures land, and what else it tells of each task."""
    row, note = study.rows[place], study.in_a_line(study.rows[place])
    name = f"{place + 1:02}-{re.sub(r'[^a-z0-9]+', '-', row.label.lower()).strip('-')[:50]}"
    drawn = []
    for setting in SETTINGS:
        if (mean := matrix(row, setting)) is not None:
            head = Head(f"{row.label}: {SETTING_TITLES[setting]} accuracy, %", note)
            drawing = heat_map(head, "tested on task", "after learning task", mean)
            hidden = " Point at a cell to see its number." if len(mean) > MOST_WRITTEN else ""
            drawn.append(Figure(f"matrix-{_file(setting)}-{name}", MATRIX_CAPTIONS[setting] + hidden, drawing))
    shares = task_confusion(row)
    if shares is not None:
        sizes = study.first.sizes
        even = [100 * size / sum(sizes) for size in sizes]
        y = Axis("share of all test pictures, %", 0, _landing_top(study, max(even)))
        series = Series(row.label, place, list(enumerate(shares, 1)))
        head = Head(f"{row.label}: where test pictures land", note)
        drawing = bars(head, "task whose class they are given", y, series, even, "if every class were given as often")
        drawn.append(Figure(f"task_confusion-{name}", LANDING_CAPTION, drawing))
    by_name = list(diagnostics_by_task(row).items())[:MOST_TOLD]
    told = [Series(title, at, list(enumerate(cells, 1))) for at, (title, cells) in enumerate(by_name)]
    if told:
        highest = max(mean + spread for series in told for _, mean, spread in series.known())
        lowest = min(mean - spread for series in told for _, mean, spread in series.known())
        x = Axis("task", 1, len(study.first.sizes), whole=True)
        y = Axis("as the method tells it", min(lowest, 0.0), highest)
        head = Head(f"{row.label}: {', '.join(series.label for series in told)}", note)
        drawn.append(Figure(f"by-task-{name}", TOLD_CAPTION, lines(head, x, y, told)))
    return drawn


def all_figures(study: Study) -> list[Figure]:
    each = [figure for place in range(len(study.rows)) for figure in row_figures(study, place)]
    return [*stage_figures(study), *size_figures(study), *each, *loss_figures(study)]


STAGE_CAPTIONS = {
    "class_il": "Which of all classes seen so far is it? Every new task makes the choice harder. "
    "The band is one deviation over seeds to each side.",
    "task_il": "Which of its own task's classes is it? The band is one deviation over seeds to each side.",
}
SIZE_CAPTION = "Further up is better, further left is smaller. The thin line is one deviation over seeds to each side."
MATRIX_CAPTIONS = {
    "class_il": "Percent right, chosen among all classes learned so far.",
    "task_il": "Percent right, chosen among the task’s own classes.",
}
LANDING_CAPTION = "After the last task. Bars above the dashed line draw too many pictures."
TOLD_CAPTION = "What the method says of itself, task by task. The band is one deviation over seeds to each side."
LOSS_CAPTION = "Mean over seeds. Losses of different methods are made of different parts: compare shapes, not heights."


def _landing_top(study: Study, even: float) -> float:
    """The same for all methods, so that their bars can be compared."""
    tops = [(cell.mean or 0) + (cell.deviation or 0) for row in study.rows for cell in task_confusion(row) or ()]
    return _top([even, *tops])


def _file(setting: Setting) -> str:
    return setting.replace("_", "-")
