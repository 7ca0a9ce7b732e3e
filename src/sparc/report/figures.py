"""The figures of a comparison: which there are, and how each is to be read."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparc.experiment.result import Setting
from sparc.report.axis import Axis
from sparc.report.charts import MAX_LEGEND, MAX_WRITTEN, Heading, Series, bars, heat_map, lines, points, table
from sparc.report.comparison import (
    COLUMN,
    Cell,
    Column,
    Row,
    accuracies_by_part,
    at_the_end,
    diagnostics_by_task,
    matrix,
    mean_and_deviation,
    stages,
    task_confusion,
)
from sparc.report.drawing import Drawing
from sparc.report.labels import SETTING_TITLES
from sparc.report.study import Study
from sparc.report.sweeps import Curve, sweeps
from sparc.text import one_line

LEAST_COST = 1e-6
"""For costs of 0, which an axis of logarithms has no place for."""
LOG_FROM = 8
"""How many times its least value a setting's largest one is, for its axis to be one of logarithms."""
MAX_POINTS = 300
"""Points of a line; more cannot be seen."""


@dataclass(frozen=True)
class Figure:
    name: str
    """The name of a file of it, without the ending."""
    caption: str
    drawing: Drawing


@dataclass(frozen=True)
class Curves:
    """Charts of an accuracy over tasks, one a setting."""

    name: str
    """What their files' names begin with."""
    title: str
    across: str
    upwards: str
    of: Callable[[Row, Setting], list[Cell] | None]
    captions: Mapping[Setting, str]

    def drawn(self, study: Study) -> list[Figure]:
        figures = []
        for setting, setting_title in SETTING_TITLES.items():
            series = _known(
                Series(row.label, index, list(enumerate(self.of(row, setting) or (), 1)))
                for index, row in enumerate(study.rows)
            )
            if series:
                x = Axis(self.across, 1, len(series[0].points), integers=True)
                y = _accuracy_axis(self.upwards, series)
                drawing = lines(Heading(f"{setting_title} accuracy{self.title}", study.in_a_line()), x, y, series)
                figures.append(Figure(f"{self.name}-{_file(setting)}", self.captions[setting], drawing))
        return figures


@dataclass(frozen=True)
class CostCharts:
    """Charts of a cost against accuracy, one a setting."""

    name: str
    """What their files' names begin with."""
    title: str
    """What the cost is called."""
    across: str
    """The title of the axis of costs."""
    column: Column
    """The column of a comparison that has the cost."""
    unit: float
    """What the column's number is divided by for the axis: 60, from seconds to minutes."""
    caption: str
    """What is to be known of the cost, below each chart."""

    def drawn(self, study: Study) -> list[Figure]:
        costs = [max((row.cells[self.column.name].mean or 0) / self.unit, LEAST_COST) for row in study.rows]
        x = Axis(f"{self.across} (log scale)", min(costs) / 2, max(costs) * 2, log=True)
        figures = []
        for setting, setting_title in SETTING_TITLES.items():
            series = _known(
                Series(row.label, index, [(cost, row.cells[f"{setting}.accuracy"])])
                for index, (row, cost) in enumerate(zip(study.rows, costs, strict=True))
            )
            if series:
                y = _accuracy_axis(A_T_AXIS, series)
                drawing = points(
                    Heading(f"{self.title} against {setting_title} accuracy", study.in_a_line()), x, y, series
                )
                figures.append(Figure(f"{self.name}-{_file(setting)}", f"{COST_CAPTION} {self.caption}", drawing))
        return figures


def stage_figures(study: Study) -> list[Figure]:
    """Lines of the mean accuracy after each task, a chart a setting."""
    return STAGES.drawn(study)


def end_figures(study: Study) -> list[Figure]:
    """Lines of the accuracy on each task at the end, a chart a setting."""
    return AT_THE_END.drawn(study)


def sweep_figures(study: Study) -> list[Figure]:
    """Lines of Class-IL and of Task-IL accuracy against each setting that was varied by itself."""
    return [
        figure
        for number, (name, curves) in enumerate(sweeps(study.rows).items(), 1)
        for figure in _sweep_figures(study, number, name, curves)
    ]


def _sweep_figures(study: Study, number: int, name: str, curves: Sequence[Curve]) -> list[Figure]:
    values = sorted({value for curve in curves for value, _ in curve})
    low, high = values[0], values[-1]
    log = low > 0 and high / low >= LOG_FROM
    shown = one_line(name).replace("_", " ")
    x = Axis(f"{shown}{' (log scale)' * log}", low, high, log=log, format="{:.7g}".format, values=tuple(values))
    figures = []
    for setting, setting_title in SETTING_TITLES.items():
        column = f"{setting}.accuracy"
        series = _known(
            Series(
                study.rows[curve[0][1]].label_without(name),
                min(index for _, index in curve),
                [(value, study.rows[index].cells[column]) for value, index in curve],
            )
            for curve in curves
        )
        if series:
            y = _near_axis(A_T_AXIS, series)
            heading = Heading(f"{setting_title} accuracy by {shown}", study.in_a_line())
            file = f"setting-{number:02}-{_in_file(name)}-{_file(setting)}"
            figures.append(Figure(file, SWEEP_CAPTION, lines(heading, x, y, series)))
    return figures


