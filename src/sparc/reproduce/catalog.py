"""Every table and figure of the paper that shows results, by its name."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Literal

from sparc.discovery import unknown
from sparc.experiment.result import Setting
from sparc.report.labels import SETTING_TITLES
from sparc.reproduce.exhibit import Chart, CountExhibit, Curve, Exhibit, FigureExhibit, TableExhibit
from sparc.reproduce.measures import (
    Points,
    accuracy_points,
    after_each_task,
    after_the_last_task,
    at_the_end,
    probabilities,
    recorded,
    stability_by_stage,
)
from sparc.reproduce.paper import Row, the_paper
from sparc.reproduce.plan import RunSpec

C5, C20, TINY = "seq-cifar100-5", "seq-cifar100-20", "seq-tinyimagenet"


def find_exhibit(name: str) -> Exhibit:
    if name not in EXHIBITS:
        raise unknown("table or figure", name, EXHIBITS)
    return EXHIBITS[name]


def _by_method(buffer: int | None = None, label: int = 0) -> Callable[[Row], RunSpec]:
    """What a row is run with that says no more than its method, with one of its labels."""
    return lambda row: RunSpec(row.labels[label], buffer)


def _width_and_depth(row: Row) -> RunSpec:
    width, depth, _ = row.labels
    # Depth 4 is what suits the pictures, so that these rows are the usual runs.
    deep = {} if depth == "4" else {"depth": int(depth)}
    return RunSpec("SPARC", settings={"width": float(Fraction(width)), **deep})


def _same_backbone(row: Row) -> RunSpec:
    name, _ = row.labels
    return RunSpec(name) if name == "SPARC" else RunSpec(name, 500, {"backbone": "separable", "width": 2.5})


def _methods(names: str, buffer: int | None = None) -> dict[str, RunSpec]:
    return {name: RunSpec(name, buffer) for name in names.split(", ")}


def _curves(specs: Mapping[str, RunSpec], benchmark: str, points: Points) -> tuple[Curve, ...]:
    return tuple(Curve(name, spec, benchmark, points) for name, spec in specs.items())


def _accuracy_by_task(
    setting: Setting, kind: Literal["lines", "bars"], specs: Mapping[str, RunSpec], benchmark: str
) -> Chart:
    title = f"{SETTING_TITLES[setting]} accuracy"
    curves = _curves(specs, benchmark, accuracy_points(setting, at_the_end))
    return Chart(f"{title} at the end, in percent", "task", f"{title}, %", kind, curves)


def _against_joint(setting: Setting, names: str) -> Chart:
    title, points = SETTING_TITLES[setting], accuracy_points(setting, after_the_last_task)
    return Chart(
        f"{title} accuracy relative to JOINT's, in percent",
        "parameters, M",
        f"{title} A_T, % of JOINT's",
        "scatter",
        _curves(_methods(names, buffer=200), TINY, points),
        reference=Curve("JOINT", RunSpec("JOINT"), TINY, points),
    )


def _table(name: str, spec_of: Callable[[Row], RunSpec], kind: type[TableExhibit] = TableExhibit) -> TableExhibit:
    return kind(the_paper().table(name), spec_of)


def _figure(name: str, *charts: Chart) -> FigureExhibit:
    return FigureExhibit(the_paper().figure(name), charts)


_THREE = _methods("ER, DER++, SPARC", buffer=500)
_ALL: tuple[Exhibit, ...] = (
    _table("table-results", _by_method(buffer=200)),
    _table("table-results-500", _by_method(buffer=500)),
    _table("table-non-exemplar", _by_method()),
    _table("table-width-depth", _width_and_depth),
    _table("table-parameters", _by_method(), CountExhibit),
    _table("table-isolation", lambda row: RunSpec(row.labels[0], settings={"width": float(row.labels[1])})),
    _table("table-efficiency", _by_method()),
    _table("table-metrics", _by_method(buffer=500, label=1)),
    _table("table-same-backbone", _same_backbone),
    _table("table-miniimagenet", _by_method(buffer=100)),
    _figure(
        "figure-taskwise",
        _accuracy_by_task("task_il", "lines", _methods("PNNs, CPG, PAE, CLIP, NISPA, PackNet, SPARC"), C20),
    ),
    _figure(
        "figure-size",
        _against_joint("class_il", "ER, DER++, ER-ACE, Co²L, GCR, CLS-ER, OCDNet, TAMiL, TriRE, SPARC"),
        _against_joint("task_il", "ALASSO, UCB, oEWC, SI, BMKP, PackNet, SPARC"),
    ),
    _figure(
        "figure-stability-alpha",
        Chart(
            "Stability after each task, Class-IL, in percent",
            "after task",
            "Stability, %",
            "lines",
            _curves(
                {f"α = {alpha:g}": RunSpec("SPARC", settings={"alpha": alpha}) for alpha in (0.5, 0.9, 0.99, 1.0)},
                C5,
                accuracy_points("class_il", stability_by_stage),
            ),
            first=2,
        ),
    ),
    _figure(
        "figure-head-norms",
        Chart(
            "L2 norm of each task's head",
            "task",
            "L2 norm",
            "bars",
            tuple(
                Curve(f"{when} re-normalization", RunSpec("SPARC"), C5, recorded(f"head norm {when}"))
                for when in ("before", "after")
            ),
        ),
        _accuracy_by_task(
            "class_il", "bars", {"re-normalization": RunSpec("SPARC"), **_methods("weight alignment")}, C5
        ),
    ),
    _figure("figure-taskwise-class-il", _accuracy_by_task("class_il", "bars", _THREE, C5)),
    _figure(
        "figure-task-probabilities",
        Chart(
            "Share of the test pictures that is given a class of each task, in percent",
            "task",
            "share, %",
            "bars",
            _curves(_THREE, C5, probabilities),
        ),
    ),
    _figure(
        "figure-longer-sequences",
        *(
            Chart(
                f"Class-IL accuracy after each of {tasks} tasks, in percent",
                "after task",
                "A_τ, %",
                "lines",
                _curves(_THREE, f"seq-cifar100-{tasks}", accuracy_points("class_il", after_each_task)),
            )
            for tasks in (5, 10, 20)
        ),
    ),
)
EXHIBITS = {exhibit.id: exhibit for exhibit in _ALL}
