import json
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparc.experiment.result import Result
from sparc.metrics import summarize
from sparc.report import comparison
from sparc.report.comparison import (
    COLUMN,
    COLUMNS,
    MAIN,
    Row,
    at_the_end,
    diagnostics_by_task,
    matrix,
    ranked,
    stages,
    task_confusion,
)
from sparc.report.tables import summary
from tests.report.runs import numbered

Make = Callable[..., Result]


def compare(results: list[Result]) -> list[Row]:
    return comparison.compare(numbered(results))


def best(rows: list[Row], name: str) -> list[str]:
    return [row.label for row in rows if row.cells[name].best]


def test_a_row_has_mean_and_sample_deviation_over_its_seeds(result: Make) -> None:
    (row,) = compare([result(seed=1, rows=((90,), (70, 80))), result(seed=0)])
    assert row.seeds == [0, 1]
    assert row.label == "SPARC"
    accuracy = row.cells["class_il.accuracy"]
    assert (accuracy.mean, accuracy.deviation) == (mean([70, 75]), stdev([70, 75]))
    assert COLUMN["class_il.accuracy"].text(accuracy) == "72.50 ± 3.54"
    assert COLUMN["parameters"].text(row.cells["parameters"]) == "1.000"
    assert row.cells["seconds"].mean == 3


def test_every_metric_is_the_one_of_the_summary(result: Make) -> None:
    results = [result(seed=seed, rows=((90,), (50 + seed, 80), (40, 30 + seed, 70))) for seed in range(3)]
    (row,) = compare(results)
    for setting, metrics in summary(results).items():
        for name, values in metrics.items():
            cell = row.cells[f"{setting}.{name}"]
            assert {"mean": cell.mean, "deviation": cell.deviation} == values


def test_a_single_seed_has_no_deviation_and_a_single_task_no_forgetting(result: Make) -> None:
    (row,) = compare([result(rows=((90,),))])
    assert COLUMN["class_il.accuracy"].text(row.cells["class_il.accuracy"]) == "90.00"
    assert COLUMN["class_il.forgetting"].text(row.cells["class_il.forgetting"]) == "–"


def test_rows_of_one_method_say_in_what_they_differ_and_only_that(result: Make) -> None:
    rows = compare([result(width=0.5, lr=1e-3), result("sgd", lr=0.1), result(width=0.25, lr=1e-3)])
    assert [row.label for row in rows] == ["SPARC, width 0.5", "SGD", "SPARC, width 0.25"]


def test_all_rows_tell_their_budget_where_methods_differ_in_it(result: Make) -> None:
    rows = compare([result(width=0.5, lr=1e-3), result("sgd", width=0.25, lr=0.1), result("er", buffer_size=200)])
    assert [row.label for row in rows] == ["SPARC, width 0.5", "SGD, width 0.25", "ER"]


def test_settings_of_the_same_name_in_two_places_are_told_apart(result: Make) -> None:
    first, second = (
        replace(result(), config={**result().config, "settings": {"epochs": 1}, "recipe": {"epochs": epochs}})
        for epochs in (2, 3)
    )
    assert [row.label for row in compare([first, second])] == ["SPARC, recipe.epochs 2", "SPARC, recipe.epochs 3"]


def test_how_a_cut_was_spelled_makes_no_row_but_the_order_of_classes_does(result: Make) -> None:
    usual, spelled, shuffled = (result(seed=seed) for seed in range(3))
    usual.config["stream"] = {"tasks": None, "sizes": None, "order_seed": None}
    spelled.config["stream"] = {"tasks": 2, "sizes": None, "order_seed": None}
    shuffled.config["stream"] = {"tasks": None, "sizes": None, "order_seed": 7}
    rows = compare([usual, spelled, shuffled])
    assert [(row.label, row.seeds) for row in rows] == [("SPARC, order seed –", [0, 1]), ("SPARC, order seed 7", [2])]


def test_the_same_run_twice_counts_once(result: Make) -> None:
    (row,) = compare([result(), result(rows=((10,), (10, 10))), result(seed=1)])
    assert row.seeds == [0, 1]
    assert row.cells["class_il.accuracy"].mean == 70


def test_best_is_the_higher_accuracy_and_the_lower_cost(result: Make) -> None:
    rows = compare([result(), replace(result("sgd", rows=((95,), (20, 90))), parameters=10)])
    assert best(rows, "class_il.accuracy") == ["SPARC"]
    assert best(rows, "class_il.plasticity") == ["SGD"]
    assert best(rows, "class_il.forgetting") == ["SPARC"]
    assert best(rows, "parameters") == ["SGD"]


def test_what_is_written_alike_is_equally_good_and_where_all_are_alike_none_is_best(result: Make) -> None:
    rows = compare([result(), result("sgd", rows=((90,), (60.001, 80))), result("other", rows=((90,), (10, 80)))])
    assert best(rows, "class_il.accuracy") == ["SPARC", "SGD"]
    assert best(rows, "task_il.accuracy") == []
    assert best(compare([result()]), "class_il.accuracy") == []


