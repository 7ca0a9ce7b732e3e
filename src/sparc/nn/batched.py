"""A net over many pictures, with few of them in memory at a time."""

from collections.abc import Callable

import torch
from torch import Tensor

CHUNK = 256
"""Pictures in memory as floats at a time."""


def predict_batched(
    answer: Callable[[Tensor], Tensor],
    images: Tensor,
    normalize: Callable[[Tensor], Tensor],
    device: torch.device | str = "cpu",
    before_each: Callable[[], None] = lambda: None,
) -> Tensor:
    """What a function answers to uint8 pictures, on the CPU; `before_each` is called before each chunk."""
    answers = []
    for chunk in images.split(CHUNK):
        before_each()
        answers.append(answer(normalize(chunk.to(device))).cpu())
    return torch.cat(answers)
