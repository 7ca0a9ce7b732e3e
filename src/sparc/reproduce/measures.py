"""What tables and figures of the paper take from a run's result."""

from collections.abc import Callable, Sequence
from math import isnan
from statistics import mean

from sparc.experiment.result import Result, Setting, numbers
from sparc.methods import METHODS
from sparc.metrics import stage_accuracies

Accuracies = list[list[float]]
"""R, a row a stage, a column a task."""
Points = Callable[[Result], Sequence[float] | None]
"""What a run shows in a chart, one number after another; None where it has none."""


def accuracies(result: Result, setting: Setting) -> Accuracies | None:
    """None in Class-IL where the method has to be told the task, whatever the result says."""
    method = METHODS.classes.get(result.config["method"])
    matrix = result.matrices[setting]
    if matrix is None or (setting == "class_il" and method is not None and method.needs_task_id):
        return None
    return numbers(matrix)


def accuracy_points(setting: Setting, points: Callable[[Accuracies], Sequence[float]]) -> Points:
    """Points that follow from the accuracy matrix."""

    def of_result(result: Result) -> Sequence[float] | None:
        matrix = accuracies(result, setting)
        return None if matrix is None else points(matrix)

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
    if result.task_probabilities is None or accuracies(result, "class_il") is None:
        return None
    return [100 * share for share in result.task_probabilities]


def recorded(name: str) -> Points:
    """What the method measured of itself."""
    return lambda result: result.diagnostics.get(name)


def _metric(name: str, setting: Setting = "class_il") -> Callable[[Result], float | None]:
    def of_result(result: Result) -> float | None:
        value: float = getattr(result.metrics[setting], name)
        return None if isnan(value) or accuracies(result, setting) is None else value

    return of_result


def _efficiency(result: Result) -> float | None:
    return None if accuracies(result, "class_il") is None else result.efficiency


MEASURES: dict[str, Callable[[Result], float | None]] = {
    "Class-IL A_T (%)": _metric("accuracy"),
    "Task-IL A_T (%)": _metric("accuracy", "task_il"),
    "A_T (%)": _metric("accuracy"),
    "Ā (%)": _metric("average"),
    "Forgetting (%)": _metric("forgetting"),
    "Stability (%)": _metric("stability"),
    "Plasticity (%)": _metric("plasticity"),
    "Trade-off": _metric("trade_off"),
    "Efficiency": _efficiency,
}
"""By the titles of the paper's columns; None where a method has no such thing."""
