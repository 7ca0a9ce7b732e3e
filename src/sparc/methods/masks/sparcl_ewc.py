"""SparCL-EWC: online EWC in a sparse net, whose mask moves, few weights of which step, and which drops easy pictures.

Wang et al., "SparCL: Sparse Continual Learning on the Edge", NeurIPS 2022. Three quarters of the weights of the
residual blocks' 3×3 convolutions are 0. A task is trained in ten stretches. At its start some weights more come to
life; at each later stretch those die that matter least, by |w| + ½ (|∂ loss / ∂w| + |∂ penalty / ∂w|), and as many come
to life at random, from 0. Every 30 steps the weights that step are chosen, by the same two gradients. Until two fifths
of the epochs, pictures are left out that have been misclassified most rarely so far.

The authors' code has no EWC, only rehearsal, to which the mask and the gradients answer as they do to the penalty here.
Its masks, shares and intervals are kept. The penalty holds live weights: one that dies loses its spring. The learning
rate is that of the middle of each stretch. At the end of a task the mask is where weights are not 0, so none is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.errors import InputError, check_share
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.masks import smallest
from sparc.methods.recipe import Recipe
from sparc.methods.regularization.oewc import OewcSettings, OnlineEWC
from sparc.nn.backbone import Backbone
from sparc.nn.resizable_buffers import TensorList

STRETCHES = 10
"""Of a task's epochs, or as many as it has epochs, if fewer."""
REMOVED_BY = 0.4
"""Share of the epochs after which no picture is left out any more."""
CHOSEN_EVERY = 30
"""Steps after which the weights that step are chosen anew."""
GRADIENT_WEIGHT = 0.5
"""Of gradients in the importance of weights."""


