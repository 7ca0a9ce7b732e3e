import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sparc.metrics import efficiency, forgetting, stage_accuracies, summarize, task_probabilities, trade_off


def matrix(diagonal: list[float], last: list[float]) -> NDArray[np.float64]:
    """Any R with this diagonal and this last row."""
    r = np.full((len(last), len(last)), np.nan)
    r[np.tril_indices(len(last))] = 50.0
    np.fill_diagonal(r, diagonal)
    r[-1] = last
    return r


# Class-IL rows of the paper's table of metrics: tasks, A_T, forgetting, stability, plasticity, trade-off.
PAPER = [
    pytest.param(5, 63.75, 18.25, 62.51, 78.35, 69.54, id="Seq-CIFAR10"),
    pytest.param(5, 53.51, 13.41, 51.8, 64.24, 57.35, id="Seq-CIFAR100"),
    pytest.param(10, 32.38, 12.59, 32.55, 43.71, 37.31, id="Seq-TinyImageNet"),
]


@pytest.mark.parametrize(("tasks", "accuracy", "drop", "kept", "learned", "balance"), PAPER)
def test_the_papers_rows(tasks: int, accuracy: float, drop: float, kept: float, learned: float, balance: float) -> None:
    newest = tasks * accuracy - (tasks - 1) * kept  # what the last task must have for A_T and S to hold together
    older = (tasks * learned - newest) / (tasks - 1)
    metrics = summarize(matrix([*[older] * (tasks - 1), newest], [*[kept] * (tasks - 1), newest]))
    assert metrics.accuracy == pytest.approx(accuracy)
    assert metrics.stability == pytest.approx(kept)
    assert metrics.plasticity == pytest.approx(learned)
    assert metrics.forgetting == pytest.approx(drop, abs=0.011)
    assert metrics.trade_off == pytest.approx(balance, abs=0.006)


def test_efficiency_of_the_papers_table() -> None:
    assert efficiency(45.0, 1_900_994) == pytest.approx(23.67, abs=0.005)


def test_by_hand() -> None:
    r = [[90, np.nan, np.nan], [70, 80, np.nan], [50, 60, 85]]
    assert stage_accuracies(r).tolist() == [90, 75, 65]
    metrics = summarize(r)
    assert (metrics.accuracy, metrics.forgetting, metrics.stability) == (65, 30, 55)
    assert metrics.average == pytest.approx((90 + 75 + 65) / 3)
    assert metrics.plasticity == 85


def test_one_task_forgets_nothing_that_could_be_measured() -> None:
    metrics = summarize([[70.0]])
    assert metrics.accuracy == metrics.plasticity == 70
    assert np.isnan(metrics.forgetting)
    assert np.isnan(metrics.stability)


percents = st.floats(0, 100)


@given(st.integers(2, 8).flatmap(lambda n: st.tuples(*[st.lists(percents, min_size=n, max_size=n)] * 2)))
def test_forgetting_is_what_plasticity_and_accuracy_leave(rows: tuple[list[float], list[float]]) -> None:
    diagonal, last = rows
    diagonal[-1] = last[-1]
    r = matrix(diagonal, last)
    before = r.copy()
    metrics = summarize(r)
    tasks = len(last)
    assert forgetting(r) == pytest.approx(tasks * (metrics.plasticity - metrics.accuracy) / (tasks - 1), abs=1e-9)
    np.testing.assert_array_equal(r, before)  # nothing is computed in place


@given(percents, percents)
def test_trade_off_lies_between_its_parts(first: float, second: float) -> None:
    assert min(first, second) - 1e-9 <= trade_off(first, second) <= max(first, second) + 1e-9


def test_task_probabilities_weigh_every_class_alike() -> None:
    assert task_probabilities([[900, 0], [0, 100]], [2, 2]).tolist() == [0.5, 0.5], "however many pictures a task has"
    assert task_probabilities([[30, 10], [0, 20]], [3, 1]).tolist() == pytest.approx([0.75 * 0.75, 0.25 * 0.75 + 0.25])


@pytest.mark.parametrize("wrong", [[], [[1.0, 2.0]], [1.0]])
def test_what_is_no_matrix_is_refused(wrong: list[object]) -> None:
    with pytest.raises(ValueError, match="square"):
        summarize(wrong)
