"""The config of a run: all that its result depends on, and nothing else."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sparc.data import benchmarks
from sparc.data.imageset import Splits
from sparc.data.pictures import LARGEST_SIDE, SMALLEST_SIDE
from sparc.data.stream import Stream, equal_sizes
from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.from_json import build
from sparc.methods import METHODS, Method, Recipe, Settings


@dataclass(frozen=True)
class StreamSettings:
    """How the data set is cut into tasks."""

    tasks: int | None = None
    """Number of tasks, as equal as can be; the benchmark says how many unless you do."""
    sizes: tuple[int, ...] | None = None
    """Classes of each task, instead of equal ones."""
    order_seed: int | None = None
    """Shuffle the classes by this seed; without it they come in the data set's own order."""
    validation: float = 0.0
    """Share of the training pictures held out and tested on beside the test set."""
    image_size: int | None = None
    """Side in pixels to which the pictures of a folder are brought; by default a multiple of 32 that suits them."""

    def __post_init__(self) -> None:
        if self.tasks is not None and self.sizes is not None:
            raise InputError("--tasks and --sizes both say how to cut: give one of them")
        if self.image_size is not None and not SMALLEST_SIDE <= self.image_size <= LARGEST_SIDE:
            raise InputError(f"--image-size {self.image_size} must lie between {SMALLEST_SIDE} and {LARGEST_SIDE}")
        if self.order_seed is not None and not 0 <= self.order_seed < 2**63:
            raise InputError(f"--order-seed {self.order_seed} must lie between 0 and 2⁶³")

    def cut(self, splits: Splits, benchmark: benchmarks.Benchmark) -> Stream:
        classes = len(splits.train.class_names)
        sizes = self.sizes
        if sizes is None:
            sizes = benchmark.task_sizes(classes) if self.tasks is None else tuple(equal_sizes(classes, self.tasks))
        return Stream(splits, sizes, self.order_seed, self.validation)


def usual_recipe(method: type[Method], benchmark: benchmarks.Benchmark | None) -> Recipe:
    """The method's authors' defaults, but for what the benchmark has otherwise."""
    if benchmark is None:
        return method.recipe
    recipe = method.recipe
    if benchmark.epochs is not None:
        recipe = replace(recipe, epochs=benchmark.epochs)
    if benchmark.schedule is not None:
        recipe = replace(recipe, schedule=benchmark.schedule, milestones=())  # one way for the rate to fall is enough
    return recipe


