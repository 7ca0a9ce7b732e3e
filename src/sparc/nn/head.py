"""The linear head, with `nn.Linear`'s initialisation drawn from a generator of our own."""

import torch
from torch import Generator, nn
from torch.nn.utils import skip_init


def new_head(features: int, classes: int, generator: Generator) -> nn.Linear:
    """A head for so many classes."""
    head: nn.Linear = skip_init(
        nn.Linear, features, classes
    )  # nn.Linear itself would draw from, and move, the global generator
    bound = features**-0.5
    with torch.no_grad():
        head.weight.uniform_(-bound, bound, generator=generator)
        head.bias.uniform_(-bound, bound, generator=generator)
    return head


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
