"""Weights that somebody else has trained, which nobody changes: a checkpoint names them and does not hold them."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from sparc.errors import InputError


def digest_of(state: Mapping[str, Tensor]) -> "hashlib._Hash":
    """Of all tensors of a state and their names, to the bit."""
    total = hashlib.sha256()
    for name, value in sorted(state.items()):
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.detach().cpu().contiguous().numpy().tobytes())
    return total


class Pretrained(nn.Module):
    """A frozen net, in eval mode for good, of which nothing but a digest is in the state.

    >>> Pretrained(nn.Linear(2, 1)).state_dict().keys()
    odict_keys(['_extra_state'])
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        # In a list, so that it is no sub-module: its weights are neither in the state nor among what can learn.
        self._held = [net.requires_grad_(False).eval()]

    @property
    def net(self) -> nn.Module:
        return self._held[0]

    def forward(self, *inputs: Any) -> Any:
        return self.net(*inputs)

    @property
    def numbers(self) -> int:
        """How many parameters it has."""
        return sum(parameter.numel() for parameter in self.net.parameters())

    def digest(self) -> bytes:
        """By which the weights are known, all of them and their names."""
        return digest_of(self.net.state_dict()).digest()

    def get_extra_state(self) -> Tensor:
        return torch.frombuffer(bytearray(self.digest()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        if bytes(state.cpu().numpy()) != self.digest():
            raise InputError(
                "the pre-trained weights are not those that this run began with: bring those back, or start over"
            )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.net._apply(fn, recurse)
        moved: Self = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return moved
