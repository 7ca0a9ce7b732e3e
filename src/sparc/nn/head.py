"""The linear head, initialised as `nn.Linear` is, but from a generator of our own."""

import torch
from torch import Generator, nn


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
