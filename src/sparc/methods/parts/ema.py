"""A copy of a net that follows it as a moving average, now and then: what it has learned it keeps for longer.

As in CLS-ER, OCDNet, TAMiL and TriRE, whether the copy moves after a step is left to a coin. Only parameters follow.
Batch norm's running statistics are the copy's own, so it has to be run in training mode before it can answer.

The authors' rates are for tasks of 15,625 steps. After a tenth of them such a copy would still be nearly what it began
as, so in shorter tasks it keeps less of itself, and moves more often where that would be too little.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from sparc.data.stream import Task
from sparc.errors import check_share
from sparc.methods.parts.rehearsal import RehearsalSettings
from sparc.methods.recipe import Recipe
from sparc.nn.growing import GrowingNet

USUAL_ALPHA = 0.999
"""The authors', of all four methods."""
USUAL_STEPS = 15_625
"""In which they learn a task: 50 epochs of 10,000 pictures, 32 at a time."""
LEAST_ALPHA = 0.9
"""Below it a copy is hardly an average any more: it moves more often instead, if it can."""


@dataclass(frozen=True)
class AverageSettings(RehearsalSettings):
    """Of a method that replays pictures, and has an average of its net to tell it what to say of them."""

    alpha: float | None = None
    """How much of itself an average keeps when it follows; less at the start of a run. Without it the authors' .999,
    and less where tasks are shorter than their 15,625 steps, so that it follows as much of a task as theirs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("--alpha", self.alpha or 0)


class MovingAverage(nn.Module):
    """
    >>> from sparc.nn import ResNet
    >>> net, copy = ResNet(width=1 / 8), ResNet(width=1 / 8)
    >>> average = MovingAverage(copy, net, rate=1.0, alpha=0.999)
    >>> average.follow(net, Generator())
    >>> int(average.steps), average.keep
    (1, 0.5)
    """

    steps: Tensor
    """Of the whole run."""

    def __init__(self, copy: GrowingNet, net: GrowingNet, rate: float, alpha: float | None = None) -> None:
        """Make `copy`, a net of the same shape, the average of `net`, from where that is now.

        It moves after a share of `rate` of the steps, and keeps at most `alpha` of what it was; without `alpha` both
        follow from how long a task is.
        """
        super().__init__()
        copy.become(net)
        self.net = copy.as_copy(stays_eval=False)
        self.rate = rate
        self.alpha = alpha
        self.register_buffer("steps", torch.tensor(0))
        self.task_steps = USUAL_STEPS
        """Of the task at hand, as far as somebody has said."""

    def pace(self, task: Task, recipe: Recipe) -> None:
        """Be told how long a task is; call it when its first phase begins."""
        self.task_steps = recipe.epochs * math.ceil(len(task.train) / recipe.batch_size)

    @property
    def keep(self) -> float:
        """How much of itself it keeps where it moves: little at first, when there is little to keep."""
        _, alpha = self._rate_and_alpha()
        return min(1 - 1 / (int(self.steps) + 1), alpha)

    def _rate_and_alpha(self) -> tuple[float, float]:
        """After which share of the steps it moves, and how much of itself it keeps then at the most."""
        if self.alpha is not None:
            return self.rate, self.alpha
        gives_up = (1 - USUAL_ALPHA) * max(1.0, USUAL_STEPS / self.task_steps)
        often = max(1.0, min(gives_up / (1 - LEAST_ALPHA), 1 / self.rate)) if self.rate else 1.0
        return self.rate * often, 1 - min(1.0, round(gives_up / often, 3))

    def grow(self, net: GrowingNet) -> None:
        """Take on the classes that the net has more; call it when a task begins."""
        self.net.follow(net, keep=1.0)

    def follow(self, net: GrowingNet, generator: Generator) -> None:
        """Perhaps move; call it after every step."""
        self.steps += 1
        rate, _ = self._rate_and_alpha()
        if torch.rand((), generator=generator) < rate:
            self.net.follow(net, self.keep)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.task_steps)

    def set_extra_state(self, state: Tensor) -> None:
        self.task_steps = int(state)
