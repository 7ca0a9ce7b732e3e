"""CPG: a task picks among the weights of those before it, trains what is free, and gives up what it can do without.

Hung, Tu, Wu, Chen, Chan and Chen, "Compacting, Picking and Growing for Unforgetting Continual Learning", NeurIPS 2019.
Each old weight has a score, trained beside the free weights, and is used where that is above a threshold. Then the
task's own weights are pruned step by step, each step trained for a while, and the sparsest net that reaches a goal on
held-out pictures stays. Batch norms and head are each task's own, so the task must be known at test time.

The authors' goal is what a net of its own reaches for each task. Here it is what the task has reached before pruning,
less a margin, or an accuracy that is given; where training misses that one, all layers become wider by half of their
first width, once, and training goes on. Where it is missed still, the first rule holds. With a given goal the net has
the largest width from the start: filters beyond the present one are computed, and no task uses them.

Left out: the authors train scores and weights once more after pruning, keep it if better, and prune little by little
within each step. Their net is VGG-16 with batch norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from sparc.data.augment import Views
from sparc.data.imageset import ImageSet
from sparc.data.stream import Task, hold_out
from sparc.errors import InputError, check_not_negative
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.bit_masks import BitMasks
from sparc.methods.parts.masks import smallest
from sparc.methods.parts.task_heads import TaskWeights
from sparc.methods.parts.task_norms import TaskNorms
from sparc.methods.recipe import Recipe
from sparc.methods.settings import NetSettings
from sparc.nn.head import Heads
from sparc.nn.resizable_buffers import TensorList
from sparc.nn.resnet import ResNet

LEAST_STEP, MOST = 0.01, 0.95
"""Of the weights that a task was free to train: the least that a step of pruning gives up, and what all of them do."""
PRUNING = 5
"""The epochs of training are so many times those of a step of pruning."""
GROWTH = 0.5
"""What the net grows by, as a share of its first width."""
THRESHOLD, START = 5e-3, 1e-2
"""Of scores: above which a weight is picked, and where they begin."""
SCORE_LR, BETAS, EPSILON = 5e-4, (0.9, 0.999), 1e-8
"""Of Adam, which trains them."""
SLOW_FROM, SLOW, STILL_FROM = 0.5, 0.2, 0.7
"""Shares of the epochs after which scores are trained at this multiple of their rate, and no more."""


@dataclass(frozen=True)
class CpgSettings(NetSettings):
    goal: float | None = None
    """Accuracy on held-out pictures, in percent, that each task is to reach; the net grows where it is missed. Without
    it, what the task has reached before pruning, less --margin."""
    margin: float = 1.0
    """Percentage points that pruning may cost where no --goal has been reached."""
    pruning_step: float = 0.1
    """Pruning goes in steps, each of which gives up this share more of the weights that the task was free to train,
    until 0.95 are given up. Larger steps take less time: each is a fifth of the epochs, at least one."""
    held_out: float = 0.1
    """Share of each class's pictures that are not learned from, and tell what has been reached; 0 asks those that are
    learned from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.goal is not None and not 0 < self.goal <= 100:
            raise InputError(f"--goal {self.goal:g} must be above 0 and at most 100")
        check_not_negative("--margin", self.margin)
        if not LEAST_STEP <= self.pruning_step <= MOST:
            raise InputError(f"--pruning-step {self.pruning_step:g} must be from {LEAST_STEP:g} to {MOST:g}")
        if not 0 <= self.held_out < 1:
            raise InputError(f"--held-out {self.held_out:g} must be at least 0 and below 1")

    @property
    def pruning_shares(self) -> list[float]:
        """Share of a task's free weights that is given up by the end of each step of pruning.

        >>> CpgSettings(pruning_step=0.25).pruning_shares
        [0.25, 0.5, 0.75, 0.95]
        """
        # Three steps of 0.1 are to be 0.3 to the bit; and one that is as good as the last is left out.
        shares = [round(step * self.pruning_step, 9) for step in range(1, int(1 / self.pruning_step) + 1)]
        return [*(share for share in shares if share < MOST - LEAST_STEP / 2), MOST]


