"""Handwritten digits of 8 × 8 pixels that lie in scikit-learn's wheel, so that a first run needs no network.

E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sparc.data.imageset import ImageSet, Splits
from sparc.data.progress import Progress, no_progress
from sparc.data.sources.source import Source


class Digits(Source):
    """Within each class every fifth picture is for testing.

    >>> train, test = Digits().load()
    >>> train.images.shape, len(test)
    (torch.Size([1442, 1, 8, 8]), 355)
    """

    name = "digits"
    title = "Digits"

    def load(self, data: Path | None = None, progress: Progress = no_progress) -> Splits:
        from sklearn.datasets import load_digits  # half a second that a run on another set need not pay

        digits = load_digits()
        images = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, np.newaxis]
        labels = digits.target.astype(np.int64)
        is_test = np.zeros(len(labels), dtype=bool)
        for label in range(10):
            is_test[np.flatnonzero(labels == label)[4::5]] = True

        def part(chosen: NDArray[np.bool_]) -> ImageSet:
            names = tuple(str(label) for label in range(10))
            return ImageSet(torch.from_numpy(images[chosen]), torch.from_numpy(labels[chosen]), names)

        return Splits(part(~is_test), part(is_test))