def _known(series: Iterable[Series]) -> list[Series]:
    """Those that have a number to show."""
    return [each for each in series if each.known()]


def _accuracy_axis(title: str, series: Sequence[Series]) -> Axis:
    """An axis that ends a little above the best, as methods far from 100 % could not be told apart below it."""
    return Axis(title, 0, _top(mean + spread for each in series for _, mean, spread in each.known()))


def _near_axis(title: str, series: Sequence[Series]) -> Axis:
    """An axis from a little below the worst to a little above the best, to tell apart what differs by little."""
    ends = [mean + side * spread for each in series for _, mean, spread in each.known() for side in (-1, 1)]
    low, high = max(min(ends), 0), min(max(ends), 100)
    step = 10 if high - low > 10 else 5 if high - low > 2 else 1
    top = min(math.floor(high / step) * step + step, 100)
    return Axis(title, max(min(math.ceil(low / step) * step, top) - step, 0), top)


def _top(values: Iterable[float]) -> float:
    """The next percentage above all of these that an axis has a mark at."""
    highest = max(values)
    return next((top for top in (10, 20, 30, 40, 50, 60, 80) if top > highest), 100)


def loss_figures(study: Study) -> list[Figure]:
    """Lines of the training loss, where there are logs."""
    series = []
    for index, row in enumerate(study.rows):
        each = [run.losses for run in row.runs if run.losses]
        # An epoch whose line was lost with a machine would shift all that come after it.
        if each and all([at for at, _ in curve] == [at for at, _ in each[0]] for curve in each):
            cells = [Cell(*mean_and_deviation([loss for _, loss in epoch])) for epoch in zip(*each, strict=True)]
            curve = list(zip([at for at, _ in each[0]], cells, strict=True))
            series.append(Series(row.label, index, curve[:: math.ceil(len(curve) / MAX_POINTS)]))
    if not series:
        return []
    means = [mean for each in series for _, mean, _ in each.known()]
    low, high = min(means), max(means)
    logarithmic = low > 0 and high / low > 20
    edges = (max(low, high / 1e4), high) if logarithmic else (min(low, 0.0), high)
    x = Axis("tasks learned", 0, len(study.first.sizes), integers=True)
    y = Axis(f"mean loss of an epoch{' (log scale)' if logarithmic else ''}", *edges, log=logarithmic)
    heading = Heading("Training loss, epoch by epoch", study.in_a_line())
    return [Figure("training-loss", LOSS_CAPTION, lines(heading, x, y, series))]


def row_figures(study: Study, index: int) -> list[Figure]:
    """A method's accuracy matrices, where test pictures land, its diagnostics by task, and what its parts bring."""
    return [
        *matrix_figures(study, index),
        *task_confusion_figures(study, index),
        *diagnostics_figures(study, index),
        *parts_figures(study, index),
    ]


def matrix_figures(study: Study, index: int) -> list[Figure]:
    """A method's accuracy matrices, one a setting."""
    row = study.rows[index]
    drawn = []
    for setting in SETTING_TITLES:
        if (mean := matrix(row, setting)) is not None:
            heading = _heading(study, row, f"{SETTING_TITLES[setting]} accuracy, %")
            drawing = heat_map(heading, "tested on task", "after learning task", mean)
            hidden = " Point at a cell to see its number." if len(mean) > MAX_WRITTEN else ""
            name = f"matrix-{_file(setting)}-{_file_of(study, index)}"
            drawn.append(Figure(name, MATRIX_CAPTIONS[setting] + hidden, drawing))
    return drawn


def task_confusion_figures(study: Study, index: int) -> list[Figure]:
    """Where test pictures land after the last task, if a method has Class-IL accuracy."""
    row, sizes = study.rows[index], study.first.sizes
    shares = task_confusion(row)
    if shares is None:
        return []
    even = [100 * size / sum(sizes) for size in sizes]
    x = Axis("task whose class they are given", 0.5, len(sizes) + 0.5, integers=True)
    y = Axis("share of all test pictures, %", 0, _landing_top(study, max(even)))
    heading = _heading(study, row, "where test pictures land")
    drawing = bars(heading, x, y, [Series(row.label, index, list(enumerate(shares, 1)))], even)
    return [Figure(f"landings-{_file_of(study, index)}", LANDING_CAPTION, drawing)]


