"""Tables and figures filled in with results that are made up, so that every number can be worked out by hand."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from sparc.data.benchmarks import find
from sparc.experiment import Result, Run, RunConfig, find_done
from sparc.experiment.folder import done_run
from sparc.experiment.result import triangle
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.counts import data_of
from sparc.reproduce.exhibit import CountExhibit, Exhibit, TableExhibit
from sparc.reproduce.measures import MEASURES
from sparc.reproduce.paper import the_paper
from sparc.reproduce.plan import SCALES, RunSpec, Scale
from sparc.reproduce.tables import PARAMETERS, PASSES, FilledTable, fill

PAPER = SCALES["paper"]
EVERY = pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=lambda exhibit: exhibit.id)


def result(config: RunConfig, accuracy: float, forgotten: float = 10.0, **changes: Any) -> Run:
    """Every task is learned to `accuracy` + what is `forgotten` of it later; Task-IL has 20 more of everything."""
    tasks, data = find(config.benchmark).tasks, data_of(config.benchmark)
    rows = [[accuracy] * stage + [accuracy + forgotten] for stage in range(tasks)]
    rows[-1][-1] = accuracy
    made = Result(
        config=json.loads(json.dumps(config.as_json())),
        class_names=[str(label) for label in range(data.classes)],
        sizes=[data.classes // tasks] * tasks,
        class_il=triangle(rows),
        task_il=triangle([[value + 20 for value in row] for row in rows]),
        validation=None,
        task_confusion=[[10 * (task + 1) for task in range(tasks)]] * tasks,
        parameters=1_000_000,
        parameters_by_owner={"net": 1_000_000},
        passes={"forward": 1, "backward": 1},
        buffer_bytes=0,
        seconds={"train": [1.0] * tasks, "test": [1.0] * tasks},
        state_sha256="0" * 64,
        data={"train": data.train_pictures},
        environment={},
    )
    return done_run(Path(), replace(made, **changes))


def cells(table: FilledTable, *labels: str) -> dict[str, str]:
    (row,) = {row for row in table.rows if row.labels[: len(labels)] == labels}
    return dict(zip(table.number_titles, map(str, row.ours), strict=True))


def test_mean_and_deviation_over_seeds_by_hand() -> None:
    runs = [replace(RunConfig.default("seq-cifar100-5", "sparc"), seed=seed) for seed in range(3)]
    filled = fill(EXHIBITS["table-results"], [result(run, 48.0 + run.seed) for run in runs], PAPER)
    (table,) = filled.tables
    ours = cells(table, "SPARC")
    assert ours == {
        PARAMETERS: "1.040 ✓",
        "forward passes": "1",
        "backward passes": "1",
        "CIFAR100 (5T)\nClass-IL A_T (%)": "49.00 ± 1.00",
        "CIFAR100 (5T)\nTask-IL A_T (%)": "69.00 ± 1.00",
        "TinyImageNet (10T)\nClass-IL A_T (%)": "not run",
        "TinyImageNet (10T)\nTask-IL A_T (%)": "not run",
    }
    (row,) = (row for row in table.rows if row.labels == ("SPARC",))
    assert row.seeds == {3}
    assert row.state == ""
    assert [str(number) for number in row.paper][3:5] == ["49.03 ± 0.05", "75.52 ± 0.11"]
    assert row.ours[3].as_json() == {"mean": 49.0, "deviation": 1.0, "n": 3, "agrees": None, "reason": None}


def test_one_seed_has_no_deviation_and_says_so() -> None:
    (table,) = fill(EXHIBITS["table-results"], [result(RunSpec("SPARC").config("seq-cifar100-5"), 48.0)], PAPER).tables
    (row,) = (row for row in table.rows if row.labels == ("SPARC",))
    assert str(row.ours[3]) == "48.00"
    assert row.ours[3].as_json()["deviation"] is None
    assert row.seeds == {1}


def test_metrics_by_hand() -> None:
    config = RunConfig.default("seq-cifar100-5", "sparc")
    (table,) = fill(EXHIBITS["table-metrics"], [result(config, 50.0, forgotten=10.0)], PAPER).tables
    stability, plasticity = 50.0, mean([60, 60, 60, 60, 50])
    assert cells(table, "Seq-CIFAR100 (5T)", "SPARC") == {
        "Class-IL A_T (%)": "50.00",
        "Forgetting (%)": "10.00",
        "Stability (%)": "50.00",
        "Plasticity (%)": f"{plasticity:.2f}",
        "Trade-off": f"{2 * stability * plasticity / (stability + plasticity):.2f}",
    }
    assert set(cells(table, "Seq-CIFAR10 (5T)", "SPARC").values()) == {"not run"}


def test_average_and_efficiency_by_hand() -> None:
    tiny = result(RunConfig.default("seq-tinyimagenet", "sparc"), 30.0)
    (table,) = fill(EXHIBITS["table-non-exemplar"], [tiny], PAPER).tables
    stages = [40.0, *((30 * stage + 40) / (stage + 1) for stage in range(1, 9)), 30.0]
    assert cells(table, "SPARC") == {PARAMETERS: "1.927 ✗", "A_T (%)": "30.00", "Ā (%)": f"{mean(stages):.2f}"}
    ten = result(RunConfig.default("seq-cifar100-10", "sparc"), 45.0, parameters=1_900_950)
    (table,) = fill(EXHIBITS["table-efficiency"], [ten], PAPER).tables
    assert cells(table, "SPARC")["Efficiency"] == f"{45 / 1.90095:.2f}"


@EVERY
@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_with_nothing_run_nothing_is_measured(exhibit: Exhibit, scale: Scale) -> None:
    filled = fill(exhibit, [], scale)
    for table in filled.tables:
        for row in table.rows:
            assert not row.seeds
            assert isinstance(exhibit, CountExhibit) or row.state
    assert all(not curve.points and curve.reason for chart in filled.charts for curve in chart.curves)
    assert scale.name in filled.scale_text
    assert json.loads(json.dumps(filled.as_json(), allow_nan=False))["id"] == exhibit.id


@EVERY
def test_a_missing_method_never_gets_a_number_however_much_has_been_run(exhibit: Exhibit) -> None:
    results = [result(config, 40.0 + config.seed) for config in exhibit.needed(PAPER)]
    filled = fill(exhibit, results, PAPER)
    if isinstance(exhibit, TableExhibit) and not isinstance(exhibit, CountExhibit):
        (table,) = filled.tables
        for row, printed in zip(table.rows, exhibit.shown.rows, strict=True):
            missing = exhibit.spec_of(printed).missing
            assert row.paper == printed.numbers
            assert row.state == missing
            assert any(each.mean is not None for each in row.ours) is not bool(missing)
            assert not missing or all(str(each) == "" for each in row.ours)
    for chart in filled.charts:
        for curve, filled_curve in zip(chart.chart.curves, chart.curves, strict=True):
            if curve.spec.missing:
                assert filled_curve.points == ()
                assert filled_curve.reason == curve.spec.missing


def test_every_column_of_the_paper_can_be_measured_or_counted() -> None:
    titles = {column.title for table in the_paper().tables for column in table.number_columns}
    assert titles == {*MEASURES, *PASSES, PARAMETERS, "5 tasks", "10 tasks", "20 tasks"}


def test_counts_are_the_papers_but_for_two_that_do_not_follow() -> None:
    """One is SPARC's on TinyImageNet, 1.97; the other is of PNNs with 20 tasks."""
    filled = fill(EXHIBITS["table-parameters"], [], SCALES["quick"])
    growth, elsewhere = filled.tables
    disagree = [
        (*row.labels, title, str(paper), str(ours))
        for table in (growth, elsewhere)
        for row in table.rows
        for title, paper, ours in zip(table.number_titles, row.paper, row.ours, strict=True)
        if not ours.agrees
    ]
    assert disagree == [
        ("PNNs", "20 tasks", "2645.05", "2,644.849 ✗"),
        ("table-non-exemplar", "SPARC", PARAMETERS, "1.97", "1.927 ✗"),
    ]
    assert len(growth.rows) == 6
    assert len(elsewhere.rows) == 22
    assert any("1.97 does not follow" in note for note in filled.notes)
    assert any("2,645.05" in note for note in filled.notes)
    assert [row.state for row in growth.rows] == ["counted"] * 6


