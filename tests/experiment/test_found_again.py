"""A run stays found, whatever has been added, renamed or given another default since it was done."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparc.data.imageset import Splits
from sparc.experiment import Run, RunConfig, StreamSettings, Workplace, done_runs, find_runs, run
from sparc.experiment.identity import find_done
from sparc.experiment.result import read_result
from sparc.methods import METHODS, Recipe
from sparc.methods.rehearsal.er import ER
from sparc.methods.sparc.settings import SparcSettings
from sparc.methods.sparc.sparc import SPARC
from tests.pages import ROOT

RESULTS = ROOT / "results"
CONFIG = RunConfig(
    "seq-digits",
    "sparc",
    SparcSettings(width=1 / 16),
    Recipe(epochs=1, batch_size=32, lr=5e-3, optimizer="adam"),
    StreamSettings(sizes=(3, 3)),
)


@dataclass(frozen=True)
class LaterRecipe(Recipe):
    warm_restarts: int = 0


@dataclass(frozen=True)
class LaterErSettings(ER.Settings):  # type: ignore[name-defined, misc]
    colour: str = "red"


@dataclass(frozen=True)
class LaterSparcSettings(SparcSettings):
    colour: str = "red"


@dataclass(frozen=True)
class PaintedSparcSettings(SparcSettings):
    colour: str = "blue"


def with_recipe(recipe: Recipe) -> LaterRecipe:
    return LaterRecipe(**vars(recipe))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version in which the recipe and two methods have a setting more."""
    for method in (ER, SPARC):
        monkeypatch.setattr(method, "recipe", with_recipe(method.recipe))
    monkeypatch.setattr(ER, "Settings", LaterErSettings)
    monkeypatch.setattr(SPARC, "Settings", LaterSparcSettings)


@pytest.mark.parametrize("method", ["er", "sparc"])
@pytest.mark.usefixtures("later")
def test_committed_runs_are_found_when_settings_are_added(method: str) -> None:
    folder = RESULTS / "methods"
    runs = [each for each in done_runs(folder) if each.config["method"] == method]
    assert len(runs) >= 3
    for each in runs:
        config = RunConfig.from_json(each.config)
        assert isinstance(config.recipe, LaterRecipe)
        assert config.settings.colour == "red"
        found = find_done(config, runs)
        assert found is not None
        assert found.folder == each.folder
        assert find_done(replace(config, settings=replace(config.settings, colour="green")), runs) is None


def test_every_committed_run_is_of_a_config_of_today() -> None:
    for each in find_runs(sorted(path for path in RESULTS.iterdir() if path.is_dir())):
        stored = json.loads(each.result_path.read_bytes())
        config = RunConfig.from_json(stored["config"])
        assert config.as_json() == each.config
        method = METHODS.find(config.method)
        result = each.measured
        assert (result.title, result.kind, result.upper_bound) == (method.title, method.kind, method.sees_old_tasks)


def test_old_names_mean_the_new_ones() -> None:
    folder = RESULTS / "methods" / "seq-cifar100-5-er-ace-seed0-5dac61f10c"
    assert json.loads((folder / "run.json").read_bytes())["config"]["settings"]["buffer"] == 500
    settings = read_result(folder / "result.json").config["settings"]
    assert settings["buffer_size"] == 500
    assert settings["replay_batch"] == 32
    assert settings["rivals"] == "batch"


@pytest.mark.parametrize(
    "change",
    [{"method": "gone"}, {"settings": {"gone": 1}}, {"recipe": {"epochs": -1}}, {"recipe": 3}, {"gone": 1}],
)
def test_what_is_not_known_any_more_is_nobodys_run(change: dict[str, object], tmp_path: Path) -> None:
    folder = RESULTS / "methods" / "seq-cifar100-5-er-ace-seed0-5dac61f10c"
    content = json.loads((folder / "result.json").read_bytes())
    content["config"] |= change
    (tmp_path / "result.json").write_text(json.dumps(content))
    (only,) = done_runs(tmp_path)
    assert only.config == content["config"], "as it was written"
    with pytest.raises(ValueError, match=r"\w"):
        RunConfig.from_json(only.config)
    assert find_done(RunConfig.from_json(read_result(folder / "result.json").config), [only]) is None


Give = Callable[[Path, RunConfig], Run]


@pytest.fixture(scope="module")
def give(splits: Splits) -> Give:
    def give(out: Path, config: RunConfig) -> Run:
        return run(config, Workplace(out, loaded={(config.benchmark, None): splits}))

    return give


@pytest.fixture(scope="module")
def first(give: Give, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    done = give(tmp_path_factory.mktemp("first"), CONFIG)
    assert not done.was_there
    return done


@pytest.fixture
def copy(first: Run, tmp_path: Path) -> Path:
    shutil.copytree(first.folder, tmp_path / first.folder.name)
    return tmp_path / first.folder.name


def later_config(**settings: object) -> RunConfig:
    return replace(
        CONFIG, settings=SPARC.Settings(**{**vars(CONFIG.settings), **settings}), recipe=with_recipe(CONFIG.recipe)
    )


@pytest.mark.usefixtures("later")
def test_a_setting_that_is_added_changes_no_name(give: Give, copy: Path) -> None:
    again = give(copy.parent, later_config())
    assert again.was_there
    assert again.folder == copy
    other = give(copy.parent, later_config(colour="blue"))
    assert not other.was_there
    assert other.folder != copy


def test_a_run_is_found_by_its_content_in_a_folder_of_any_name(give: Give, copy: Path) -> None:
    renamed = copy.rename(copy.with_name("my favourite"))
    again = give(copy.parent, CONFIG)
    assert again.was_there
    assert again.folder == renamed
    content = json.loads((renamed / "result.json").read_bytes())
    content["data"]["fingerprint"] = "of other pictures"
    (renamed / "result.json").write_text(json.dumps(content))
    assert not give(copy.parent, CONFIG).was_there


@pytest.mark.usefixtures("later")
def test_a_default_that_changes_brings_no_two_runs_into_one_folder(
    give: Give, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    red = give(tmp_path, later_config())
    monkeypatch.setattr(SPARC, "Settings", PaintedSparcSettings)
    blue = give(tmp_path, later_config())
    assert not blue.was_there
    assert blue.folder != red.folder, "though neither name has a colour in it"
    assert json.loads((red.folder / "result.json").read_bytes())["config"]["settings"]["colour"] == "red"
    assert give(tmp_path, later_config(colour="blue")).folder == blue.folder
    assert give(tmp_path, later_config(colour="red")).folder == red.folder
