"""Masks of a net's weights, one set a task: a bit a weight, eight in a byte of the state."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from sparc.nn.resizable_buffers import TensorList


class BitMasks(nn.ModuleList):
    """Sets of masks, which grow in number while they are loaded; in a set is one for each of `count` weights.

    >>> masks, weight = BitMasks(1), torch.zeros(3)
    >>> masks.add([torch.tensor([True, False, False])])
    >>> masks.add([torch.tensor([False, False, True])])
    >>> [mask.tolist() for mask in masks.of(1, [weight])], [mask.tolist() for mask in masks.any([weight])]
    ([[False, False, True]], [[True, False, True]])
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def add(self, masks: Sequence[Tensor]) -> None:
        """One set more: the next task's."""
        self._add()
        self.replace(-1, masks)

    def replace(self, task: int, masks: Sequence[Tensor]) -> None:
        """Put others in the place of a task's."""
        assert len(masks) == self.count
        self.packed(task).set([pack(mask) for mask in masks])

    def packed(self, task: int) -> TensorList:
        """A task's masks as they are kept."""
        return cast(TensorList, self[task])

    def of(self, task: int, weights: Sequence[Tensor]) -> list[Tensor]:
        """A task's masks, of the shapes that these weights have, and where they are."""
        pairs = zip(self.packed(task), weights, strict=True)
        return [unpack(bits.to(weight.device), weight.shape) for bits, weight in pairs]

    def any(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """What is in the masks of at least one task; nothing while there are none."""
        found = [torch.zeros_like(weight, dtype=torch.bool) for weight in weights]
        for task in range(len(self)):
            for mask, more in zip(found, self.of(task, weights), strict=True):
                mask |= more
        return found

    def _add(self) -> None:
        packed = TensorList(self.count)
        packed.set([bits.byte() for bits in packed])
        self.append(packed)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(len(self))

    def set_extra_state(self, state: Tensor) -> None:
        for _ in range(len(self), int(state)):
            self._add()


def pack(mask: Tensor) -> Tensor:
    """Its bits, eight in a byte, the first the lowest; what is missing to whole bytes is 0.

    >>> pack(torch.tensor([True, False, True])).tolist()
    [5]
    """
    bits = pad(mask.flatten().byte(), (0, -mask.numel() % 8)).view(-1, 8)
    return (bits << _places(mask)).sum(1, dtype=torch.uint8)


def unpack(packed: Tensor, shape: Sequence[int]) -> Tensor:
    """The mask of this shape whose bits were packed.

    >>> unpack(torch.tensor([5], dtype=torch.uint8), (1, 3))
    tensor([[ True, False,  True]])
    """
    bits = (packed[:, None] >> _places(packed) & 1).bool().flatten()
    size = torch.Size(shape)
    assert -(-size.numel() // 8) == len(packed), "a mask of another shape"
    return bits[: size.numel()].view(size)


def _places(near: Tensor) -> Tensor:
    return torch.arange(8, dtype=torch.uint8, device=near.device)
