"""The contract: a method says what it does differently, and nothing else.

The trainer owns epochs, batches, optimizer steps, progress and evaluation. A method is an `nn.Module`, so that all its
state (nets, masks, importance weights, buffers) is in `state_dict()`.
"""

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from sparc.data.augment import Views
from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.methods.recipe import Recipe
from sparc.methods.settings import Settings
from sparc.nn.batched import predict_batched
from sparc.nn.resizable_buffers import ResizableBuffers


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures of the current task, and where training stands."""

    images: Tensor
    """float, augmented and normalized."""
    labels: Tensor
    """Indices among all classes, in the order in which they were seen."""
    raw_images: Tensor
    """uint8, as they were before augmentation: what a buffer keeps."""
    indices: Tensor
    """Which pictures these are among those of the phase."""
    task: Task
    recipe: Recipe
    """The phase's."""
    epoch: int
    """Of the phase, counted from 0."""
    epochs: int
    """How many the phase has; early stopping may lower it while they go on."""

    @property
    def last_epoch(self) -> bool:
        return self.epoch == self.epochs - 1

    def cross_entropy(
        self, logits: Tensor, labels: Tensor | None = None, reduction: Literal["mean", "none"] = "mean"
    ) -> Tensor:
        """Between logits and the batch's labels, or others, with the recipe's label smoothing."""
        labels = self.labels if labels is None else labels
        return cross_entropy(logits, labels, reduction=reduction, label_smoothing=self.recipe.label_smoothing)


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters that are trained otherwise than the recipe says."""

    parameters: Sequence[nn.Parameter]
    lr_scale: float = 1.0
    """What the recipe's learning rate is multiplied by."""
    weight_decay: float | None = None
    """Instead of the recipe's."""


@dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of a task's training with its own recipe."""

    recipe: Recipe
    name: str = "train"
    parameters: Sequence[nn.Parameter | ParameterGroup] | None = None
    """What is trained; without it all that takes a gradient."""
    loss: Callable[[Batch], Tensor] | None = None
    """Without it the method's own."""
    begin: Callable[[], None] | None = None
    """Called when the phase starts, before its optimizer is made."""
    end: Callable[[], None] | None = None
    """Called when its last epoch is over."""
    images: Callable[[], ImageSet] | None = None
    """What is learned from, without it the task's training pictures. Asked when the phase starts, after `begin`, and
    again when a run is taken up in the middle of it, so they follow from the task and from what does not change
    meanwhile."""


class Method(ResizableBuffers, ABC):
    """A way of learning a stream. A file in a sub-folder of `methods` with a subclass that has a `name` is one."""

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str]
    """How it keeps what it knows: the name of the folder that it lies in."""
    summary: ClassVar[str]
    """What it does: the first line of its file."""
    paper: ClassVar[str]
    Settings: ClassVar[type[Settings]] = Settings
    recipe: ClassVar[Recipe] = Recipe()
    """Its authors' defaults, which a benchmark may overrule in epochs and schedule."""
    needs_task_id: ClassVar[bool] = False
    """At test time it must be told which task a picture belongs to, so it has no Class-IL accuracy."""
    knows_ahead: ClassVar[frozenset[Literal["tasks", "classes"]]] = frozenset()
    """What it is told of the stream beforehand, where that is known: how many tasks or classes there will be."""
    sees_old_tasks: ClassVar[bool] = False
    """It is given old tasks' pictures again, so it is an upper bound and does not compete."""
    frozen_parts: ClassVar[tuple[str, ...]] = ()
    """Lists in its state, one entry a task, that do not change by a byte once their task is over; `TaskHeads` trains
    the newest entry of each."""
    keeps_by_pictures: ClassVar[bool] = False
    """How much it keeps follows from the pictures, so that it is not known before it has learned."""
    notes: ClassVar[frozenset[str]] = frozenset()
    """Buffers with what it measures for a report, which are not counted among what it keeps."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        *_, cls.kind, _ = ("", *cls.__module__.split("."))
        module = sys.modules.get(cls.__module__)
        cls.summary, *_ = ((module and module.__doc__) or "").split("\n")

    @abstractmethod
    def __init__(
        self, settings: Any, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        """Make what there is before the first task; all chance comes from the generator.

        `augment` is the benchmark's; a method that wants other views of the pictures puts its own in the attribute.
        """
        super().__init__()
        self.augment = augment
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

    def logits_by_part(self, images: Tensor) -> dict[str, Tensor]:
        """What `logits` would be with a part of the method left out, or with one alone, by the name that tables show.

        Asked when all tasks are learned, in evaluation mode, to tell what each part brings; for parts that can be left
        out of the answers, as what is trained otherwise is another run. Which names there are may depend on the state
        and not on the pictures, and a method that must be told the task has none.
        """
        return {}

    def one_pass(self, images: Tensor) -> Tensor:
        """One forward pass through the net that learns: the unit in which the work of a step is counted."""
        return self.logits(images)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        """How the task is trained; changes nothing.

        Asked again before each phase and when a run is taken up in the middle of one, so what is still to come may
        depend on what has been learned by then; what is over stays in its place. No phase at all is fine.
        """
        return [Phase(recipe)]

    def before_step(self) -> None:
        """Called when there are gradients, before they are clipped and the optimizer makes its step."""

    def after_step(self) -> None:
        """Called after every optimizer step."""

    def end_task(self, task: Task) -> None:
        """Called when the task's last phase is over."""

    @property
    def splits(self) -> bool:
        """Whether twins may compute parts of a batch at the same time, because its loss is a mean over pictures, and
        that is worth the trouble.
        """
        return False

    def twin(self) -> Self:
        """A copy that computes the loss of a part of a batch: weights are the same, gradients and buffers its own."""
        same: dict[int, Any] = {id(each): nn.Parameter(each.data, each.requires_grad) for each in self.parameters()}
        return copy.deepcopy(self, {**same, id(self.generator): self.generator})

    def join(self, twins: Sequence[Self]) -> None:
        """Take in what twins have noted, beside gradients and batch norms' statistics, and leave them without it."""

    def set_trainable(self) -> None:
        """Say which parameters take a gradient, as follows from the state; called after every other hook."""

    def full_title(self) -> str:
        """What its results are called, where it says more than its title: weights that were trained elsewhere."""
        return self.title

    def parameters_by_owner(self) -> dict[str, int]:
        """How many of the numbers that it keeps each of its parts holds, for people to look at."""
        from sparc.methods.parts.costs import kept_by_part

        return kept_by_part(self)

    def diagnostics(self) -> dict[str, list[float]]:
        """What it has measured of itself, a number a task, for a report; kept in its state, as all that it knows."""
        return {}

    @torch.no_grad()
    def predict_batched(self, answer: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        """What a function, such as a net's features, gives for uint8 pictures, with few in memory at a time."""
        return predict_batched(answer, images, self.augment.normalize, self.device)

    def features_of(self, answer: Callable[[Tensor], Tensor], pictures: ImageSet) -> Tensor:
        """The same on the method's device, which is in eval mode then."""
        self.eval()
        return self.predict_batched(answer, pictures.images).to(self.device)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def get_extra_state(self) -> Tensor:
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing yet: nets that grow while they are loaded draw from the generator, so its state is put back last."""

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As in `nn.Module`, but nets, and buffers that can be resized, may have grown since."""
        outcome = super().load_state_dict(state_dict, strict, assign)
        self.generator.set_state(state_dict["_extra_state"])
        self.set_trainable()
        return outcome
