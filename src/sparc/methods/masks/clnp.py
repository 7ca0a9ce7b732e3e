"""CLNP: units that hardly speak are given up for later tasks, and all others frozen with what they read.

Golkar, Kagan and Cho, "Continual Learning via Neural Pruning", 2019. A task is trained with a penalty that makes the
net sparse. Then units are free whose mean activity is below a threshold, the largest that costs held-out pictures no
more than a margin of accuracy; they are drawn anew, and nobody who is frozen reads them.

The net, the penalty on the sizes of all weights, and the recipe are those of NISPA's comparison with it (Gurbuz and
Dovrolis, ICML 2022). The last epoch counts, where theirs was the best on held-out pictures; and a filter's activity is
its mean over a map's pixels, where theirs was the sum, so that one threshold suits all layers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.stable_units import PlainConvSettings, StableUnits
from sparc.methods.recipe import Recipe


@dataclass(frozen=True)
class ClnpSettings(PlainConvSettings):
    l1: float = 1e-5
    """Weight of the sum of all weights' sizes in the loss."""
    margin: float = 1.0
    """How much accuracy may be given up with the units, in percentage points."""
    step: float = 0.02
    """By how much the threshold on a unit's mean activity rises at a time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--l1", self.l1)
        check_not_negative("--margin", self.margin)
        check_positive("--step", self.step)


class CLNP(StableUnits):
    name = "clnp"
    title = "CLNP"
    paper = "Golkar et al., 2019"
    Settings = ClnpSettings
    recipe = Recipe(epochs=50, batch_size=32, lr=1e-3, optimizer="adam")

    def __init__(self, settings: ClnpSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.settings = settings

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        return [Phase(recipe, images=lambda: self.split(task)[0])]

    def loss(self, batch: Batch) -> Tensor:
        parts = (*self.net.parameters(), *self.heads.of(-1).parameters())
        return super().loss(batch) + self.settings.l1 * torch.stack([part.abs().sum() for part in parts]).sum()

    def end_task(self, task: Task) -> None:
        self.freeze(self.needed(task))

    @torch.no_grad()
    def needed(self, task: Task) -> list[Tensor]:
        """The fewest units with which the task is told as well, but for the margin; older tasks' are among them."""
        learned_from, judged_by = self.split(task)
        least = self.accuracy(judged_by, task) - self.settings.margin
        trained = [weight.clone() for weight in self.weights()]
        counts = [len(units) for units in self.stable]
        activity, old = torch.cat(self.activity(learned_from)), torch.cat(list(self.stable))
        found = old | (activity > 0)
        while (new := found & ~old).any():
            lowest, step = float(activity[new].min()), self.settings.step
            # The next threshold that a unit falls below, whatever rounding says.
            threshold = max(lowest, step * (1 + math.floor(lowest / step)))
            fewer = old | (activity > threshold)
            self.cut(fewer.split(counts))
            accuracy = self.accuracy(judged_by, task)
            for weight, value in zip(self.weights(), trained, strict=True):
                weight.copy_(value)
            if accuracy < least:
                break
            found = fewer
        return list(found.split(counts))
