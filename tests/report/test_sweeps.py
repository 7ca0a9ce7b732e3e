"""A setting that was varied by itself makes a curve."""

from collections.abc import Callable

import pytest

from sparc.experiment.result import Result
from sparc.report.charts import PLOT_HEIGHT
from sparc.report.drawing import Line, Text, flattened
from sparc.report.figures import all_figures, sweep_figures
from sparc.report.page import page
from sparc.report.study import Study, studies
from sparc.report.sweeps import sweeps
from tests.report.runs import numbered

Make = Callable[..., Result]
EPOCHS = {2: 40.0, 5: 50.0, 10: 70.0, 50: 60.0}


def study(*results: Result) -> Study:
    (found,) = studies(numbered(results))
    return found


def after(
    result: Make, epochs: int, accuracy: float, method: str = "sparc", seed: int = 0, **settings: object
) -> Result:
    return result(method, seed=seed, rows=((accuracy,), (accuracy, accuracy)), epochs=epochs, **settings)


def test_rows_that_differ_in_a_number_alone_make_a_curve_of_rising_values(result: Make) -> None:
    one = study(*(after(result, epochs, accuracy, lr=0.1) for epochs, accuracy in EPOCHS.items()))
    (curve,) = sweeps(one.rows)["epochs"]
    assert [value for value, _ in curve] == [2, 5, 10, 50]
    assert [one.rows[index].cells["class_il.accuracy"].mean for _, index in curve] == [40, 50, 70, 60]
    assert list(sweeps(one.rows)) == ["epochs"]


@pytest.mark.parametrize(
    "settings",
    [
        [{"epochs": 2}, {"epochs": 5}],
        [{"epochs": 2, "lr": 0.1}, {"epochs": 5, "lr": 0.2}, {"epochs": 10, "lr": 0.3}],
        [{"optimizer": "sgd"}, {"optimizer": "adam"}, {"optimizer": "muon"}],
        [{"weigh": True}, {"weigh": False}, {"weigh": None}],
        [{"depth": None}, {"depth": 2}, {"depth": 3}],
        [{"lr": 1e300}, {"lr": 1.0}, {"lr": 2.0}],
        [{"sizes": [1]}, {"sizes": [2]}, {"sizes": [3]}],
    ],
)
def test_what_is_no_number_or_was_not_varied_by_itself_makes_none(
    result: Make, settings: list[dict[str, object]]
) -> None:
    one = study(*(result(**each) for each in settings))
    assert sweeps(one.rows) == {}
    assert sweep_figures(one) == []
    assert "By setting" not in page([one])


def test_methods_have_a_line_each_and_no_line_mixes_two(result: Make) -> None:
    one = study(*(after(result, epochs, 50 + epochs, method) for method in ("sparc", "sgd") for epochs in (1, 2, 3)))
    curves = sweeps(one.rows)["epochs"]
    methods = [{one.rows[index].method for _, index in curve} for curve in curves]
    assert sorted(map(sorted, methods)) == [["sgd"], ["sparc"]]


def test_the_page_shows_it_without_the_setting_in_the_lines_name(result: Make) -> None:
    runs = [after(result, epochs, accuracy + seed, seed=seed) for epochs, accuracy in EPOCHS.items() for seed in (0, 2)]
    one = study(*runs, result("sgd", epochs=2, rows=((20,), (20, 20))))
    class_il, task_il = sweep_figures(one)
    assert class_il.name == "setting-01-epochs-class-il"
    assert task_il.name == "setting-01-epochs-task-il"
    assert class_il.drawing.title.startswith("Class-IL accuracy by epochs")
    assert "SPARC from 41.00 at the left to 61.00 at the right" in class_il.drawing.description
    assert "epochs (log scale)" in class_il.drawing.description
    text = page([one])
    assert text.index("Each task at the end</h2>") < text.index("By setting</h2>") < text.index("Size against accuracy")
    assert class_il.caption in text
    assert [figure.name for figure in all_figures(one)].count(class_il.name) == 1


def test_a_narrow_range_is_not_logarithmic_and_the_marks_lie_where_the_numbers_are(result: Make) -> None:
    one = study(*(after(result, epochs, accuracy) for epochs, accuracy in ((10, 30.0), (20, 40.0), (30, 50.0))))
    drawing = sweep_figures(one)[0].drawing
    assert "log scale" not in drawing.description
    (line,) = [shape for shape in flattened(drawing.shapes) if isinstance(shape, Line) and len(shape.points) == 3]
    (left, bottom), (middle, half), (right, top) = line.points
    assert middle == pytest.approx((left + right) / 2)
    assert half == pytest.approx((top + bottom) / 2)
    assert left < right
    assert top < bottom


def test_values_are_marked_and_small_differences_can_be_seen(result: Make) -> None:
    one = study(*(after(result, epochs, accuracy) for epochs, accuracy in ((1, 71.0), (3, 74.0), (9, 76.5))))
    drawing = sweep_figures(one)[0].drawing
    texts = [shape.text for shape in flattened(drawing.shapes) if isinstance(shape, Text)]
    assert {"1", "3", "9"} <= set(texts)
    assert "70" in texts
    assert "0" not in texts
    (line,) = [shape for shape in flattened(drawing.shapes) if isinstance(shape, Line) and len(shape.points) == 3]
    heights = [y for _, y in line.points]
    assert max(heights) - min(heights) > 0.4 * PLOT_HEIGHT


def test_a_method_that_must_be_told_the_task_has_one_chart(result: Make) -> None:
    one = study(*(result("pnn", needs_task_id=True, lr=lr) for lr in (0.1, 0.2, 0.3)))
    assert [figure.name for figure in sweep_figures(one)] == ["setting-01-lr-task-il"]
