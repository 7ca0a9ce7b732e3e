"""ALASSO: springs that are stiffer on the side of a parameter's resting place on which nobody has ever been.

Park et al., "Continual Learning by Asymmetric Loss Approximation with Single-Side Overestimation", ICCV 2019. A task
moves a parameter from one side, and of what the loss is there SI's path integral tells: Ω is what the move has taken
off the task's loss, less what it has put on the spring of the tasks before, over the length of the move, squared, plus
ξ. It never shrinks. What the loss is on the other side has not been observed, and is rather overestimated, by a Ω + ε.
The penalty is c Σ Ω Δ² or c Σ (a Ω + ε) Δ².

The authors have a second set of settings, with which Ω is found; there a is 1, ε 0 and c 1, so that springs are alike
on both sides, and they stay so here. Their recipe is for permuted MNIST.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from sparc.data.stream import Task
from sparc.errors import InputError, check_not_negative
from sparc.methods.parts.penalty import extended
from sparc.methods.recipe import Recipe
from sparc.methods.regularization.si import SI, SISettings


@dataclass(frozen=True)
class AlassoSettings(SISettings):
    renamed: ClassVar = {}

    lam: float = 1.0
    """c: weight of the penalty."""
    a: float = 1.8
    """How many times as stiff springs are on the side that has not been observed; at least 1."""
    epsilon: float = 1e-6
    """ε: how much stiffer they are there besides."""
    xi: float = 0.1
    """ξ: keeps the importance of parameters that hardly moved within bounds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.a < math.inf:
            raise InputError(f"--a {self.a:g} must be a number of at least 1: the other side is not underestimated")
        check_not_negative("--epsilon", self.epsilon)


class ALASSO(SI):
    name = "alasso"
    title = "ALASSO"
    paper = "Park et al., ICCV 2019"
    Settings = AlassoSettings
    recipe = Recipe(epochs=20, batch_size=256, lr=1e-3, optimizer="adam")

    def __init__(self, settings: AlassoSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.a, self.epsilon = settings.a, settings.epsilon

    def stiffness(self, omega: Tensor, move: Tensor) -> Tensor:
        """Ω has the sign of the last task's move: a parameter has been observed where that came from."""
        observed = omega * move < 0
        return torch.where(observed, omega.abs(), self.a * omega.abs() + self.epsilon)

    def penalty(self) -> Tensor:
        terms = []
        for parameter, anchor, omega in zip(self.net.parameters(), self.anchor, self.importance, strict=True):
            move = parameter[: len(omega)] - anchor[: len(omega)]
            terms.append((self.stiffness(omega, move.detach()) * move.square()).sum())
        return torch.stack(terms).sum()

    @torch.no_grad()
    def before_step(self) -> None:
        self.gradients = []
        for parameter, anchor, omega in zip(self.net.parameters(), self.anchor, self.importance, strict=True):
            gradient = None if parameter.grad is None else parameter.grad.clone()
            if gradient is not None and (old := len(omega)):
                move = parameter[:old] - anchor[:old]
                gradient[:old] -= 2 * self.lam * self.stiffness(omega, move) * move
            self.gradients.append(gradient)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        importance = []
        for parameter, start, path, omega in zip(
            self.net.parameters(), self.anchor, self.path, self.importance, strict=True
        ):
            move, old = parameter - start, extended(omega, parameter).abs()
            found = (path - old * move.square()) / (move.square() + self.xi)
            importance.append(torch.where(move < 0, -1.0, 1.0) * torch.maximum(found, old))
        self.importance.set(importance)
        self.anchor.set([parameter.detach().clone() for parameter in self.net.parameters()])
        self.path.clear()
        self.last.clear()
