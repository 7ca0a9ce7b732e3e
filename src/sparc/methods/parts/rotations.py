"""Pictures turned by quarters, each turn of a class as a class of its own."""

import torch
from torch import Tensor

from sparc.errors import InputError

TURNS = 4


def rotations(images: Tensor) -> Tensor:
    """[4 B, …]: each picture as it is and by 90, 180 and 270 degrees, one after the other.

    >>> rotations(torch.arange(4.0).view(1, 1, 2, 2))[1, 0].tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    """
    height, width = images.shape[2:]
    if height != width:
        raise InputError(f"pictures of {width} × {height} pixels cannot be turned by quarters: bring them to squares")
    return torch.stack([images.rot90(turns, (2, 3)) for turns in range(TURNS)], 1).flatten(0, 1)


def rotation_labels(labels: Tensor) -> Tensor:
    """[4 B]: of the same pictures, four for each class.

    >>> rotation_labels(torch.tensor([2, 0])).tolist()
    [8, 9, 10, 11, 0, 1, 2, 3]
    """
    return (TURNS * labels[:, None] + torch.arange(TURNS, device=labels.device)).flatten()