def test_counts_at_the_papers_widths_do_not_change_with_the_scale() -> None:
    tables = [fill(EXHIBITS["table-parameters"], [], scale).tables for scale in SCALES.values()]
    assert tables[0] == tables[1] == tables[2]


def test_the_count_of_a_narrower_rival_is_its_own_and_not_held_against_the_papers() -> None:
    (quick,) = fill(EXHIBITS["table-results"], [], SCALES["quick"]).tables
    (full,) = fill(EXHIBITS["table-results"], [], PAPER).tables
    assert cells(quick, "SGD")[PARAMETERS] == "0.715"
    assert cells(full, "SGD")[PARAMETERS] == "11.230 ✓"
    assert cells(quick, "SPARC")[PARAMETERS] == "1.040 ✓"


def test_parameters_and_passes_of_every_method_that_is_there_need_no_run() -> None:
    (table,) = fill(EXHIBITS["table-results"], [], PAPER).tables
    assert cells(table, "DER++")["forward passes"] == "3", "its batch, pictures with logits and pictures with labels"
    for row in table.rows:
        counts = dict(zip(table.number_titles, row.ours, strict=True))
        assert (counts["forward passes"].mean is not None) is (row.state == "not run")
        keeps_more = row.labels[0] in {"PackNet", "Co²L", "OCDNet", "TriRE", "NISPA"}
        assert (counts[PARAMETERS].mean is not None) is (row.state == "not run" and not keeps_more)


