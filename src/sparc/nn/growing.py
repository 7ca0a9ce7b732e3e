"""What nets that grow with their tasks have in common."""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Generator, Tensor, nn

from sparc.errors import InputError
from sparc.nn.head import Head
from sparc.nn.layout import layer_filters, suitable_depth


class GrowingNet(nn.Module, ABC):
    """One net for all tasks, whose head grows with the classes."""

    head: Head

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 1.0,
        depth: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.generator = generator if generator is not None else Generator().manual_seed(0)
        self.build(channels, layer_filters(width, suitable_depth(image_size) if depth is None else depth))

    @abstractmethod
    def build(self, channels: int, filters: list[int]) -> None:
        """Make the net's parts, of so many filters in each of its layers, and a head without classes."""

    stays_eval = False

    def as_copy(self, stays_eval: bool = True) -> Self:
        """Made to follow another net: it takes no gradient, also where it grows.

        It stays in eval mode, or else goes into training mode with its owner, so as to gather statistics of its own.
        """
        self.stays_eval = stays_eval
        self.requires_grad_(False)
        return self.train(not stays_eval)

    @torch.no_grad()
    def become(self, net: "GrowingNet") -> None:
        """The same as another net is now, which may have grown since."""
        self.load_state_dict(net.state_dict())

    @torch.no_grad()
    def follow(self, net: "GrowingNet", keep: float) -> None:
        """Move to another net's parameters by 1 − keep of the way; new classes start where they are there.

        Running statistics stay its own, as it gathers them in training mode.
        """
        if missing := net.classes - self.classes:
            known = self.classes
            self.add_classes(missing)
            self.head.weight[known:], self.head.bias[known:] = net.head.weight[known:], net.head.bias[known:]
        for own, other in zip(self.parameters(), net.parameters(), strict=True):
            own.lerp_(other, 1 - keep)

    def train(self, mode: bool = True) -> Self:
        return super().train(mode and not self.stays_eval)

    @property
    def classes(self) -> int:
        return self.head.out_features

    def add_classes(self, classes: int) -> None:
        """Grow the head; the classes it has keep their weights."""
        if classes < 1:
            raise InputError(f"a task has at least one class, not {classes}")
        self.head = self.head.grown(classes, self.generator)

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """What the head sees: the last map, averaged over its pixels."""

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