class CPG(TaskWeights):
    name = "cpg"
    title = "CPG"
    paper = "Hung et al., NeurIPS 2019"
    Settings = CpgSettings
    frozen_parts = ("heads", "norms", "masks")
    recipe = Recipe(epochs=100, lr=0.01, momentum=0.9, nesterov=True, weight_decay=4e-5, milestones=(0.5, 0.8))
    picks: ClassVar[bool] = True
    """Whether a task chooses among old weights, or uses all."""
    growths: ClassVar[int] = 1
    """How often the net can grow."""

    def __init__(
        self, settings: CpgSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.settings = settings
        widths = [settings.width * (1 + GROWTH * grown) for grown in range(1 + self.growths)]
        widths = widths[:1] if settings.goal is None else widths
        self.filters = [int(64 * width) for width in widths]
        """Of the first layer, at each width."""
        self.net = ResNet(channels, image_size, widths[-1], settings.depth, generator)
        self.norms = TaskNorms(self.net, inherit=True)
        self.heads = Heads(self.net.head.in_features, generator)
        count = len(self.weights())
        self.masks = BitMasks(count)
        """What each task uses that is over: its own weights, and those that it has picked."""
        # While a task is learned:
        self.mine = TensorList(count)
        """Where its own weights are."""
        self.fixed = TensorList(count)
        """What the others are."""
        self.scores = TensorList(count)
        """Of older tasks' weights; −∞ for all others."""
        self.first, self.second = TensorList(count), TensorList(count)
        """Adam's moving averages of the scores' gradients, and of their squares."""
        self.best = TensorList(2 * count + 5 * len(self.norms.sizes) + 2)
        """What the task has trained, in the sparsest net that has reached the goal."""
        self.accuracies: Tensor
        self.register_buffer("accuracies", torch.empty(0))
        """After each phase that is over."""
        self.steps: Tensor
        self.register_buffer("steps", torch.tensor(0))
        """Of Adam."""
        self.grown: Tensor
        self.register_buffer("grown", torch.tensor(0))
        """How often the net has grown."""
        self.grown_now: Tensor
        self.register_buffer("grown_now", torch.tensor(0))
        """How often in this task."""
        self.score_lr = 0.0  # of the step at hand

    def begin_task(self, task: Task) -> None:
        weights = self.weights()
        old = self.masks.any(weights)
        self.heads.add(len(task.classes))
        self.norms.add()
        self.fixed.set([weight.detach().clone() for weight in weights])
        nobody = [torch.full_like(weight, -torch.inf, requires_grad=False) for weight in weights]
        self.scores.set([score.masked_fill_(taken, START) for score, taken in zip(nobody, old, strict=True)])
        if self.picks and len(self.masks):
            self.first.set([torch.zeros_like(score) for score in nobody])
            self.second.set([torch.zeros_like(score) for score in nobody])
        self.steps.zero_()
        self.grown_now.zero_()
        self.mine.set(self.free())

    def free(self) -> list[Tensor]:
        """Where weights are, within the present width, that no older task uses."""
        found = []
        now, most = self.filters[int(self.grown)], self.filters[-1]
        for (name, weight), score in zip(self.named_weights().items(), self.scores, strict=True):
            filters, channels = weight.shape[:2]
            room = torch.zeros_like(weight, dtype=torch.bool)
            room[: filters * now // most, : channels if name.startswith("stem") else channels * now // most] = True
            found.append(room & score.isneginf())
        return found

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        grown, shares = int(self.grown_now), self.settings.pruning_shares
        pruned = len(self.accuracies) - 1 - grown
        if pruned == 0 and self.must_grow():
            grown, pruned = grown + 1, -1
        elif 0 <= pruned < len(shares) and not self.has_failed() and any(mine.any() for mine in self.mine):
            pruned += 1
        train = Phase(recipe, images=lambda: self.split(task)[0], end=partial(self.judge, task))
        grow = replace(train, name="grow", begin=self.grow)
        on = replace(recipe, epochs=max(1, round(recipe.epochs / PRUNING)), lr=recipe.lr / 10, milestones=())
        prune = [
            replace(train, recipe=on, name=f"prune {share:.0%}", begin=partial(self.prune, share)) for share in shares
        ]
        return [train, *[grow] * grown, *prune[: max(0, pruned)]]

    def split(self, task: Task) -> tuple[ImageSet, ImageSet]:
        """Pictures to learn from, and to be asked; the same where there are too few."""
        held = hold_out(task.train.labels, self.settings.held_out)
        few = not held.any() or int((~held).sum()) < 2
        return (task.train, task.train) if few else (task.train.take(~held), task.train.take(held))

    @property
    def is_pruning(self) -> bool:
        return len(self.accuracies) > int(self.grown_now)

    def must_grow(self) -> bool:
        """Whether training has missed a goal that was given, and there is room."""
        goal = self.settings.goal
        return goal is not None and float(self.accuracies[-1]) < goal and int(self.grown) < len(self.filters) - 1

    def has_failed(self) -> bool:
        """Whether the last net is worse than a pruned one may be."""
        reached, goal = float(self.accuracies[int(self.grown_now)]), self.settings.goal
        least = goal if goal is not None and reached >= goal else reached - self.settings.margin
        return float(self.accuracies[-1]) < least

    def grow(self) -> None:
        """Give the task wider layers, whose new filters are as they were drawn."""
        self.grown += 1
        self.grown_now += 1
        self.mine.set(self.free())

    @torch.no_grad()
    def prune(self, share: float) -> None:
        """Give up this share of what was free, in each layer, the smallest."""
        for weight, free, mine, fixed in zip(self.weights(), self.free(), self.mine, self.fixed, strict=True):
            given_up = smallest(weight, free, share)
            mine &= ~given_up
            weight[given_up] = fixed[given_up] = 0

    @torch.no_grad()
    def judge(self, task: Task) -> None:
        """Ask the net that a phase has ended with, and take back what has gone too far."""
        self.eval()
        _, pictures = self.split(task)
        said = self.predict_batched(self.one_pass, pictures.images).argmax(1) + task.classes.start
        accuracy = 100 * (said == pictures.labels).float().mean()[None].to(self.accuracies)
        self.accuracies = torch.cat((self.accuracies, accuracy))
        if self.has_failed():
            for tensor, kept in zip(self.trained(), self.best, strict=True):
                tensor.copy_(kept)
        else:
            self.best.set([tensor.detach().clone() for tensor in self.trained()])

    def trained(self) -> list[Tensor]:
        """What belongs to the task that is learned."""
        norms, head = self.norms[-1], self.heads.of(-1)
        return [*self.weights(), *self.mine, *norms.parameters(), *norms.buffers(), head.weight, head.bias]

    def loss(self, batch: Batch) -> Tensor:
        share = batch.epoch / batch.epochs
        rate = SCORE_LR * (1 if share < SLOW_FROM else SLOW if share < STILL_FROM else 0)
        self.score_lr = rate if self.picks and len(self.masks) and not self.is_pruning else 0.0
        return batch.cross_entropy(self.one_pass(batch.images), batch.labels - batch.task.classes.start)

    @torch.no_grad()
    def before_step(self) -> None:
        """Train the scores, and leave gradients to the task's own weights."""
        weights = self.weights()
        if self.score_lr:
            self.steps += 1
            for weight, score, first, second in zip(weights, self.scores, self.first, self.second, strict=True):
                assert weight.grad is not None
                # The threshold is taken for a line: what a score lets through is the weight.
                slope = weight.grad * weight
                first.lerp_(slope, 1 - BETAS[0])
                second.lerp_(slope.square(), 1 - BETAS[1])
                mean, square = (
                    average / (1 - beta ** int(self.steps))
                    for average, beta in zip((first, second), BETAS, strict=True)
                )
                score -= self.score_lr * mean / (square.sqrt() + EPSILON)
        for weight, mine in zip(weights, self.mine, strict=True):
            assert weight.grad is not None
            weight.grad.mul_(mine)

    @torch.no_grad()
    def after_step(self) -> None:
        """Put back what weight decay and momentum had no business with."""
        for weight, mine, fixed in zip(self.weights(), self.mine, self.fixed, strict=True):
            weight.copy_(torch.where(mine, weight, fixed))

    def end_task(self, task: Task) -> None:
        self.masks.add(self.used(len(self.masks)))
        for held in (self.mine, self.fixed, self.scores, self.first, self.second, self.best):
            held.clear()
        self.accuracies = self.accuracies[:0]
        self.zero_grad()

    def used(self, task: int) -> list[Tensor]:
        """Where the weights are that a task uses."""
        if task < len(self.masks):
            return self.masks.of(task, self.weights())
        return [mine | (score > THRESHOLD) for mine, score in zip(self.mine, self.scores, strict=True)]

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        self.norms.put(task)
        # 0 where a weight is not used, though with its gradient, from which scores learn.
        pairs = zip(self.weights(), self.used(task), strict=True)
        weights = [weight - (weight * ~used).detach() for weight, used in pairs]
        return self.answer(images, weights, task)
