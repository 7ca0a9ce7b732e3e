"""TriRE: a task retains the weights that matter to it, revises them beside older ones, and rewinds all others.

Vijayan, Bhat, Zonooz and Arani, "TriRE: A Multi-Mechanism Learning Paradigm for Continual Knowledge Retention and
Promotion", NeurIPS 2023. A weight beyond the net's first layer belongs to the task that has retained it, or is free.
Retain: new pictures train what is free, old pictures what earlier tasks own; then the task is given what is free among
the most important weights of its most active filters. Revise, at a low rate: new pictures train what it was given, old
ones what earlier tasks own. Rewind: what is still free goes back to what it was late in retaining, and is trained by
new pictures alone. The last task needs no rewinding, where it is known to be the last: it revises for longer.

A moving average of the net tells it what to say of old pictures; the net itself answers, as in the figures that the
authors print. New pictures compete over their own task's classes. Stem, first layer, shortcuts and head are trained by
all; the head has room for all classes that will ever come, where their number is known. Pictures are kept by a plain
reservoir, where the authors' is balanced and minds their loss, and filters are counted as active on new pictures alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import mse_loss

from sparc.data.stream import Task
from sparc.errors import InputError, check_not_negative, check_positive, check_share
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.ema import AverageSettings, MovingAverage
from sparc.methods.parts.masks import WeightOwners, smallest
from sparc.methods.parts.rehearsal import Rehearsal
from sparc.methods.parts.single import WholeHead
from sparc.methods.recipe import Recipe
from sparc.nn.backbone import Backbone
from sparc.nn.k_winners import SHARE, KWinnerNet
from sparc.nn.resizable_buffers import TensorList

NOBODY = 0
"""Who owns a weight that is free."""


@dataclass(frozen=True)
class TriReSettings(AverageSettings):
    backbone: ClassVar[Backbone] = "resnet"  # type: ignore[misc]  # no choice: k winners are the ResNet's
    retain_share: float = 0.6
    """Share of the epochs that retain."""
    revise_share: float = 0.2
    """Share of the epochs that revise; what is left rewinds."""
    revise_lr: float = 0.05
    """Learning rate of revising, as a multiple of the others'."""
    rewind_at: float = 0.9
    """Share of retaining after which weights are saved, to be rewound to; 1 rewinds nothing."""
    active_share: float = SHARE
    """Share of the channels, the most active ones of each picture, that stay; the others are 0."""
    filter_share: float = 0.3
    """Share of the filters, the most active ones, that a task retains weights of."""
    weight_share: float = 0.2
    """Share of these filters' weights, the largest by weight and gradient, that it retains."""
    reg_weight: float = 0.05
    """Weight of the squared error between what the net and its average say of old pictures."""
    rate: float = 0.1
    """Share of the steps after which the average follows."""
    drop: float = 0.0
    """When a task begins, the last layer's channel that earlier ones have used most is kept with a probability of
    exp(−drop), and less used ones more often; dropping fades out while it retains. The authors' code drops none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = ("retain", "revise", "active", "filter", "weight")
        for name in ("rewind_at", "rate", *(f"{share}_share" for share in shares)):
            check_share(f"--{name.replace('_', '-')}", getattr(self, name))
        if self.retain_share + self.revise_share > 1:
            raise InputError(
                f"--retain-share {self.retain_share:g} and --revise-share {self.revise_share:g} are more than a whole: "
                "lower one of them"
            )
        check_positive("--revise-lr", self.revise_lr)
        check_not_negative("--reg-weight", self.reg_weight)
        check_not_negative("--drop", self.drop)


class TriRE(WholeHead, Rehearsal):
    name = "trire"
    title = "TriRE"
    paper = "Vijayan et al., NeurIPS 2023"
    knows_ahead = frozenset({"tasks", "classes"})
    Settings = TriReSettings
    recipe = Recipe(lr=2e-3, optimizer="adam")
    settings: TriReSettings
    net: KWinnerNet

    def __init__(self, settings: TriReSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.average = MovingAverage(self.new_net(Generator()), self.net, settings.rate, settings.alpha)
        weights = self.weights()
        self.owners = WeightOwners(weights)
        self.saved = TensorList(len(weights))
        """What weights were late in retaining, until the task is over."""
        self.gradients = TensorList(len(weights))
        """Those of the last step of retaining, until weights are chosen by them."""
        # Of the step at hand: who learns from new pictures, what old ones cost, and whether gradients are to be kept.
        self.learner = NOBODY
        self.replayed: Tensor | None = None
        self.last_of_retaining = False

    def new_net(self, generator: Generator) -> KWinnerNet:
        net = KWinnerNet(self.channels, self.image_size, self.settings.width, self.settings.depth, generator)
        for layer in net.layers():
            layer.share = self.settings.active_share
        return net

    def weights(self) -> list[nn.Parameter]:
        """All that can be owned."""
        return [weight for weight, _ in self.net.contested()]

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.average.grow(self.net)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        settings, epochs = self.settings, recipe.epochs
        last = task.tasks is not None and task.index == task.tasks - 1
        retain = max(1, round(settings.retain_share * epochs))
        share = 1.0 if last else settings.retain_share + settings.revise_share
        revise = max(0, round(share * epochs) - retain)
        rewind = epochs - retain - revise
        # Where epochs are few, there may be none to revise or to rewind in.
        pace = partial(self.average.pace, task, recipe)
        retaining = replace(recipe, epochs=retain)
        phases = [Phase(retaining, "retain", begin=pace, end=partial(self.choose, task.index + 1))]
        if revise:
            slow = replace(recipe, epochs=revise, lr=settings.revise_lr * recipe.lr)
            phases.append(Phase(slow, "revise", loss=self.revise_loss))
        if rewind:
            phases.append(Phase(replace(recipe, epochs=rewind), "rewind", loss=self.rewind_loss, begin=self.rewind))
        return phases

    def loss(self, batch: Batch) -> Tensor:
        """That of retaining."""
        if not self.has_saved and batch.epoch >= int(self.settings.rewind_at * batch.epochs):
            self.saved.set([weight.detach().clone() for weight in self.weights()])
        logits = self.net.first_sight(batch.images, self.settings.drop * (1 - batch.epoch / batch.epochs))
        return self.learn(batch, logits, NOBODY, last_of_retaining=batch.last_epoch)

    def revise_loss(self, batch: Batch) -> Tensor:
        return self.learn(batch, self.net(batch.images), learner=batch.task.index + 1)

    def rewind_loss(self, batch: Batch) -> Tensor:
        return self.learn(batch, self.net(batch.images), NOBODY, replays=False)

    def learn(
        self, batch: Batch, logits: Tensor, learner: int, replays: bool = True, last_of_retaining: bool = False
    ) -> Tensor:
        """What both cost; old pictures' gradient is left to `before_step`, as it does not go where new ones' goes."""
        classes = batch.task.classes
        loss = batch.cross_entropy(logits[:, classes.start : classes.stop], batch.labels - classes.start)
        self.replayed = self.replay_loss(batch) if replays and len(self.buffer) else None
        self.learner, self.last_of_retaining = learner, last_of_retaining
        self.buffer.add(batch.raw_images, batch.labels)
        return loss if self.replayed is None else loss + self.replayed.detach()

    def replay_loss(self, batch: Batch) -> Tensor:
        """What the average says on one draw, and the labels of another."""
        images, _, _ = self.replay()
        distilled = mse_loss(self.net(images), self.average(images))
        images, labels, _ = self.replay()
        return self.settings.reg_weight * distilled + batch.cross_entropy(self.net(images), labels)

    def before_step(self) -> None:
        """Add old pictures' gradients to new ones', and leave each weight those that its owner takes."""
        weights = self.weights()
        new = [weight.grad for weight in weights]
        if self.replayed is not None:
            for weight in weights:
                weight.grad = None
            self.replayed.backward()
        for weight, owner, gradient in zip(weights, self.owners, new, strict=True):
            assert gradient is not None
            taken = gradient * (owner == self.learner)
            if self.replayed is not None:
                assert weight.grad is not None
                taken += weight.grad * ((owner != NOBODY) & (owner != self.learner))
            weight.grad = taken
        self.replayed = None
        if self.last_of_retaining:
            self.gradients.set([weight.grad.clone() for weight in weights if weight.grad is not None])

    def after_step(self) -> None:
        self.average.follow(self.net, self.generator)

    @torch.no_grad()
    def choose(self, task: int) -> None:
        """Give a task, counted from 1, what is free among the most important weights of its most active filters."""
        self.owners.claim(task)
        given_up = []
        for (weight, winners), own, gradient in zip(
            self.net.contested(), self.owners.of(task), self.gradients, strict=True
        ):
            importance = weight.abs() + (gradient.abs() if len(gradient) else 0)
            active = torch.zeros_like(own)
            active[winners.most_active(self.settings.filter_share)] = True
            given_up.append(own & (~active | smallest(importance, active, 1 - self.settings.weight_share)))
        self.owners.release(given_up)
        self.gradients.clear()

    @property
    def has_saved(self) -> bool:
        return any(len(saved) for saved in self.saved)

    @torch.no_grad()
    def rewind(self) -> None:
        """Put what is free back to what it was late in retaining."""
        if self.has_saved:
            for weight, owner, saved in zip(self.weights(), self.owners, self.saved, strict=True):
                weight.copy_(torch.where(owner == NOBODY, saved, weight))

    def end_task(self, task: Task) -> None:
        self.saved.clear()
        self.net.end_task()
