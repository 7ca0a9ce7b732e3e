"""The config of a run: all that its result depends on, and nothing else."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sparc.data import benchmarks
from sparc.data.imageset import Splits
from sparc.data.stream import Stream, equal_sizes
from sparc.errors import InputError
from sparc.methods import METHODS, Method, Recipe, Settings


@dataclass(frozen=True)
class StreamSettings:
    """How the data set is cut into tasks."""

    tasks: int | None = None
    """Number of tasks, of as many classes each as can be; the benchmark says how many unless you do."""
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
        if self.image_size is not None and not 8 <= self.image_size <= 1024:
            raise InputError(f"--image-size {self.image_size} must lie between 8 and 1024")
        if self.order_seed is not None and self.order_seed < 0:
            raise InputError(f"--order-seed {self.order_seed} must not be negative")

    def cut(self, splits: Splits, benchmark: benchmarks.Benchmark) -> Stream:
        classes = len(splits.train.class_names)
        sizes = self.sizes or equal_sizes(classes, self.tasks or benchmark.task_count(classes))
        return Stream(splits, sizes, self.order_seed, self.validation)


def usual_recipe(method: type[Method], benchmark: benchmarks.Benchmark) -> Recipe:
    """The method's authors' defaults, for as long as the benchmark has it."""
    return replace(method.recipe, epochs=benchmark.epochs, schedule=benchmark.schedule)


@dataclass(frozen=True)
class RunConfig:
    """
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

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def folder_name(self, fingerprint: str) -> str:
        """Where the run lies: named by all that its result depends on, the pictures included."""
        content = json.dumps([self.as_json(), fingerprint], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        benchmark = self.benchmark if self.benchmark in benchmarks.BENCHMARKS else "folder"
        return f"{benchmark}-{self.method}-seed{self.seed}-{digest}"
