"""What tables and figures of the paper take from a run's result."""

from collections.abc import Callable, Sequence
from statistics import mean

from sparc.experiment.result import Result, Setting, numbers
from sparc.metrics import stage_accuracies
from sparc.report.comparison import COLUMN

Accuracies = list[list[float]]
"""R, a row a stage, a column a task."""
Points = Callable[[Result], Sequence[float] | None]
"""What a run shows in a chart, one number after another; None where it has none."""
MEASURES: dict[str, Callable[[Result], float | None]] = {
    "Class-IL A_T (%)": COLUMN["class_il.accuracy"].value,
    "Task-IL A_T (%)": COLUMN["task_il.accuracy"].value,
    "A_T (%)": COLUMN["class_il.accuracy"].value,
    "Ā (%)": COLUMN["class_il.average"].value,
    "Forgetting (%)": COLUMN["class_il.forgetting"].value,
    "Stability (%)": COLUMN["class_il.stability"].value,
    "Plasticity (%)": COLUMN["class_il.plasticity"].value,
    "Trade-off": COLUMN["class_il.trade_off"].value,
    "Efficiency": lambda result: result.efficiency,
}
"""By the titles of the paper's columns; nan, or None, where a method has no such thing."""


def accuracy_points(setting: Setting, points: Callable[[Accuracies], Sequence[float]]) -> Points:
    """Points that follow from the accuracy matrix."""

    def of_result(result: Result) -> Sequence[float] | None:
        matrix = getattr(result, setting)
        return None if matrix is None else points(numbers(matrix))

    return of_result


def at_the_end(matrix: Accuracies) -> Sequence[float]:
    """Accuracy on each task after the last one."""
    return matrix[-1]


def after_each_task(matrix: Accuracies) -> Sequence[float]:
    """A_τ of each stage."""
    return [float(value) for value in stage_accuracies(matrix)]


def after_the_last_task(matrix: Accuracies) -> Sequence[float]:
    """A_T alone."""
    return after_each_task(matrix)[-1:]


def stability_by_stage(matrix: Accuracies) -> Sequence[float]:
    """Accuracy in the mean over all tasks before the one just learned, from the second on."""
    return [mean(matrix[stage][:stage]) for stage in range(1, len(matrix))]


def probabilities(result: Result) -> Sequence[float] | None:
    """Shares of the test pictures that are given a class of each task, in percent."""
    return None if result.task_probabilities is None else [100 * share for share in result.task_probabilities]


def recorded(name: str) -> Points:
    """What the method measured of itself."""
    return lambda result: result.diagnostics.get(name)
