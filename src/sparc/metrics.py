"""Numbers from R, where R[i, j] is the accuracy in percent on task j after learning task i; all functions are pure.

Entries above the diagonal are not read: they may be nan.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Metrics:
    """All that one accuracy matrix says; nan where it says nothing, such as forgetting after a single task."""

    accuracy: float
    """A_T: mean accuracy over all tasks after the last one."""
    average: float
    """Ā: mean of the stages' accuracies A_1 … A_T."""
    forgetting: float
    """Mean drop from when a task was learned to the end."""
    stability: float
    """Mean accuracy at the end on all tasks but the last."""
    plasticity: float
    """Mean accuracy on each task when it was learned."""
    trade_off: float
    """Harmonic mean of stability and plasticity."""


def summarize(matrix: ArrayLike) -> Metrics:
    """All metrics of an accuracy matrix.

    >>> summarize([[90, float("nan")], [60, 80]])
    Metrics(accuracy=70.0, average=80.0, forgetting=30.0, stability=60.0, plasticity=85.0, trade_off=70.34482758620689)
    """
    stages = stage_accuracies(matrix)
    kept, learned = stability(matrix), plasticity(matrix)
    return Metrics(float(stages[-1]), float(stages.mean()), forgetting(matrix), kept, learned, trade_off(kept, learned))


def stage_accuracies(matrix: ArrayLike) -> NDArray[np.float64]:
    """A_τ for every stage τ: the mean over the tasks seen by then."""
    r = _square(matrix)
    return np.array([r[stage, : stage + 1].mean() for stage in range(len(r))])


def forgetting(matrix: ArrayLike) -> float:
    r = _square(matrix)
    return _mean(np.diag(r)[:-1] - r[-1, :-1])


def stability(matrix: ArrayLike) -> float:
    return _mean(_square(matrix)[-1, :-1])


def plasticity(matrix: ArrayLike) -> float:
    return _mean(np.diag(_square(matrix)))


def trade_off(stability: float, plasticity: float) -> float:
    """The harmonic mean.

    >>> round(trade_off(51.8, 64.24), 2)
    57.35
    """
    total = stability + plasticity
    return 2 * stability * plasticity / total if total else 0.0


def efficiency(accuracy: float, parameters: int) -> float:
    """A_T for every million parameters."""
    return accuracy / (parameters / 1e6)


def task_probabilities(task_confusion: ArrayLike, sizes: ArrayLike) -> NDArray[np.float64]:
    """Share of a balanced test set, where every class has as many pictures, that lands on each task's classes.

    `task_confusion[j, k]` counts the pictures of task j that were given a class of task k; `sizes[j]` is how many
    classes task j has.

    >>> task_probabilities([[90, 10], [10, 10]], sizes=[2, 2]).tolist()
    [0.7, 0.3]
    """
    counts, weights = np.asarray(task_confusion, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    shares: NDArray[np.float64] = (weights / weights.sum()) @ (counts / counts.sum(axis=1, keepdims=True))
    return shares


def _square(matrix: ArrayLike) -> NDArray[np.float64]:
    r = np.asarray(matrix, dtype=np.float64)
    if r.ndim != 2 or r.shape[0] != r.shape[1] or not len(r):
        raise ValueError(f"R must be square, one row and one column a task, not {r.shape}")
    return r


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")