def test_parameters_of_a_method_that_keeps_more_than_nets_are_read_from_its_run() -> None:
    run = result(RunConfig.default("seq-cifar100-5", "packnet"), 40.0, parameters=22_379_364)
    (table,) = fill(EXHIBITS["table-results"], [run], PAPER).tables
    assert cells(table, "PackNet")[PARAMETERS] == "22.38 ✗", "three numbers a weight in the paper, two here"


def test_copies_of_the_net_are_counted_with_it() -> None:
    (table,) = fill(EXHIBITS["table-non-exemplar"], [], PAPER).tables
    assert cells(table, "LwF")[PARAMETERS] == "22.562 ✗", "a net and its teacher, with running statistics"


def test_a_method_that_needs_the_task_has_no_class_il() -> None:
    run = result(RunSpec("PackNet").config("seq-cifar100-5"), 40.0, class_il=None, task_confusion=None)
    (table,) = fill(EXHIBITS["table-results"], [run], PAPER).tables
    ours = cells(table, "PackNet")
    assert ours["CIFAR100 (5T)\nClass-IL A_T (%)"] == "–"
    assert ours["CIFAR100 (5T)\nTask-IL A_T (%)"] == "60.00"


def test_a_result_belongs_to_exactly_its_config() -> None:
    config = RunConfig.default("seq-cifar100-5", "sparc")
    mine = result(config, 1.0)
    assert find_done(config, [mine]) is mine
    for other in (
        replace(config, seed=1),
        replace(config, benchmark="seq-cifar100-10"),
        replace(config, settings=replace(config.settings, width=1.0)),
        replace(config, recipe=replace(config.recipe, epochs=49)),
        replace(config, stream=replace(config.stream, order_seed=0)),
    ):
        assert find_done(other, [mine]) is None


def test_fewer_pictures_than_the_paper_had_are_told() -> None:
    config = RunConfig.default("seq-tinyimagenet", "sparc")
    part = fill(EXHIBITS["table-non-exemplar"], [result(config, 30.0, data={"train": 20_000})], PAPER)
    assert "Ours were trained on 20,000 of tinyimagenet's 100,000 pictures." in part.notes
    whole = fill(EXHIBITS["table-non-exemplar"], [result(config, 30.0)], PAPER)
    assert not any("trained on" in note for note in whole.notes)


