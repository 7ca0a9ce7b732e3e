import io
from dataclasses import replace

import pytest
from rich.console import Console

from sparc.experiment.result import Result, triangle
from sparc.report.plain_table import parameters_table
from sparc.report.tables import matrix_table, metrics_table, parts_table, seeds_table, summary
from sparc.text import percent


def result(tasks: int, seed: int = 0, shift: float = 0.0) -> Result:
    rows = [[90.0 - 5 * stage + task + shift for task in range(stage + 1)] for stage in range(tasks)]
    return Result(
        config={"method": "sparc", "benchmark": "seq-digits", "seed": seed},
        class_names=[str(label) for label in range(2 * tasks)],
        sizes=[2] * tasks,
        class_il=triangle(rows),
        task_il=triangle([[value / 2 for value in row] for row in rows]),
        validation=None,
        task_confusion=[[10] * tasks] * tasks,
        parameters=1_234_567,
        parameters_by_owner={"working memories": 1_000_000, "heads": 234_567},
        passes={"forward": 1, "backward": 1},
        buffer_bytes=0,
        seconds={"train": [1.0] * tasks, "test": [1.0] * tasks},
        state_sha256="0" * 64,
        data={},
        environment={},
    )


def shown(table: object) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_matrix_shows_each_stage_and_its_mean() -> None:
    one = result(3)
    lines = shown(matrix_table("Class-IL", one.class_il, one.sizes)).splitlines()
    assert lines[-2].split()[-4:] == ["80.0", "81.0", "82.0", "81.0"]
    assert lines[-4].split()[-2:] == ["90.0", "90.0"]


def test_a_matrix_too_wide_for_a_terminal_is_told_by_task() -> None:
    one = result(50)
    lines = shown(matrix_table("Class-IL", one.class_il, one.sizes)).splitlines()
    assert max(map(len, lines)) < 80
    assert lines[-2].split()[-3:] == ["-106.0", "-106.0", "-130.5"]
    assert "Lands on each task" not in shown(metrics_table(one))


def test_accuracies_by_part_are_means_over_seeds_below_that_of_the_whole() -> None:
    seeds = [
        replace(result(2, seed), by_part={"without [bold]": {"class_il": value, "task_il": 20.0}, f"{value}": {}})
        for seed, value in enumerate((30.0, 50.0))
    ]
    *_, whole, part = shown(parts_table(seeds)).rstrip().splitlines()
    assert whole.split() == ["all", "parts", *["85.50", "±", "0.00", "42.75", "±", "0.00"]]
    assert part.split() == ["without", "[bold]", *["40.00", "±", "14.14", "20.00", "±", "0.00"]]
    assert parts_table([result(2)]).row_count == 0


def test_metrics_are_those_of_both_settings() -> None:
    text = shown(metrics_table(result(3)))
    assert "Accuracy A_T" in text
    assert "81.00" in text
    assert "40.50" in text
    assert "33.3  33.3  33.3" in text


def test_one_task_has_no_forgetting() -> None:
    (line,) = [line for line in shown(metrics_table(result(1))).splitlines() if "Forgetting" in line]
    assert line.split() == ["Forgetting", "↓", "–", "–"]


def test_parameters_by_owner_and_in_all() -> None:
    text = shown(parameters_table(result(2).parameters_by_owner))
    assert "1,000,000" in text
    assert "1,234,567" in text


def test_mean_and_deviation_over_seeds() -> None:
    results = [result(3, seed, shift) for seed, shift in enumerate([0.0, 1.0, 2.0])]
    lines = shown(seeds_table(results)).splitlines()
    assert next(line for line in lines if line.startswith(" mean")).split()[1] == "82.00"
    assert next(line for line in lines if line.startswith(" deviation")).split()[1] == "1.00"
    assert summary(results)["class_il"]["accuracy"] == {"mean": pytest.approx(82), "deviation": pytest.approx(1)}


def test_a_single_seed_has_no_deviation() -> None:
    assert summary([result(1)])["class_il"]["forgetting"] == {"mean": None, "deviation": None}
    assert summary([result(2)])["class_il"]["accuracy"]["deviation"] is None


def test_percent() -> None:
    assert percent(float("nan")) == percent(None) == "–"
    assert percent(1.005, 1) == "1.0"
