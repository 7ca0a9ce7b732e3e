"""State that is no parameter and whose shape is not known beforehand."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class ResizableBuffers(nn.Module):
    """Its buffers take on the shape of whatever is loaded into them."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name, buffer in self.named_buffers(recurse=False):
            if (loaded := state_dict.get(prefix + name)) is not None:
                setattr(self, name, torch.empty_like(loaded, device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class TensorList(ResizableBuffers):
    """Tensors that are no parameters: one for each parameter of a net, or none yet.

    >>> importance = TensorList(2)
    >>> importance.set([torch.zeros(3), torch.ones(2, 2)])
    >>> [tuple(tensor.shape) for tensor in importance]
    [(3,), (2, 2)]
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        for index in range(count):
            self.register_buffer(str(index), torch.empty(0))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, str(index)) for index in range(self.count))

    def set(self, tensors: Sequence[Tensor]) -> None:
        for index, tensor in enumerate(tensors):
            setattr(self, str(index), tensor)

    def clear(self) -> None:
        self.set([tensor.new_empty(0) for tensor in self])
