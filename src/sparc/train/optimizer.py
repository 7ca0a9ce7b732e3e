"""The optimizer of a phase, and its state as tensors with names."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from sparc.methods.method import Method, ParameterGroup, Phase
from sparc.train.muon import Muon


def new_optimizer(phase: Phase, method: Method) -> Optimizer:
    recipe = phase.recipe
    chosen = phase.parameters
    if chosen is None:
        chosen = [parameter for parameter in method.parameters() if parameter.requires_grad]
    alone = [each for each in chosen if not isinstance(each, ParameterGroup)]
    parts = [each for each in chosen if isinstance(each, ParameterGroup)]
    groups: list[dict[str, Any]] = [
        {
            "params": list(part.parameters),
            "lr_scale": part.lr_scale,
            "weight_decay": recipe.weight_decay if part.weight_decay is None else part.weight_decay,
        }
        for part in ([ParameterGroup(alone)] if alone or not parts else []) + parts
    ]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, recipe.lr, momentum=recipe.momentum, nesterov=recipe.nesterov, fused=True)
    if recipe.optimizer == "muon":
        return Muon(groups, recipe.lr)
    kind: type[torch.optim.Adam] = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, recipe.lr, fused=True)


def set_lr(optimizer: Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_scale"]


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
