"""From what the paper prints to what is run: methods by our names, at a scale that a machine can bear."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sparc.data.benchmarks import find
from sparc.experiment.config import RunConfig, usual_recipe
from sparc.methods import METHODS, Method
from sparc.methods.settings import NetSettings
from sparc.reproduce.paper import the_paper
from sparc.text import counted


@dataclass(frozen=True)
class Scale:
    """How much of the paper's effort is spent."""

    name: str
    epochs: float
    """As a share of a recipe's."""
    seeds: int
    rival_width: float
    """Of the nets that are not SPARC's, as a share of the paper's."""

    @property
    def text(self) -> str:
        """
        >>> SCALES["quick"].text
        "scale quick: 1 epoch a task where a recipe has 50, 1 seed, rivals' nets at 1/4 of their width"
        >>> SCALES["paper"].text
        "scale paper: each recipe's own epochs, 3 seeds, rivals' nets at their full width"
        """
        fewer = f"{counted(_epochs(50, self), 'epoch')} a task where a recipe has 50"
        epochs = fewer if self.epochs < 1 else "each recipe's own epochs"
        share = f"1/{round(1 / self.rival_width)} of their width" if self.rival_width < 1 else "their full width"
        return f"scale {self.name}: {epochs}, {counted(self.seeds, 'seed')}, rivals' nets at {share}"


SCALES = {
    scale.name: scale
    for scale in (Scale("quick", 1 / 50, 1, 1 / 4), Scale("half", 1 / 2, 1, 1 / 2), Scale("paper", 1.0, 3, 1.0))
}


def scaled(config: RunConfig, scale: Scale) -> RunConfig:
    """What the paper would have, with fewer epochs and, where the net is a rival's, fewer filters."""
    recipe, settings = replace(config.recipe, epochs=_epochs(config.recipe.epochs, scale)), config.settings
    if isinstance(settings, NetSettings) and METHODS.find(config.method).kind != "sparc":
        settings = replace(settings, width=settings.width * scale.rival_width)
    return replace(config, recipe=recipe, settings=settings)


def _epochs(recipes: int, scale: Scale) -> int:
    return max(1, round(recipes * scale.epochs))


@dataclass(frozen=True)
class RunSpec:
    """What a row of a table, or a curve, would be run with."""

    name: str
    """The method's, as the paper prints it."""
    buffer: int | None = None
    """Old pictures that are kept, if the method keeps any."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other settings than the method's usual ones."""

    @property
    def method(self) -> type[Method] | None:
        return find_method(self.name)

    @property
    def missing(self) -> str:
        """Why it cannot be run; empty if it can."""
        if self.method is None:
            return "not there yet"
        lacking = sorted(self.settings.keys() - _names(self.method))
        return f"not there yet: {self.method.name} has no --{lacking[0]}" if lacking else ""

    def config(self, benchmark: str) -> RunConfig:
        """As the paper has it, with its first seed."""
        method = self.method
        assert method is not None, f"{self.name} is {self.missing}"
        recipe = usual_recipe(method, find(benchmark))
        if self.name in the_paper().twice_as_long.get(benchmark, ()):
            recipe = replace(recipe, epochs=2 * recipe.epochs)
        has_buffer = self.buffer is not None and "buffer_size" in _names(method)
        settings = {**self.settings, **({"buffer_size": self.buffer} if has_buffer else {})}
        return RunConfig(benchmark, method.name, method.Settings(**settings), recipe)

    def configs(self, benchmark: str, scale: Scale) -> list[RunConfig]:
        """One a seed; none where it cannot be run."""
        if self.missing:
            return []
        first = scaled(self.config(benchmark), scale)
        return [replace(first, seed=seed) for seed in range(scale.seeds)]


def find_method(printed: str) -> type[Method] | None:
    """The method that goes by this name or title, however it is spelled; None where it is not there yet.

    >>> find_method("PNNs").name, find_method("Complete Param. Isolation").name, find_method("weight alignment").name
    ('pnn', 'isolation', 'weight-alignment')
    """
    wanted = _normalized(the_paper().aliases.get(printed, printed))
    methods = METHODS.classes.values()
    return next((each for each in methods if wanted in map(_normalized, (each.name, each.title))), None)


def _normalized(name: str) -> str:
    """
    >>> _normalized("Co²L"), _normalized("PNNs"), _normalized("weight alignment")
    ('co2l', 'pnn', 'weightalignment')
    """
    return re.sub(r"[\s_-]", "", unicodedata.normalize("NFKC", name).casefold()).removesuffix("s")


def _names(method: type[Method]) -> set[str]:
    """Of its settings."""
    return {each.name for each in fields(method.Settings)}
