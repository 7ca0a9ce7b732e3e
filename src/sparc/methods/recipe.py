"""The recipe: how long and by which steps a method learns one task."""

import math
from dataclasses import dataclass
from typing import Literal

from sparc.errors import InputError, check_not_negative


@dataclass(frozen=True)
class Recipe:
    epochs: int = 50
    """Passes over each task's pictures."""
    batch: int = 32
    """Pictures a step."""
    lr: float = 0.03
    """Learning rate."""
    optimizer: Literal["adam", "sgd"] = "sgd"
    """Which rule turns gradients into steps."""
    momentum: float = 0.0
    """Of sgd; adam has its own."""
    weight_decay: float = 0.0
    """L2 penalty on all weights."""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the learning rate goes over a task's epochs."""

    def __post_init__(self) -> None:
        if not self.epochs >= 1:
            raise InputError(f"--epochs {self.epochs} learns nothing: give at least 1")
        if self.batch < 2:
            raise InputError(f"--batch {self.batch} is too small for batch norm: give at least 2")
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise InputError(f"--lr {self.lr:g} must be a positive number")
        if not 0 <= self.momentum < 1:
            raise InputError(f"--momentum {self.momentum:g} must be at least 0 and below 1")
        if self.momentum and self.optimizer == "adam":
            raise InputError(f"--momentum {self.momentum:g} is sgd's, and adam has its own: add --momentum 0")
        check_not_negative("--weight-decay", self.weight_decay)

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0.

        >>> [round(Recipe(epochs=4, lr=1.0, schedule="cosine").lr_at(epoch), 3) for epoch in range(4)]
        [1.0, 0.854, 0.5, 0.146]
        """
        if self.schedule == "constant":
            return self.lr
        return self.lr * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
