"""The recipe: how long and by which steps a method learns one task."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from sparc.errors import InputError, check_choices, check_not_negative, check_positive


def check_plain_steps(recipe: "Recipe", method: str) -> None:
    """Refuse steps that do not go along the gradient, for a method that has changed it."""
    if recipe.optimizer != "sgd":
        raise InputError(f"--optimizer {recipe.optimizer} would undo what {method} does to gradients: leave it at sgd")


@dataclass(frozen=True)
class Recipe:
    renamed: ClassVar[Mapping[str, str]] = {"batch": "batch_size"}
    """Names that fields had in earlier versions, which are still understood."""

    epochs: int = 50
    """Passes over each task's pictures."""
    batch_size: int = 32
    """Pictures a step."""
    lr: float = 0.03
    """Learning rate."""
    optimizer: Literal["adam", "adamw", "muon", "sgd"] = "sgd"
    """Which rule turns gradients into steps."""
    momentum: float = 0.0
    """Of sgd; the others have their own."""
    nesterov: bool = False
    """Of sgd: look ahead by the momentum."""
    weight_decay: float = 0.0
    """L2 penalty on all weights; with adamw and muon, by how much they shrink at each step, times the rate."""
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    """How the learning rate goes over a task: it stays, falls to 0 by a cosine from epoch to epoch, or falls to 0 in a
    line from step to step."""
    milestones: tuple[float, ...] = ()
    """Shares of the epochs after which the learning rate is multiplied by --lr-drop."""
    lr_drop: float = 0.1
    """What the learning rate is multiplied by at each milestone."""
    lr_warm_up: float = 0.0
    """Epochs over which the learning rate rises from 0, step by step."""
    clip_norm: float | None = None
    """Shorten gradients whose norm over all parameters is longer than this."""
    clip_value: float | None = None
    """Cut every number of the gradients off at this size."""
    label_smoothing: float = 0.0
    """Share of each label that is given to all classes alike."""

    def __post_init__(self) -> None:
        check_choices(self)
        if not self.epochs >= 1:  # so that what is no number is refused too
            raise InputError(f"--epochs {self.epochs} learns nothing: give at least 1")
        if self.batch_size < 2:
            raise InputError(f"--batch-size {self.batch_size} is too small for batch norm: give at least 2")
        check_positive("--lr", self.lr)
        if not 0 <= self.momentum < 1:
            raise InputError(f"--momentum {self.momentum:g} must be at least 0 and below 1")
        if self.nesterov and self.optimizer != "sgd":
            raise InputError(
                "--nesterov is sgd's: give --optimizer sgd, or leave it out, with --no-nesterov where the method has it"
            )
        if self.momentum and self.optimizer != "sgd":
            raise InputError(
                f"--momentum {self.momentum:g} is sgd's, and {self.optimizer} has its own: add --momentum 0"
            )
        if self.nesterov and not self.momentum:
            raise InputError("--nesterov looks ahead by the momentum: add --momentum 0.9")
        check_not_negative("--weight-decay", self.weight_decay)
        if not all(0 < share < 1 for share in self.milestones):
            raise InputError("--milestones are shares of the epochs: give numbers between 0 and 1")
        if not 0 < self.lr_drop <= 1:
            raise InputError(f"--lr-drop {self.lr_drop:g} must be above 0 and at most 1")
        check_not_negative("--lr-warm-up", self.lr_warm_up)
        for flag, most in (("--clip-norm", self.clip_norm), ("--clip-value", self.clip_value)):
            if most is not None:
                check_positive(flag, most)
        if not 0 <= self.label_smoothing < 1:
            raise InputError(f"--label-smoothing {self.label_smoothing:g} must be at least 0 and below 1")

    def lr_at(self, epoch: int, share: float = 0.0) -> float:
        """The learning rate of an epoch, counted from 0, after this share of its steps.

        >>> [round(Recipe(epochs=4, lr=1.0, schedule="cosine").lr_at(epoch), 3) for epoch in range(4)]
        [1.0, 0.854, 0.5, 0.146]
        >>> [Recipe(epochs=4, lr=1.0, schedule="linear", lr_warm_up=1).lr_at(epoch, 0.5) for epoch in range(4)]
        [0.4375, 0.625, 0.375, 0.125]
        >>> [Recipe(epochs=4, lr=1.0, milestones=(0.5,)).lr_at(epoch) for epoch in range(4)]
        [1.0, 1.0, 0.1, 0.1]
        """
        lr = self.lr * self.lr_drop ** sum(epoch >= milestone * self.epochs for milestone in self.milestones)
        if self.schedule == "cosine":
            lr = lr * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        if self.schedule == "linear":
            lr *= 1 - (epoch + share) / self.epochs
        return lr * min(1.0, (epoch + share) / self.lr_warm_up) if self.lr_warm_up else lr