def test_an_upper_bound_is_not_the_best(result: Make) -> None:
    bound = result("joint", rows=((99,), (99, 99)), change={"upper_bound": True})
    rows = compare([bound, result(), result("sgd", rows=((90,), (10, 20)))])
    assert best(rows, "class_il.accuracy") == ["SPARC"]


def test_a_result_without_a_title_is_called_by_its_methods_name(result: Make) -> None:
    (row,) = compare([result("sparc", change={"title": ""})])
    assert row.label == "sparc"


def test_a_method_that_must_be_told_the_task_has_no_class_il_number(result: Make) -> None:
    rows = compare([result("packnet", needs_task_id=True), result(), result("sgd", rows=((90,), (10, 80)))])
    row = rows[0]
    for column in COLUMNS:
        assert (column.text(row.cells[column.name]) == "–") is column.name.startswith("class_il.")
    assert matrix(row, "class_il") is stages(row, "class_il") is at_the_end(row, "class_il") is None
    assert task_confusion(row) is None
    assert matrix(row, "task_il") == [[100, None], [100, 100]]
    assert best(rows, "class_il.accuracy") == ["SPARC"]
    assert [each.label for each in ranked(rows)] == ["SPARC", "SGD", "PackNet"]


def test_what_a_method_tells_of_each_task_is_a_mean_over_seeds(result: Make) -> None:
    (row,) = compare(
        [
            result(change={"diagnostics": {"norm": [1.0, 2.0], "short": [1.0], "first alone": [1.0, 1.0]}}),
            result(seed=1, change={"diagnostics": {"norm": [3.0, 2.0], "short": [1.0]}}),
        ]
    )
    assert [cell.mean for cell in diagnostics_by_task(row)["norm"]] == [2.0, 2.0]
    assert list(diagnostics_by_task(row)) == ["norm"]


def test_matrix_stages_and_landings_are_means_over_seeds(result: Make) -> None:
    (row,) = compare([result(), result(seed=1, rows=((80,), (70, 80)))])
    assert matrix(row, "class_il") == [[85, None], [65, 80]]
    curve = stages(row, "class_il")
    assert curve is not None
    assert [cell.mean for cell in curve] == [85, 72.5]
    assert curve[0].deviation == pytest.approx(math.sqrt(50))
    left = at_the_end(row, "class_il")
    assert left is not None
    assert [(cell.mean, cell.deviation) for cell in left] == [(65, pytest.approx(math.sqrt(50))), (80, 0)]
    shares = task_confusion(row)
    assert shares is not None
    assert [cell.mean for cell in shares] == [75, 25]


def test_other_pictures_and_other_cuts_are_other_streams(result: Make) -> None:
    other_pictures = replace(result(), data={"fingerprint": "f"})
    other_cut = result(rows=((90,), (60, 80), (1, 2, 3)))
    groups = comparison.streams(numbered([result(), other_pictures, result("sgd"), other_cut]))
    assert [len(group) for group in groups] == [2, 1, 1]


def test_rows_are_json(result: Make) -> None:
    rows = [row.as_json() for row in compare([result(width=0.5), result("pnn", needs_task_id=True)])]
    content = json.loads(json.dumps(rows, allow_nan=False))
    assert content[0]["numbers"]["class_il.accuracy"] == {"mean": 70, "deviation": None, "best": False}
    assert content[1]["numbers"]["class_il.accuracy"]["mean"] is None
    assert content[0]["settings"] == {"width": 0.5}


def test_the_main_columns_are_among_all_and_names_are_unique() -> None:
    assert len(COLUMN) == len(COLUMNS) == 17
    assert len(MAIN) == 12
    assert set(MAIN) <= set(COLUMNS)


percentages = st.floats(0, 100)


@given(st.lists(st.tuples(percentages, percentages, percentages), min_size=1, max_size=5))
def test_means_lie_between_the_seeds_and_one_row_at_least_is_best_where_they_differ(
    result: Make, values: list[tuple[float, float, float]]
) -> None:
    results = [result(f"method {index}", rows=((a,), (b, c))) for index, (a, b, c) in enumerate(values)]
    rows = compare(results)
    for name in ("accuracy", "average", "forgetting", "trade_off"):
        column = COLUMN[f"class_il.{name}"]
        means = [row.cells[column.name].mean for row in rows]
        assert means == pytest.approx([getattr(summarize(each.class_il), name) for each in results], nan_ok=True)
        shown = {column.text(row.cells[column.name]) for row in rows}
        assert bool(best(rows, column.name)) is (len(shown) > 1)
    together = compare(
        [replace(each, config={**each.config, "method": "m", "seed": s}) for s, each in enumerate(results)]
    )
    cell = together[0].cells["class_il.accuracy"]
    ends = [(b + c) / 2 for _, b, c in values]
    assert cell.mean is not None
    assert min(ends) - 1e-9 <= cell.mean <= max(ends) + 1e-9
