"""Batch norms that every task has for itself, in one net."""

from typing import cast

import torch
from torch import Tensor, nn


class Place(nn.Module):
    """Where a module belongs that is held elsewhere, one of several."""

    held: tuple[nn.Module, ...] = ()
    """In a tuple, so that it is no part of this one."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.held[0](x)
        return out


class TaskNorms(nn.ModuleList):
    """A set a task, each put into the net when its task is asked; they grow in number while they are loaded.

    >>> net = nn.Sequential(nn.BatchNorm2d(4))
    >>> norms = TaskNorms(net)
    >>> norms.add()
    >>> norms.put(0)
    >>> net(torch.zeros(2, 4, 1, 1)).shape, len(list(net.parameters()))
    (torch.Size([2, 4, 1, 1]), 0)
    """

    def __init__(self, net: nn.Module, inherit: bool = False) -> None:
        """Take all that the net has out of it. With `inherit` a new set begins as the last is."""
        super().__init__()
        self.inherit = inherit
        self.places: list[Place] = []
        self.sizes: list[int] = []
        for module in list(net.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.BatchNorm2d):
                    place = Place()
                    setattr(module, name, place)
                    self.places.append(place)
                    self.sizes.append(child.num_features)

    def add(self) -> None:
        norms = nn.ModuleList(map(nn.BatchNorm2d, self.sizes))
        if self.inherit and len(self):
            norms.load_state_dict(self[-1].state_dict())
        self.append(norms)

    def of(self, task: int) -> nn.ModuleList:
        return cast(nn.ModuleList, self[task])

    def put(self, task: int) -> None:
        for place, norm in zip(self.places, self.of(task), strict=True):
            place.held = (norm,)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(len(self))

    def set_extra_state(self, state: Tensor) -> None:
        for _ in range(len(self), int(state)):
            self.add()
