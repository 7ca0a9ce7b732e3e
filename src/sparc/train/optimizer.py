"""The optimizer of a phase, and its state as tensors with names."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from sparc.methods.recipe import Recipe


def new_optimizer(recipe: Recipe, parameters: Sequence[nn.Parameter]) -> Optimizer:
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    return torch.optim.SGD(
        parameters, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay, fused=True
    )


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """What it remembers of each parameter, by the parameter's number; rates and such follow from the recipe."""
    return {
        f"{number}.{name}": value
        for number, memory in optimizer.state_dict()["state"].items()
        for name, value in memory.items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split(".")
        state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
