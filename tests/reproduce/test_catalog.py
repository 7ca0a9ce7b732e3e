"""Every table and figure of the paper, and the runs that each is made from."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparc.cli.reproduce import commands
from sparc.cli.run import arguments_of
from sparc.cli.workers import Workers
from sparc.data.benchmarks import BENCHMARKS
from sparc.errors import InputError
from sparc.experiment import RunConfig
from sparc.methods import METHODS, Settings
from sparc.methods.bounds.sgd import SGD
from sparc.reproduce.catalog import EXHIBITS, find_exhibit
from sparc.reproduce.exhibit import Exhibit, TableExhibit
from sparc.reproduce.paper import the_paper
from sparc.reproduce.plan import SCALES, RunSpec, Scale, find_method, scaled

IDS = [
    "table-results",
    "table-results-500",
    "table-non-exemplar",
    "table-width-depth",
    "table-parameters",
    "table-isolation",
    "table-efficiency",
    "table-metrics",
    "table-same-backbone",
    "table-miniimagenet",
    "figure-taskwise",
    "figure-size",
    "figure-stability-alpha",
    "figure-head-norms",
    "figure-taskwise-class-il",
    "figure-task-probabilities",
    "figure-longer-sequences",
]
EVERY = pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=lambda exhibit: exhibit.id)
SCALE = pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)


def test_the_names_are_these_and_every_table_and_figure_has_one() -> None:
    assert list(EXHIBITS) == IDS
    labels = {exhibit.shown.label for exhibit in EXHIBITS.values()}
    assert labels == {each.label for each in (*the_paper().tables, *the_paper().figures)}
    assert all(exhibit.shown.caption and exhibit.shown.title for exhibit in EXHIBITS.values())


def test_a_name_that_is_none_gets_the_nearest() -> None:
    assert find_exhibit("table-results").shown.label == "tab:results"
    with pytest.raises(InputError, match="did you mean table-metrics"):
        find_exhibit("table-metric")


@EVERY
@SCALE
def test_every_run_can_be_built_and_its_benchmark_is_there(exhibit: Exhibit, scale: Scale) -> None:
    for config in exhibit.needed(scale):
        assert config.benchmark in BENCHMARKS
        assert config.method in METHODS.classes
        assert isinstance(config.settings, METHODS.find(config.method).Settings)
        assert config.as_json()["seed"] < scale.seeds


@EVERY
def test_no_run_is_asked_for_twice_and_there_is_one_a_seed(exhibit: Exhibit) -> None:
    configs = exhibit.needed(SCALES["paper"])
    assert len({repr(config) for config in configs}) == len(configs)
    assert {repr(replace(config, seed=0)) for config in configs} == {
        repr(config) for config in configs if config.seed == 0
    }
    assert len(configs) == 3 * len([config for config in configs if config.seed == 0])


@EVERY
def test_a_method_is_there_or_is_said_not_to_be(exhibit: Exhibit) -> None:
    for each, _ in exhibit.specs():
        assert (each.method in METHODS.classes.values()) or each.missing == "not there yet"
        assert bool(each.configs("seq-cifar100-5", SCALES["quick"])) is not bool(each.missing)
    assert "SPARC" not in exhibit.missing_methods()


def test_sparcs_usual_row_is_the_run_that_anybody_would_start() -> None:
    usual = RunConfig.default("seq-cifar100-5", "sparc")
    for name in ("table-results", "table-width-depth", "table-isolation", "figure-stability-alpha"):
        assert usual in EXHIBITS[name].needed(SCALES["paper"]), name


def test_width_and_depth_are_the_rows() -> None:
    exhibit = EXHIBITS["table-width-depth"]
    assert isinstance(exhibit, TableExhibit)
    settings = [exhibit.spec_of(row).settings for row in exhibit.shown.rows]
    assert settings[:5] == [
        {"width": 0.25, "depth": 1},
        {"width": 0.25, "depth": 2},
        {"width": 0.25, "depth": 3},
        {"width": 0.25},
        {"width": 0.5, "depth": 2},
    ]


def test_scales_shorten_training_and_narrow_the_rivals_alone() -> None:
    sparc = RunConfig.default("seq-cifar100-5", "sparc")
    sgd = RunConfig.default("seq-cifar100-5", "sgd")
    epochs = [scaled(sparc, scale).recipe.epochs for scale in SCALES.values()]
    assert epochs == [1, 25, 50]
    assert [scaled(sparc, scale).settings.width for scale in SCALES.values()] == [0.5, 0.5, 0.5]
    assert [scaled(sgd, scale).settings.width for scale in SCALES.values()] == [0.25, 0.5, 1.0]
    assert scaled(sgd, SCALES["paper"]) == sgd
    assert [scale.seeds for scale in SCALES.values()] == [1, 1, 3]


@SCALE
def test_a_scale_says_what_it_is(scale: Scale) -> None:
    assert scale.text.startswith(f"scale {scale.name}: ")


@dataclass(frozen=True)
class BufferSettings(Settings):
    buffer_size: int = 200


def with_method(monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Settings]) -> None:
    """As if somebody had added a file."""
    rival = type("Rival", (SGD,), {"name": name, "Settings": kind, "__module__": SGD.__module__})
    monkeypatch.setattr(METHODS, "classes", {**METHODS.classes, name: rival})


def test_a_method_that_arrives_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with_method(monkeypatch, "er", BufferSettings)
    assert "ER" not in EXHIBITS["table-results"].missing_methods()
    for name, buffer in (("table-results", 200), ("table-results-500", 500), ("table-miniimagenet", 100)):
        runs = [config for config in EXHIBITS[name].needed(SCALES["paper"]) if config.method == "er"]
        assert {config.settings.buffer_size for config in runs} == {buffer}  # type: ignore[attr-defined]


def test_a_setting_that_a_method_lacks_is_named_and_nothing_is_run_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with_method(monkeypatch, "er", BufferSettings)
    assert RunSpec("ER", 500, {"backbone": "separable"}).missing == "not there yet: er has no --backbone"
    assert not [config for config in EXHIBITS["table-same-backbone"].needed(SCALES["quick"]) if config.method == "er"]
    assert "ER" in EXHIBITS["table-same-backbone"].missing_methods()


def test_the_papers_exceptions_are_trained_for_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with_method(monkeypatch, "er", BufferSettings)
    epochs = {name: RunSpec("ER", 200).config(name).recipe.epochs for name in ("seq-cifar100-5", "seq-tinyimagenet")}
    assert epochs == {"seq-cifar100-5": 50, "seq-tinyimagenet": 100}
    assert RunSpec("SPARC").config("seq-tinyimagenet").recipe.epochs == 50


@pytest.mark.parametrize(
    ("printed", "name"),
    [("W²SN", "w2sn"), ("DENs", "den"), ("A new Method", "a-new-method")],
)
def test_a_method_that_arrives_is_found_however_the_paper_spells_it(
    printed: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_method(printed) is None
    with_method(monkeypatch, name, BufferSettings)
    assert find_method(printed) is METHODS.find(name)


def test_a_method_is_found_by_its_title_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS.find("sgd"), "title", "Fine Tuning")
    assert find_method("fine-tuning") is METHODS.find("sgd")


@pytest.mark.parametrize("stream", the_paper().streams.values())
def test_the_streams_are_benchmarks(stream: str) -> None:
    assert stream in BENCHMARKS


@SCALE
def test_the_command_that_is_shown_is_the_run(scale: Scale, tmp_path: Path) -> None:
    configs = list(dict.fromkeys(config for exhibit in EXHIBITS.values() for config in exhibit.needed(scale)))
    found = []
    for command, group in commands(configs, Workers(out=tmp_path)).items():
        given = arguments_of(command.split()[2:])
        choice = given.choice
        first = RunConfig(choice.benchmark, choice.method, given.method, given.recipe, given.stream, choice.seed)
        found += [replace(first, seed=first.seed + more) for more in range(choice.seeds)]
        assert found[-len(group) :] == group
        assert given.workplace.out == tmp_path
    assert len(found) == len(configs)


def test_seeds_with_a_gap_between_them_are_two_commands() -> None:
    usual = RunConfig.default("seq-cifar100-5", "sparc")
    told = commands([replace(usual, seed=seed) for seed in (0, 1, 3)], Workers())
    assert [command.split("--seed ")[1] for command in told] == ["0 --seeds 2 --out runs", "3 --out runs"]
