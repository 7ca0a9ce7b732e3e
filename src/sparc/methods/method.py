"""The contract: a method says what it does differently, and nothing else.

The trainer owns epochs, batches, optimizer steps, progress and evaluation. A method is an `nn.Module`, so that all its
state (nets, masks, importance weights, buffers) is in `state_dict()`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Generator, Tensor, nn

from sparc.data.augment import Augment
from sparc.data.stream import Task
from sparc.methods.recipe import Recipe
from sparc.nn.elastic import Elastic
from sparc.nn.layout import layer_filters


@dataclass(frozen=True)
class Settings:
    """The method's own settings."""

    width: float = 1.0
    """Filters of the first layer, as a multiple of 64."""
    depth: int | None = None
    """Layers of two residual blocks; without it as many as suit the pictures, at most 4."""

    def __post_init__(self) -> None:
        layer_filters(self.width, 1 if self.depth is None else self.depth)


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures of the current task."""

    images: Tensor
    """float, augmented and normalized."""
    labels: Tensor
    """Places among all classes, in the order in which they were seen."""
    last_epoch: bool
    """Of the phase."""
    originals: Tensor
    """uint8, as they were before augmentation: what a buffer keeps."""


@dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of a task's training with its own recipe."""

    recipe: Recipe
    name: str = "train"
    parameters: Sequence[nn.Parameter] | None = None
    """What is trained; without it all that takes a gradient."""
    loss: Callable[[Batch], Tensor] | None = None
    """Without it the method's own."""
    begin: Callable[[], None] | None = None
    """Called when the phase starts, before its optimizer is made."""
    everything: bool = False
    """On the pictures of all tasks so far, which only an upper bound may see again."""


@dataclass(frozen=True)
class Costs:
    """What a method asks for."""

    parameters: int
    """Numbers kept after the tasks learned so far: of copies of the model and of masks, however small, each counts as
    one; batch norm's running statistics do not count."""
    forward: int = 1
    """Passes through a whole net that a training step takes, at the most."""
    backward: int = 1
    """The same, where one backward pass goes through all that the loss was made from."""
    buffer_bytes: int = 0
    """For pictures and logits of old tasks."""


class Method(Elastic, ABC):
    """A way of learning a stream. A file in this package with a subclass that has a `name` is a method."""

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str]
    """How it keeps what it knows, in a word or two: upper bound, rehearsal, regularization, growing, masks …"""
    paper: ClassVar[str]
    Settings: ClassVar[type[Settings]] = Settings
    recipe: ClassVar[Recipe] = Recipe()
    """Its authors' defaults, which a benchmark may overrule in epochs and schedule."""
    needs_task: ClassVar[bool] = False
    """At test time it must be told which task a picture belongs to, so it has no Class-IL accuracy."""
    augment: Augment
    """What is done to pictures on their way into a net, for a method that keeps some; the trainer sets it."""

    @abstractmethod
    def __init__(self, settings: Any, channels: int, image_size: tuple[int, int], generator: Generator) -> None:
        """Make what there is before the first task; all chance comes from the generator."""
        super().__init__()
        self.generator = generator

    @abstractmethod
    def begin_task(self, task: Task) -> None:
        """Make room for the task's classes."""

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """The scalar that a step lowers."""

    @abstractmethod
    def logits(self, images: Tensor) -> Tensor:
        """Over all classes seen so far, in the order in which they were seen."""

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        """Over one task's classes: all that a method which needs the task is asked for at test time."""
        raise NotImplementedError

    @abstractmethod
    def costs(self) -> Costs: ...

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        """How the task is trained; asked again when a run is taken up in the middle of it, so it changes nothing."""
        return [Phase(recipe)]

    def after_step(self) -> None:
        """Called after every optimizer step."""

    def end_task(self, task: Task) -> None:
        """Called when the task's last phase is over."""

    def decide_what_learns(self) -> None:
        """Say which parameters take a gradient, as follows from the state; called whenever one has been put back."""

    def parameters_by_owner(self) -> dict[str, int]:
        """How many parameters each part of the method holds, for people to look at."""
        return {"net": self.costs().parameters}

    def by_task(self) -> dict[str, list[float]]:
        """What it has measured of itself, a number a task, for a report; kept in its state, as all that it knows."""
        return {}

    def get_extra_state(self) -> Tensor:
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing yet: nets that grow while they are loaded draw from the generator, so its state is put back last."""

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As in `nn.Module`, but nets, and the buffers of what is elastic, may have grown since."""
        outcome = super().load_state_dict(state_dict, strict, assign)
        self.generator.set_state(state_dict["_extra_state"])
        self.decide_what_learns()
        return outcome
