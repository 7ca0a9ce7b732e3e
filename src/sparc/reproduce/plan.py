"""From what the paper prints to what is run: methods and streams by our names, at a scale that a machine can bear."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from sparc.data.benchmarks import find
from sparc.experiment.config import RunConfig, usual_recipe
from sparc.methods import METHODS
from sparc.methods.parts.single import NetSettings
from sparc.reproduce.counts import SPARC_FAMILY
from sparc.text import counted

STREAMS = {
    "Seq-CIFAR10 (5T)": "seq-cifar10",
    "Seq-CIFAR100 (5T)": "seq-cifar100-5",
    "Seq-CIFAR100 (10T)": "seq-cifar100-10",
    "Seq-CIFAR100 (20T)": "seq-cifar100-20",
    "Seq-TinyImageNet (10T)": "seq-tinyimagenet",
    "Seq-MiniImageNet (20T)": "seq-miniimagenet",
}
_OTHER_NAMES = {"PNNs": "pnn", "Complete Param. Isolation": "isolation", "weight alignment": "weight-alignment"}
_REHEARSAL = {"er", "der++", "er-ace", "co2l", "gcr", "cls-er", "ocdnet", "tamil", "trire", "lider"}
_TWICE_AS_LONG = {("seq-tinyimagenet", method) for method in ("er", "der++", "gcr", "sparcl-ewc")}
"""The paper's list of exceptions: 100 epochs instead of 50."""


@dataclass(frozen=True)
class Scale:
    """How much of the paper's effort is spent."""

    name: str
    epochs: float
    """As a share of the paper's."""
    seeds: int
    rival_width: float
    """Of the nets that are not SPARC's, as a share of the paper's."""

    @property
    def words(self) -> str:
        """
        >>> SCALES["quick"].words
        "scale quick: 1 epoch a task where the paper has 50, 1 seed, rivals' nets at 1/4 of their width"
        """
        epochs = counted(_epochs(50, self), "epoch")
        often = ", or 100 where the paper has them" if self.epochs == 1 else " where the paper has 50"
        share = f"1/{round(1 / self.rival_width)} of their width" if self.rival_width < 1 else "their full width"
        return f"scale {self.name}: {epochs} a task{often}, {counted(self.seeds, 'seed')}, rivals' nets at {share}"


SCALES = {
    scale.name: scale
    for scale in (Scale("quick", 1 / 50, 1, 1 / 4), Scale("half", 1 / 2, 1, 1 / 2), Scale("paper", 1.0, 3, 1.0))
}


def scaled(config: RunConfig, scale: Scale) -> RunConfig:
    """What the paper would have, with fewer epochs and, where the net is a rival's, fewer filters."""
    recipe = replace(config.recipe, epochs=_epochs(config.recipe.epochs, scale))
    if config.method in SPARC_FAMILY:
        return replace(config, recipe=recipe)
    assert isinstance(config.settings, NetSettings), "the paper's rivals are nets with a width"
    settings = replace(config.settings, width=config.settings.width * scale.rival_width)
    return replace(config, recipe=recipe, settings=settings)


def _epochs(papers: int, scale: Scale) -> int:
    return max(1, round(papers * scale.epochs))


@dataclass(frozen=True)
class RunSpec:
    """What a row of a table, or a curve, would be run with."""

    name: str
    """As the paper prints it."""
    method: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """Why it cannot be run; empty if it can."""
        if self.method not in METHODS.classes:
            return "not there yet"
        known = {each.name for each in fields(METHODS.find(self.method).Settings)}
        lacking = sorted(self.settings.keys() - known)
        return f"not there yet: {self.method} has no --{lacking[0]}" if lacking else ""

    def config(self, benchmark: str) -> RunConfig:
        """As the paper has it, with its first seed."""
        method, stream = METHODS.find(self.method), find(benchmark)
        recipe = usual_recipe(method, stream)
        if (benchmark, self.method) in _TWICE_AS_LONG:
            recipe = replace(recipe, epochs=2 * recipe.epochs)
        return RunConfig(benchmark, self.method, method.Settings(**self.settings), recipe)

    def configs(self, benchmark: str, scale: Scale) -> list[RunConfig]:
        """One a seed; none where it cannot be run."""
        if self.missing:
            return []
        first = scaled(self.config(benchmark), scale)
        return [replace(first, seed=seed) for seed in range(scale.seeds)]


def wish(name: str, buffer: int | None = None, **settings: Any) -> RunSpec:
    """By the method's name as it is printed; a buffer is for those that have one.

    >>> wish("DER++", buffer=500), wish("SPARC", buffer=500).settings
    (RunSpec(name='DER++', method='der++', settings={'buffer_size': 500}), {})
    """
    method = _OTHER_NAMES.get(name, name.lower().replace("²", "2"))
    if buffer is not None and method in _REHEARSAL:
        settings = {"buffer_size": buffer, **settings}
    return RunSpec(name, method, settings)
