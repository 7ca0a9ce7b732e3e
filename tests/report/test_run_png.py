"""The picture of a run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from sparc.experiment.result import Result
from sparc.report.drawing import Text, flattened
from sparc.report.run_png import draw, run_drawing

Make = Callable[..., Result]


def rows(tasks: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(90.0 - stage + task for task in range(stage + 1)) for stage in range(tasks))


def texts(result: Result) -> list[str]:
    return [shape.text for shape in flattened(run_drawing(result).shapes) if isinstance(shape, Text)]


def test_the_picture_is_a_picture(tmp_path: Path, result: Make) -> None:
    path = draw(result(rows=rows(5)), tmp_path / "result.png")
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 50, "it is not blank"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.png"]


def test_it_shows_both_matrices_where_pictures_land_and_the_metrics(result: Make) -> None:
    shown = texts(result())
    assert shown[0] == "sparc on seq-digits, seed 0"
    for text in (
        "SPARC: Class-IL accuracy, %",
        "SPARC: Task-IL accuracy, %",
        "SPARC: where test pictures land",
        "Metrics",
    ):
        assert shown.count(text) == 1
    metrics = shown[shown.index("Metrics") :]
    assert metrics[metrics.index("Accuracy A_T ↑") + 1 :][:2] == ["100.00", "70.00"]


def test_of_a_method_that_must_be_told_the_task_it_shows_what_there_is(result: Make) -> None:
    shown = texts(result("packnet", needs_task_id=True))
    assert "PackNet: Task-IL accuracy, %" in shown
    assert not any("Class-IL accuracy" in text or "land" in text for text in shown)
    assert "in percent; no Class-IL, as it must be told the task" in shown
    assert shown.count("–") == 6


@pytest.mark.parametrize("tasks", [1, 20, 50])
def test_any_number_of_tasks_lies_within_it(result: Make, tasks: int) -> None:
    drawing = run_drawing(result(rows=tuple((90.0,) * (stage + 1) for stage in range(tasks))))
    for shape in flattened(drawing.shapes):
        if isinstance(shape, Text):
            assert 0 <= shape.x <= drawing.width
            assert 0 <= shape.y <= drawing.height


def test_a_benchmark_by_any_name_can_be_drawn(tmp_path: Path, result: Make) -> None:
    one = result()
    one.config["benchmark"] = r"$\frac$ _"
    assert draw(one, tmp_path / "result.png").exists()