@dataclass(frozen=True)
class RunConfig:
    """All that a run's result depends on, but for the pictures.

    >>> config = RunConfig.default("seq-digits", "sparc")
    >>> config.recipe.epochs, config.recipe.lr, config.settings.width
    (30, 0.005, 0.5)
    """

    benchmark: str
    method: str
    settings: Settings
    recipe: Recipe
    stream: StreamSettings = field(default_factory=StreamSettings)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"--seed {self.seed} must not be negative")

    @classmethod
    def default(cls, benchmark: str, method: str) -> "RunConfig":
        """What the method's authors, and the benchmark, would have."""
        known = METHODS.find(method)
        return cls(benchmark, method, known.Settings(), usual_recipe(known, benchmarks.find(benchmark)))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunConfig":
        """A config as some version has written it: what it lacks has its default, old names mean the new ones.

        ValueError where the method, or a setting, is not known any more.

        >>> usual = RunConfig.default("seq-digits", "er")
        >>> RunConfig.from_json({**usual.as_json(), "settings": {"buffer": 200}}) == usual
        True
        """
        try:
            method = METHODS.find(content["method"])
            own = {"settings": method.Settings, "recipe": type(method.recipe), "stream": StreamSettings}
            parts: dict[str, Any] = {name: build(kind, content[name]) for name, kind in own.items()}
            return cls(**{**content, **parts})
        except (KeyError, TypeError) as error:
            raise ValueError(f"it is no config ({error})") from error

    def names(self) -> list[str]:
        """What can be set by name: settings of the method, of the recipe and of the stream."""
        return list(self._values())

    def renamed(self) -> dict[str, str]:
        """What of that had another name in earlier versions: the new names by the old ones."""
        return {old: new for part in self._parts().values() for old, new in getattr(part, "renamed", {}).items()}

    def label(self, others: Iterable["RunConfig"]) -> str:
        """The method, and in what it differs from others of the same method there, as `sparc compare` takes it.

        >>> usual = RunConfig.default("seq-digits", "er")
        >>> usual.with_values({"lr": "0.03"}).label([usual, RunConfig.default("seq-digits", "sgd")])
        'er:lr=0.03'
        """
        own = self._values()
        same = [other._values() for other in others if (other.method, other.benchmark) == (self.method, self.benchmark)]
        return ":".join([self.method, *as_flags({name: own[name] for name in differing([own, *same])})])

    def with_values(self, given: Mapping[str, str]) -> "RunConfig":
        """The same but for some values, which are given as they would be on the command line.

        >>> RunConfig.default("seq-digits", "sparc").with_values({"epochs": "3"}).recipe.epochs
        3
        """
        given = {self.renamed().get(name, name): text for name, text in given.items()}
        for name in given:
            if name not in self.names():
                raise unknown(f"setting of {self.method}", name, self.names())
        changed: dict[str, Any] = {}
        for key, part in self._parts().items():
            own = {name: text for name, text in given.items() if name in vars(part)}
            if own:
                values = {**self.as_json()[key], **{name: _value(text) for name, text in own.items()}}
                try:
                    changed[key] = build(type(part), values)
                except InputError:
                    raise
                except ValueError as error:
                    said = " ".join(f"{name}={text}" for name, text in own.items())
                    raise InputError(f"{said} of {self.method} cannot be: {error}") from error
        return replace(self, **changed)

    def _values(self) -> dict[str, Any]:
        return {name: value for part in self._parts().values() for name, value in vars(part).items()}

    def _parts(self) -> dict[str, Settings | Recipe | StreamSettings]:
        return {"settings": self.settings, "recipe": self.recipe, "stream": self.stream}

    def unusual(self) -> dict[str, Any]:
        """By name, what is set otherwise than by default for the method on the benchmark.

        >>> RunConfig("seq-digits", "sgd", METHODS.find("sgd").Settings(width=0.25), Recipe(epochs=50)).unusual()
        {'width': 0.25, 'epochs': 50, 'schedule': 'constant'}
        """
        method = METHODS.find(self.method)
        recipe = usual_recipe(method, benchmarks.BENCHMARKS.get(self.benchmark))
        usual = flat_settings(RunConfig(self.benchmark, self.method, method.Settings(), recipe).as_json())
        return {name: value for name, value in flat_settings(self.as_json()).items() if value != usual[name]}

    def as_json(self) -> dict[str, Any]:
        """As it comes back out of a file."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return content


def completed(content: dict[str, Any]) -> dict[str, Any]:
    """A config as this version would have written it, or as it stands where this version does not know it.

    Two of them are equal if they mean the same, whichever versions they come from.
    """
    try:
        return RunConfig.from_json(content).as_json()
    except ValueError:
        return content


def run_title(config: Mapping[str, Any], label: str = "") -> str:
    """What is run, in a line; a label tells its method from others of the same name."""
    return f"{label or config['method']} on {config['benchmark']}, seed {config['seed']}"


def flat_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a config by name, without what is run and the seed; a name that is there twice says whose it is.

    >>> flat_settings({"method": "er", "seed": 0, "settings": {"epochs": 1}, "recipe": {"epochs": 2}})
    {'epochs': 1, 'recipe.epochs': 2}
    """
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}" if inner in flat else inner: part for inner, part in value.items()}
        elif name not in ("benchmark", "method", "seed"):
            flat[name] = value
    return flat


def changed(part: Settings | Recipe) -> dict[str, Any]:
    """The fields that differ from the dataclass's own defaults.

    >>> changed(Recipe(epochs=3))
    {'epochs': 3}
    """
    default = type(part)()
    return {name: value for name, value in vars(part).items() if value != getattr(default, name)}


def as_flags(settings: Mapping[str, Any]) -> list[str]:
    """As they are written in `sparc compare --set`.

    >>> as_flags({"lr": 0.03, "schedule": "cosine", "depth": None})
    ['lr=0.03', 'schedule=cosine', 'depth=null']
    """
    return [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()]


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of what is not the same in all of them, in their order.

    >>> differing([{"lr": 0.1, "epochs": 2}, {"lr": 0.03, "epochs": 2, "buffer": 500}])
    ['lr', 'buffer']
    """
    names = dict.fromkeys(name for each in settings for name in each)
    return [name for name in names if len({json.dumps(each.get(name)) for each in settings}) > 1]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
