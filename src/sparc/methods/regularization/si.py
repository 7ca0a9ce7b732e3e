"""Synaptic Intelligence: parameters whose moves have lowered the old tasks' loss are held where they came to rest.

Zenke, Poole and Ganguli, "Continual Learning Through Synaptic Intelligence", ICML 2017. ω sums, step by step, what a
parameter's move has taken off the loss (the task's alone, without the penalty); at the end of a task it is divided by
how far the parameter went, squared, plus ξ, and added to the importance, which never falls below 0. Gradients are cut
off at ±1, as in the field's code: without that a strong penalty makes the loss run away. On held-out training pictures
of Seq-CIFAR100 (2 epochs a task) c of 0.5 is the best of three: 9.0, 7.8 and 6.7 % Class-IL at 0.5, 5 and 50.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.parts.penalty import QuadraticPenalty
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.resizable_buffers import TensorList


@dataclass(frozen=True)
class SISettings(SingleNetSettings):
    renamed: ClassVar = {"strength": "lam"}

    lam: float = 0.5
    """c: weight of the penalty."""
    xi: float = 1.0
    """ξ: keeps the importance of parameters that hardly moved within bounds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--lam", self.lam)
        check_positive("--xi", self.xi)


class SI(QuadraticPenalty):
    name = "si"
    title = "SI"
    paper = "Zenke et al., ICML 2017"
    Settings = SISettings
    recipe = Recipe(clip_value=1.0)

    def __init__(self, settings: SISettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.lam, self.xi = settings.lam, settings.xi
        count = len(list(self.net.parameters()))
        self.path = TensorList(count)
        """ω, while a task is learned."""
        self.last = TensorList(count)
        """Parameters before the step that comes, while a task is learned."""
        self.gradients: list[Tensor | None] = []
        """The task's own, of the step that comes: without the penalty, and not cut off."""

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        parameters = [parameter.detach() for parameter in self.net.parameters()]
        self.anchor.set([parameter.clone() for parameter in parameters])
        self.last.set([parameter.clone() for parameter in parameters])
        self.path.set([torch.zeros_like(parameter) for parameter in parameters])

    @torch.no_grad()
    def before_step(self) -> None:
        self.gradients = [
            None if parameter.grad is None else parameter.grad.clone() for parameter in self.net.parameters()
        ]
        for gradient, last, anchor, importance in zip(
            self.gradients, self.last, self.anchor, self.importance, strict=True
        ):
            if gradient is not None and (old := len(importance)):
                gradient[:old] -= 2 * self.lam * importance * (last[:old] - anchor[:old])

    @torch.no_grad()
    def after_step(self) -> None:
        for parameter, gradient, last, path in zip(
            self.net.parameters(), self.gradients, self.last, self.path, strict=True
        ):
            if gradient is not None:
                path.sub_(gradient * (parameter - last))
                last.copy_(parameter)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        moves = zip(self.net.parameters(), self.anchor, self.path, strict=True)
        self.consolidate([path / ((parameter - start).square() + self.xi) for parameter, start, path in moves])
        self.path.clear()
        self.last.clear()