def points(exhibit: str, runs: list[Run], chart: int = 0) -> dict[str, list[float | None]]:
    filled = fill(EXHIBITS[exhibit], runs, PAPER).charts[chart]
    return {curve.name: [point.mean for _, point in curve.points] for curve in filled.curves if curve.points}


def test_accuracy_on_each_task_at_the_end() -> None:
    runs = [replace(RunConfig.default("seq-cifar100-20", "sparc"), seed=seed) for seed in range(2)]
    curves = points("figure-taskwise", [result(run, 50.0 + 2 * run.seed) for run in runs])
    assert curves == {"SPARC": [pytest.approx(71.0)] * 20}
    (chart,) = fill(EXHIBITS["figure-taskwise"], [result(run, 50.0 + 2 * run.seed) for run in runs], PAPER).charts
    assert chart.curves[-1].points[0][1].deviation == pytest.approx(stdev([70, 72]))
    assert chart.curves[-1].about == "2 seeds"
    assert [task for task, _ in chart.curves[-1].points] == list(range(1, 21))


def test_stability_after_each_task_by_hand() -> None:
    half = RunSpec("SPARC", settings={"alpha": 0.5}).config("seq-cifar100-5")
    made = result(half, 0.0, class_il=triangle([[90.0], [80.0, 70.0], [60.0, 50.0, 40.0], [1.0, 2, 3, 4], [5.0] * 5]))
    assert points("figure-stability-alpha", [made]) == {"α = 0.5": [80.0, 55.0, 2.0, 5.0]}
    half_curve = fill(EXHIBITS["figure-stability-alpha"], [made], PAPER).charts[0].curves[0]
    assert [task for task, _ in half_curve.points] == [2, 3, 4, 5]


def test_task_probabilities_and_stages() -> None:
    made = result(RunConfig.default("seq-cifar100-5", "sparc"), 40.0)
    shares = points("figure-task-probabilities", [made])["SPARC"]
    assert shares == pytest.approx([100 * share / 15 for share in (1, 2, 3, 4, 5)])
    assert points("figure-longer-sequences", [made])["SPARC"] == pytest.approx([50, 45, 130 / 3, 42.5, 40])
    assert points("figure-longer-sequences", [made], chart=1) == {}


def test_head_norms_come_from_what_the_method_recorded_or_are_said_not_to_be_there() -> None:
    config = RunConfig.default("seq-cifar100-5", "sparc")
    norms = {"head norm before": [5.0, 4.0, 3.0, 2.0, 1.0], "head norm after": [1.0] * 5}
    curves = points("figure-head-norms", [result(config, 40.0, diagnostics=norms)])
    assert curves == {
        "before re-normalization": norms["head norm before"],
        "after re-normalization": norms["head norm after"],
    }
    left, right = fill(EXHIBITS["figure-head-norms"], [result(config, 40.0)], PAPER).charts
    assert {curve.reason for curve in left.curves} == {"not recorded: remove its runs, and they are run again"}
    assert right.curves[0].points


def test_size_is_shown_against_what_joint_reaches() -> None:
    sparc = result(RunConfig.default("seq-tinyimagenet", "sparc"), 30.0, parameters=1_926_694)
    without = fill(EXHIBITS["figure-size"], [sparc], PAPER).charts[0].curves[-1]
    assert (without.points, without.reason) == ((), f"JOINT {RunSpec('JOINT').missing or 'not run'}")
    bounds = [result(config, 60.0) for config in RunSpec("JOINT").configs("seq-tinyimagenet", PAPER)]
    ((size, height),) = fill(EXHIBITS["figure-size"], [sparc, *bounds], PAPER).charts[0].curves[-1].points
    assert (size, height.mean) == (pytest.approx(1.926694), pytest.approx(50.0))