def diagnostics_figures(study: Study, index: int) -> list[Figure]:
    """What a method measures of itself, if it does, task by task."""
    row = study.rows[index]
    diagnostics = list(diagnostics_by_task(row).items())[:MAX_LEGEND]
    if not diagnostics:
        return []
    series = [Series(name, order, list(enumerate(cells, 1))) for order, (name, cells) in enumerate(diagnostics)]
    highest = max(mean + spread for each in series for _, mean, spread in each.known())
    lowest = min(mean - spread for each in series for _, mean, spread in each.known())
    x = Axis("task", 1, len(study.first.sizes), integers=True)
    y = Axis("as the method tells it", min(lowest, 0.0), highest)
    heading = _heading(study, row, ", ".join(each.label for each in series))
    drawing = lines(heading, x, y, series)
    return [Figure(f"by-task-{_file_of(study, index)}", DIAGNOSTICS_CAPTION, drawing)]


def parts_figures(study: Study, index: int) -> list[Figure]:
    """A table of what a method's answers come to by part, if it has any."""
    row = study.rows[index]
    rows = accuracies_by_part(row.results)[:MAX_LEGEND]
    if not rows:
        return []
    heading = _heading(study, row, "what its parts bring")
    drawing = table(heading, ["accuracy A_T, %", *SETTING_TITLES.values()], rows)
    return [Figure(f"parts-{_file_of(study, index)}", PARTS_CAPTION, drawing)]


def _heading(study: Study, row: Row, what: str) -> Heading:
    """Of a figure of one method."""
    return Heading(what, study.in_a_line(row), row.label)


def all_figures(study: Study) -> list[Figure]:
    each = [figure for index in range(len(study.rows)) for figure in row_figures(study, index)]
    costs = [figure for charts in COST_CHARTS for figure in charts.drawn(study)]
    return [*stage_figures(study), *end_figures(study), *sweep_figures(study), *costs, *each, *loss_figures(study)]


A_T_AXIS = "accuracy A_T after the last task, %"
BAND = "The band is one deviation over seeds to each side."
STAGES = Curves(
    "stages",
    ", task after task",
    "tasks learned",
    "mean accuracy on the tasks learned so far, %",
    stages,
    {
        "class_il": f"Which of all classes seen so far is it? Every new task makes the choice harder. {BAND}",
        "task_il": f"Which of its own task's classes is it? {BAND}",
    },
)
AT_THE_END = Curves(
    "end",
    " on each task at the end",
    "task",
    "accuracy after the last task, %",
    at_the_end,
    {
        "class_il": "Low at the left: old tasks were forgotten, or never learned well; the matrices below tell which. "
        + BAND,
        "task_il": f"The same, chosen among the task’s own classes. {BAND}",
    },
)
SWEEP_CAPTION = f"Runs of a line differ in this setting alone; the axis need not begin at 0. {BAND}"
COST_CAPTION = "Further up is better, further left costs less. The thin line is one deviation over seeds to each side."
SIZE = CostCharts(
    "size",
    "Size",
    "parameters, in millions",
    COLUMN["parameters"],
    1e6,
    "Copies of the model and masks are parameters too.",
)
TIME = CostCharts(
    "time",
    "Training time",
    "minutes of training, all tasks together",
    COLUMN["seconds"],
    60,
    "Minutes depend on the machine and on what else it did.",
)
COST_CHARTS = (SIZE, TIME)
MATRIX_CAPTIONS = {
    "class_il": "Percent right, chosen among all classes learned so far.",
    "task_il": "Percent right, chosen among the task’s own classes.",
}
LANDING_CAPTION = "After the last task. Bars above the dashed line draw too many pictures."
DIAGNOSTICS_CAPTION = f"What the method says of itself, task by task. {BAND}"
PARTS_CAPTION = (
    "Answers with a part left out, or with one alone, mean ± deviation over seeds. Nothing was trained anew, and "
    "weights are those that were found with all parts."
)
LOSS_CAPTION = "Mean over seeds. Losses of different methods are made of different parts: compare shapes, not heights."


def _landing_top(study: Study, even: float) -> float:
    """Where the axis ends, the same for all methods, so that their bars can be compared."""
    tops = [(cell.mean or 0) + (cell.deviation or 0) for row in study.rows for cell in task_confusion(row) or ()]
    return _top([even, *tops])


def _file(setting: str) -> str:
    return setting.replace("_", "-")


def _file_of(study: Study, index: int) -> str:
    return f"{index + 1:02}-{_in_file(study.rows[index].label)}"


def _in_file(text: str) -> str:
    """What of a text a file can be named by."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50]
