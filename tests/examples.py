"""Pictures that tests learn from."""

import numpy as np
import torch

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet


def blobs(per_class: int, classes: int, seed: int, channels: int = 1) -> ImageSet:
    """Pictures that are easy to tell apart: class k has a bright square where no other has.

    Of a single channel, they lie in memory as numpy's newaxis leaves them, with a stride that nobody expects.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(per_class)
    images = torch.randint(0, 60, (len(labels), channels, 8, 8), generator=generator, dtype=torch.uint8)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = divmod(label, 3)
        image[:, 1 + 2 * row : 3 + 2 * row, 1 + 2 * column : 3 + 2 * column] = 255
    if channels == 1:
        images = torch.from_numpy(images.numpy()[:, 0][:, np.newaxis])
    return ImageSet(images, labels, tuple(f"class {label}" for label in range(classes)))


AUGMENT = Augment.fitted(blobs(24, 6, seed=1))
"""Of pictures in one channel."""