@dataclass(frozen=True)
class SparclEwcSettings(OewcSettings):
    backbone: ClassVar[Backbone] = "resnet"  # type: ignore[misc]  # no choice: the residual blocks' layers are sparse
    sparsity: float = 0.75
    """Share of each sparse layer's weights that are 0."""
    turnover: float = 0.01
    """Share of each sparse layer's weights that come to life when a task begins, and that die and come to life at each
    later stretch."""
    gradient_sparsity: float = 0.8
    """Share of each sparse layer's weights, dead ones among them, that take no step; no effect up to --sparsity."""
    removed: float = 0.3
    """Share of a task's pictures that are left out in the end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("--turnover", self.turnover)
        if not self.turnover <= self.sparsity < 1 - self.turnover:
            raise InputError(f"--sparsity {self.sparsity:g} must be at least --turnover and below 1 − --turnover")
        for flag, share in (("--gradient-sparsity", self.gradient_sparsity), ("--removed", self.removed)):
            if not 0 <= share < 1:
                raise InputError(f"{flag} {share:g} must be at least 0 and below 1")


class SparclEWC(OnlineEWC):
    name = "sparcl-ewc"
    title = "SparCL-EWC"
    paper = "Wang et al., NeurIPS 2022"
    Settings = SparclEwcSettings
    recipe = Recipe(schedule="cosine")
    settings: SparclEwcSettings

    def __init__(self, settings: SparclEwcSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        named = enumerate(self.net.named_parameters())
        self.sparse = [
            number
            for number, (name, weight) in named
            if name.startswith("blocks") and weight.ndim == 4 and "shortcut" not in name
        ]
        """Which of the net's parameters are sparse."""
        # While a task is learned:
        self.live = TensorList(len(self.sparse))
        """Where weights are alive."""
        self.moving = TensorList(len(self.sparse))
        """Where they step."""
        self.gradients = TensorList(len(self.sparse))
        """The task's own, without the penalty's, of the last step of a stretch."""
        self.steps: Tensor
        self.register_buffer("steps", torch.tensor(0))
        """Since the mask has moved."""
        self.order: Tensor
        self.register_buffer("order", torch.empty(0, dtype=torch.int64))
        """Of the task's pictures: those that are left out come last."""
        self.mistakes: Tensor
        self.register_buffer("mistakes", torch.empty(0, dtype=torch.int64))
        """How often each of them has been misclassified."""
        self.ends_stretch = False  # whether gradients of the step at hand may be the last
        with torch.no_grad():
            for weight in self.weights():
                weight[smallest(weight, torch.ones_like(weight, dtype=torch.bool), settings.sparsity)] = 0

    def weights(self) -> list[nn.Parameter]:
        """Those that are sparse."""
        parameters = list(self.net.parameters())
        return [parameters[number] for number in self.sparse]

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.live.set([weight.detach() != 0 for weight in self.weights()])
        self.move_mask(self.settings.sparsity, self.settings.sparsity - self.settings.turnover)
        self.order = torch.arange(len(task.train), device=self.device)
        self.mistakes = torch.zeros_like(self.order)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        starts = sorted({stretch * recipe.epochs // STRETCHES for stretch in range(STRETCHES)})
        ends = [*starts[1:], recipe.epochs]
        kept = [self.kept(len(task.train), start / recipe.epochs) for start in starts]
        phases = []
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            lr = recipe.lr_at((start + end - 1) // 2, 0.5)
            flat = replace(recipe, epochs=end - start, lr=lr, schedule="constant", milestones=(), lr_warm_up=0.0)
            begin = partial(self.begin_stretch, kept[number - 1], end == recipe.epochs) if number else None
            images = partial(self.pictures, task, kept[number])
            phases.append(Phase(flat, f"stretch {number + 1}", begin=begin, images=images))
        return phases

    def kept(self, pictures: int, share: float) -> int:
        """How many pictures are learned from after this share of the epochs; batch norm needs two."""
        removed = self.settings.removed * min(1.0, share / REMOVED_BY)
        return max(min(2, pictures), pictures - round(removed * pictures))

    def pictures(self, task: Task, kept: int) -> ImageSet:
        return task.train.take(self.order[:kept].to(task.train.labels.device))

    def begin_stretch(self, kept: int, is_last: bool) -> None:
        """Sort the pictures that were kept until now, and move the mask; the last one is only brought to its size."""
        hardest = self.mistakes[self.order[:kept]].argsort(descending=True, stable=True)
        self.order = torch.cat((self.order[:kept][hardest], self.order[kept:]))
        sparsity = self.settings.sparsity
        self.move_mask(sparsity if is_last else sparsity + self.settings.turnover, sparsity)

    @torch.no_grad()
    def move_mask(self, shrink_to: float, grow_to: float) -> None:
        """Let weights die until so large a share is dead, then come to life until no larger one is."""
        moved, survivors = [], []
        for weight, live, pull, gradient in zip(self.weights(), self.live, self.pulls(), self.gradients, strict=True):
            slopes = pull.abs() + gradient.abs() if len(gradient) else pull.abs()
            live = largest(weight.abs() + GRADIENT_WEIGHT * slopes, live, round((1 - shrink_to) * live.numel()))
            weight.mul_(live)
            survivors.append(live)
            missing = round((1 - grow_to) * live.numel()) - int(live.sum())
            drawn = torch.randperm(int((~live).sum()), generator=self.generator).to(live.device)
            moved.append(live.masked_scatter(~live, drawn < missing))
        self.live.set(moved)
        self.steps.zero_()
        if self.has_learned:
            importance = list(self.importance)
            for number, live in zip(self.sparse, survivors, strict=True):
                importance[number].mul_(live)

    def pulls(self) -> list[Tensor]:
        """The penalty's gradients."""
        if not self.has_learned:
            return [torch.zeros_like(weight) for weight in self.weights()]
        anchor, importance = list(self.anchor), list(self.importance)
        return [
            2 * self.lam * importance[number] * (weight.detach() - anchor[number])
            for number, weight in zip(self.sparse, self.weights(), strict=True)
        ]

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        shown = self.order[batch.indices.to(self.order.device)]
        self.mistakes[shown] += logits.detach().argmax(1) != batch.labels
        self.ends_stretch = batch.last_epoch
        loss = batch.cross_entropy(logits)
        return loss + self.lam * self.penalty() if self.has_learned else loss

    @torch.no_grad()
    def before_step(self) -> None:
        """Leave gradients to the weights with the largest, as many as may step."""
        chooses = int(self.steps) % CHOSEN_EVERY == 0
        moving, gradients = list(self.moving), []
        for index, (weight, live, pull) in enumerate(zip(self.weights(), self.live, self.pulls(), strict=True)):
            assert weight.grad is not None
            gradients.append(weight.grad - pull)
            if chooses:
                count = round((1 - self.settings.gradient_sparsity) * live.numel())
                moving[index] = largest(gradients[-1].abs() + pull.abs(), live, count)
            weight.grad.mul_(moving[index])
        self.moving.set(moving)
        self.steps += 1
        if self.ends_stretch:
            self.gradients.set(gradients)

    @torch.no_grad()
    def after_step(self) -> None:
        """Dead weights stay 0, whatever momentum they have left."""
        for weight, live in zip(self.weights(), self.live, strict=True):
            weight.mul_(live)

    def fisher(self, pictures: ImageSet) -> list[Tensor]:
        """Of what is alive."""
        found = super().fisher(pictures)
        for number, live in zip(self.sparse, self.live, strict=True):
            found[number] *= live
        return found

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        for held in (self.live, self.moving, self.gradients):
            held.clear()
        self.order, self.mistakes = self.order[:0], self.mistakes[:0]


def largest(sizes: Tensor, among: Tensor, count: int) -> Tensor:
    """Where the largest of some numbers are, so many, or all.

    >>> largest(torch.tensor([5.0, 1.0, 3.0]), torch.tensor([False, True, True]), 1)
    tensor([False, False,  True])
    """
    there = int(among.sum())
    return among & ~smallest(sizes, among, max(0.0, 1 - count / max(1, there)))
