"""What nets that grow with their tasks have in common."""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Generator, Tensor, nn

from sparc.errors import InputError
from sparc.nn.head import Head


class GrowingNet(nn.Module, ABC):
    """One net for all tasks, whose head grows with the classes."""

    generator: Generator
    head: Head

    @property
    def classes(self) -> int:
        return self.head.out_features

    @torch.no_grad()
    def add_classes(self, classes: int) -> None:
        """Grow the head; the classes it has keep their weights."""
        if classes < 1:
            raise InputError(f"a task has at least one class, not {classes}")
        known = self.head
        self.head = Head(known.in_features, known.out_features + classes, self.generator).to(known.weight.device)
        self.head.weight[: known.out_features] = known.weight
        self.head.bias[: known.out_features] = known.bias

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """What the head sees: the last map, averaged over its places."""

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits

    def get_extra_state(self) -> Tensor:
        """How many classes the head has grown to, so that its weights can be put back into a net that has not."""
        return torch.tensor(self.classes)

    def set_extra_state(self, state: Tensor) -> None:
        missing = int(state) - self.classes
        assert missing >= 0, "a net that has grown further cannot take on this state"
        if missing:
            self.add_classes(missing)


class Freezable(nn.Module):
    """A part that learns for a while, and then never again."""

    frozen = False

    def freeze(self) -> None:
        """Neither weights nor running statistics change any more."""
        self.frozen = True
        self.requires_grad_(False)
        super().train(False)

    def train(self, mode: bool = True) -> Self:
        # What is frozen is in eval mode already; going through all of it would make every epoch longer by the tasks.
        return self if self.frozen else super().train(mode)
