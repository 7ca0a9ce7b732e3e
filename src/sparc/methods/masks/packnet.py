"""PackNet: each task keeps the largest of the weights it was free to train, gives up the others, and trains on.

Mallya and Lazebnik, "PackNet: Adding Multiple Tasks to a Single Network by Iterative Pruning", CVPR 2018. A task sees
the weights of all tasks before it, frozen, and none of later ones; every task has a head of its own, and batch norm is
frozen after the first task. So the task must be known at test time. Weights that were given up are 0 until a later task
trains them.

The momentum is the authors' 0.9, and so is a tenth of the rate in retraining. Their rate of 0.001 is for a net that has
been trained; ours, 0.01, was chosen on held-out training pictures of Seq-CIFAR100 (2 epochs a task): 45.5 % Task-IL,
and 42.7 % at 0.003. At 0.03 the second task may diverge: frozen batch norm evens out large steps no more. Nor does it
where so little is left of a filter that its variance is next to nothing when it is frozen. So where there are many
tasks the first ones keep more than their share, and later ones, which see all weights before them, train fewer. Of 20
tasks, learned as above at width 0.125 (one seed), the second diverged after the first had given up 95 %, at 0.003 too;
the first four came to 34 % after 80 %, hardly better than guessing but for the first, and to 54 after 75, as in the
authors' code.

Who owns a weight is one byte, counted as a parameter more: 22.4 M for 5 tasks of 20 classes. The paper's 33.6 M has
three numbers a weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from sparc.data.stream import Task
from sparc.errors import InputError
from sparc.methods.method import Phase
from sparc.methods.parts.masks import WeightOwners, smallest
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.methods.parts.task_heads import TaskWeights
from sparc.methods.recipe import Recipe
from sparc.nn.head import Heads
from sparc.nn.resizable_buffers import TensorList

ALIKE, MOST = 5, 0.75
"""So many tasks share the weights alike, which was tried and learns; where there are more, no task gives up a larger
share than this."""

UNKNOWN_SHARE = 0.5
"""The share of the free weights that is given up where nobody knows how many tasks will come."""

DEAD_ON = 256
"""Pictures that tell which channels nothing comes through."""


@dataclass(frozen=True)
class PackNetSettings(SingleNetSettings):
    prune: float | None = None
    """Share of its weights that each task gives up for later ones; without it, as much as leaves all tasks alike, or
    half where their number is not known. Where there are more than five, at most 0.75: later tasks get less then."""
    retrain: float = 0.5
    """Epochs of training on after pruning, as a share of those before it; at a tenth of the learning rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prune is not None and not 0 < self.prune < 1:
            raise InputError(f"--prune {self.prune:g} must lie between 0 and 1")
        if not 0 < self.retrain <= 1:
            raise InputError(f"--retrain {self.retrain:g} must be above 0 and at most 1")


class PackNet(TaskWeights, SingleNet):
    name = "packnet"
    title = "PackNet"
    paper = "Mallya and Lazebnik, CVPR 2018"
    knows_ahead = frozenset({"tasks"})
    Settings = PackNetSettings
    recipe = Recipe(lr=0.01, momentum=0.9)

    def __init__(self, settings: PackNetSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.prune_share, self.retrain = settings.prune, settings.retrain
        self.heads = Heads(self.net.head.in_features, self.generator)
        weights = self.weights()
        self.owners = WeightOwners(weights)
        self.fixed = TensorList(len(weights))
        """What those weights are that the current task may not change, while it is learned."""

    def begin_task(self, task: Task) -> None:
        self.owners.claim(len(self.heads) + 1)
        self.heads.add(len(task.classes))
        self.fixed.set([weight.detach().clone() for weight in self.weights()])

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        share = self.share_given_up(task)
        if share == 0:
            return [Phase(recipe)]
        on = replace(recipe, epochs=max(1, round(self.retrain * recipe.epochs)), lr=recipe.lr / 10)
        return [Phase(recipe), Phase(on, "retrain", begin=partial(self.prune, share))]

    def share_given_up(self, task: Task) -> float:
        if self.prune_share is not None:
            return self.prune_share
        if task.tasks is None:
            return UNKNOWN_SHARE
        alike = 1 - 1 / (task.tasks - task.index)
        return alike if task.tasks <= ALIKE else min(alike, MOST)

    @torch.no_grad()
    def prune(self, share: float) -> None:
        """Of each layer's weights that the task has trained, set the smallest free."""
        weights, mine = self.weights(), self.owners.of(len(self.heads))
        given_up = [smallest(weight, own, share) for weight, own in zip(weights, mine, strict=True)]
        self.owners.release(given_up)
        for tensor, mask in zip((*weights, *self.fixed), (*given_up, *given_up), strict=True):
            tensor[mask] = 0

    @torch.no_grad()
    def after_step(self) -> None:
        """Put back what the optimizer had no business with: momentum and weight decay move what takes no gradient."""
        mine = self.owners.of(len(self.heads))
        for weight, own, fixed in zip(self.weights(), mine, self.fixed, strict=True):
            weight.copy_(torch.where(own, weight, fixed))

    def end_task(self, task: Task) -> None:
        self.fixed.clear()
        self.zero_grad()
        if len(self.heads) == 1:
            self.reset_dead_channels(task.train.images[:DEAD_ON])

    @torch.no_grad()
    def reset_dead_channels(self, images: Tensor) -> None:
        """Set batch norm's statistics to 0 and 1 where nothing comes through.

        A filter that was given up whole leaves a variance of 0, which is about to be frozen, and whatever a later task
        put there would come out three hundred times as large.
        """

        def reset(norm: nn.BatchNorm2d, inputs: tuple[Tensor], _: Tensor) -> None:
            dead = inputs[0].abs().amax((0, 2, 3)) == 0
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean[dead] = 0
            norm.running_var[dead] = 1

        handles = [norm.register_forward_hook(reset) for norm in self._norms()]
        self.net.eval()
        self.net(self.augment.normalize(images.to(self.device)))
        for handle in handles:
            handle.remove()

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        """From the task's own weights and those of the tasks before it."""
        pairs = zip(self.weights(), self.owners.until(task + 1), strict=True)
        return self.answer(images, [weight * mask for weight, mask in pairs], task)

    def one_pass(self, images: Tensor) -> Tensor:
        return self.answer(images, self.weights(), task=-1)

    def set_trainable(self) -> None:
        super().set_trainable()
        for module in self._norms():
            module.requires_grad_(len(self.heads) <= 1)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if len(self.heads) > 1:
            for module in self._norms():
                module.eval()
        return self

    def _norms(self) -> list[nn.BatchNorm2d]:
        return [module for module in self.net.modules() if isinstance(module, nn.BatchNorm2d)]
