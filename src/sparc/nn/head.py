"""The linear head, initialised as `nn.Linear` is, but from a generator of our own."""

from typing import cast

import torch
from torch import Generator, Tensor, nn


class Head(nn.Linear):
    def __init__(self, features: int, classes: int, generator: Generator) -> None:
        super().__init__(features, classes)
        bound = features**-0.5
        with torch.no_grad():
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.uniform_(-bound, bound, generator=generator)

    def reset_parameters(self) -> None:
        """Nothing: `nn.Linear` would draw from, and so move, the global generator here."""


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class Heads(nn.ModuleList):
    """One head a task, which grow in number while they are loaded."""

    def __init__(self, features: int, generator: Generator) -> None:
        super().__init__()
        self.features = features
        self.generator = generator

    def add(self, classes: int) -> None:
        self.append(Head(self.features, classes, self.generator))

    @property
    def sizes(self) -> list[int]:
        return [self.of(task).out_features for task in range(len(self))]

    def of(self, task: int) -> Head:
        return cast(Head, self[task])

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.sizes, dtype=torch.int64)

    def set_extra_state(self, state: Tensor) -> None:
        for classes in state.tolist()[len(self) :]:
            self.add(classes)
