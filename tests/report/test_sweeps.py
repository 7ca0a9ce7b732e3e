"""A setting that was varied by itself makes a curve."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import pytest

from sparc.experiment.result import Result
from sparc.report.charts import PLOT_HEIGHT
from sparc.report.drawing import Drawing, Line, Text, flattened, text_width
from sparc.report.figures import all_figures, sweep_figures
from sparc.report.page import page
from sparc.report.study import Study, studies
from sparc.report.svg import standalone
from sparc.report.sweeps import sweeps
from tests.report.runs import numbered

Make = Callable[..., Result]
LRS = (0.1, 0.2, 0.3)
EPOCHS = {2: 40.0, 5: 50.0, 10: 70.0, 50: 60.0}


def study(*results: Result) -> Study:
    (found,) = studies(numbered(results))
    return found


def texts_of(drawing: Drawing) -> set[str]:
    return {shape.text for shape in flattened(drawing.shapes) if isinstance(shape, Text)}


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
        [{"lr": 1}, {"lr": 1.0}, {"lr": 2.0}],
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
    texts = texts_of(drawing)
    assert {"1", "3", "9"} <= texts
    assert "70" in texts
    assert "0" not in texts
    (line,) = [shape for shape in flattened(drawing.shapes) if isinstance(shape, Line) and len(shape.points) == 3]
    heights = [y for _, y in line.points]
    assert max(heights) - min(heights) > 0.4 * PLOT_HEIGHT


def test_a_method_that_must_be_told_the_task_has_one_chart(result: Make) -> None:
    one = study(*(result("pnn", needs_task_id=True, lr=lr) for lr in (0.1, 0.2, 0.3)))
    assert [figure.name for figure in sweep_figures(one)] == ["setting-01-lr-task-il"]


def test_a_line_is_called_by_what_else_sets_its_rows_apart(result: Make) -> None:
    names = {"a, b": 0.0, "weight_decay": 0.0}
    runs = [result(lr=lr, epochs=epochs, **names) for lr in (0.1, 0.2, 0.3) for epochs in (1, 2, 30)]
    one = study(*runs, result("sgd", lr=0.1, epochs=1, **names))
    by_lr, _, by_epochs, _ = (figure.drawing for figure in sweep_figures(one))
    assert {f"SPARC, epochs {epochs}" for epochs in (1, 2, 30)} <= texts_of(by_lr)
    assert {f"SPARC, lr {lr}" for lr in (0.1, 0.2, 0.3)} <= texts_of(by_epochs)


def test_names_with_commas_and_long_ones_are_left_out_of_a_lines_name_too(result: Make) -> None:
    for name in ("a, b", "x" * 70):
        one = study(*(result(**{name: value}) for value in (1, 2, 3)))
        assert "SPARC" in texts_of(sweep_figures(one)[0].drawing)


def test_who_has_no_class_il_accuracy_is_not_in_the_legend_of_its_chart(result: Make) -> None:
    told = [result("pnn", needs_task_id=True, lr=lr) for lr in (0.1, 0.2, 0.3)]
    class_il, task_il = (figure.drawing for figure in sweep_figures(study(*told, *(result(lr=each) for each in LRS))))
    assert "PNN" not in texts_of(class_il)
    assert {"PNN", "SPARC"} <= texts_of(task_il)


@pytest.mark.parametrize("values", [(0, 1, 2), (-1.0, 0.0, 5.0), (0.0, 1e-9, 1e9), (5e-324, 1.0, 2.0)])
def test_any_values_can_be_drawn(result: Make, values: tuple[float, ...]) -> None:
    for figure in sweep_figures(study(*(result(lr=value) for value in values))):
        ET.fromstring(standalone(figure.drawing))


def test_all_right_is_at_the_top_and_not_in_the_middle(result: Make) -> None:
    _, task_il = sweep_figures(study(*(result(lr=lr) for lr in LRS)))
    (line,) = [s for s in flattened(task_il.drawing.shapes) if isinstance(s, Line) and len(s.points) == 3]
    grid = [s.points[0][1] for s in flattened(task_il.drawing.shapes) if isinstance(s, Line) and s.colour == "grid"]
    assert {y for _, y in line.points} == {min(grid)}
    assert len(grid) > 1


@pytest.mark.parametrize(("step", "first"), [(0.0001, 0.001), (1000, 10_000), (1, 1_234_567), (0.5, 0.5)])
def test_marks_below_an_axis_keep_apart_and_on_the_sheet(result: Make, step: float, first: float) -> None:
    one = study(*(result(lr=round(first + step * number, 6)) for number in range(11)))
    drawing = sweep_figures(one)[0].drawing
    shapes = [shape for shape in flattened(drawing.shapes) if isinstance(shape, Text) and shape.anchor == "middle"]
    *marks, title = shapes
    assert title.text.startswith("lr")
    edges = [(mark.x - text_width(mark.text, 11.5) / 2, mark.x + text_width(mark.text, 11.5) / 2) for mark in marks]
    assert all(right <= left for (_, right), (left, _) in pairwise(edges))
    assert edges[-1][1] <= drawing.width + 0.01


def test_the_filter_leaves_lines_of_several_rows_alone(result: Make) -> None:
    text = page([study(*(result(lr=lr) for lr in LRS))])
    assert '<div>\n<div class="figures">' in text.partition("By setting")[2].partition("<h2>")[0]
