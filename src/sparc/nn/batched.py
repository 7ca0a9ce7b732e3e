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
    """What a function answers to uint8 pictures, on the CPU; `before_each` is called before each chunk.

    Features that a start has found in them are given to it as they are.
    """
    answers = []
    for chunk in images.split(CHUNK):
        before_each()
        chunk = chunk.to(device)
        answers.append(answer(chunk if chunk.is_floating_point() else normalize(chunk)).cpu())
    return torch.cat(answers)
