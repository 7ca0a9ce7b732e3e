"""A model that is ready to answer, by whichever means."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparc.data.pictures import Kept, Pixels
from sparc.model_info import ModelInfo

Floats = NDArray[np.float32]


class ReadyModel(Protocol):
    """Takes in pictures as arrays, in the shape that `info` says."""

    @property
    def info(self) -> ModelInfo: ...

    def look(self, images: Pixels, cache: bool) -> Kept:
        """All that it needs of pictures: what its start finds in them, or without one the pictures themselves; with a
        `cache`, what was found in the same pictures lately is not found anew.
        """

    def answer(self, looked: Kept) -> tuple[Floats, Floats | None]:
        """Scores [B, C] of what it has looked at, and how strange each is, [B], where it has common features."""
