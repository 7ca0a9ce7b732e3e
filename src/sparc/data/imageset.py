"""Pictures in memory: what every source yields and every stream is cut from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from sparc.errors import InputError


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Labelled pictures of one size, or what a start has found in them.

    >>> images = ImageSet(torch.zeros(3, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 1]), ("cat", "dog"))
    >>> len(images), images.counts()
    (3, [1, 2])
    """

    images: Tensor
    """uint8, N × channels × height × width; or float32 features of them, N × features."""
    labels: Tensor
    """int64, N: indices into `class_names`."""
    class_names: tuple[str, ...]
    shape: tuple[int, ...] = ()
    """Channels, height and width of the pictures; need not be said where there are pictures."""

    def __post_init__(self) -> None:
        # What is computed depends, in its last bits, on how pictures lie in memory, and a checkpoint keeps no strides.
        # Not by `contiguous()`, which leaves a single channel whatever stride it has.
        object.__setattr__(self, "images", self.images.flatten().view(self.images.shape))
        has_features = self.images.dtype == torch.float32 and self.images.ndim == 2 and len(self.shape) == 3
        if not has_features and (self.images.dtype != torch.uint8 or self.images.ndim != 4):
            raise InputError(
                f"images must be uint8 of shape N × channels × height × width, not {self.images.dtype} of shape "
                f"{tuple(self.images.shape)}"
            )
        if not has_features:
            object.__setattr__(self, "shape", tuple(self.images.shape[1:]))
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise InputError(
                f"labels must be one int64 an image, not {self.labels.dtype} of shape {tuple(self.labels.shape)} "
                f"for {len(self.images)} images"
            )
        if len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.class_names):
            raise InputError(
                f"labels run from {int(self.labels.min())} to {int(self.labels.max())}, "
                f"but there are {len(self.class_names)} class names"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def channels(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.shape[1], self.shape[2]

    def counts(self) -> list[int]:
        """How many pictures each class has."""
        return torch.bincount(self.labels, minlength=len(self.class_names)).tolist()

    def take(self, indices: Tensor) -> "ImageSet":
        """The pictures at these indices, in this order, or those that a mask picks."""
        return replace(self, images=self.images[indices], labels=self.labels[indices])

    def relabelled(self, order: Sequence[int]) -> "ImageSet":
        """The same pictures with the classes in another order: label i is given to what was class `order[i]`."""
        new_label = torch.empty(len(order), dtype=torch.int64)
        new_label[list(order)] = torch.arange(len(order))
        names = tuple(self.class_names[label] for label in order)
        return replace(self, labels=new_label[self.labels], class_names=names)

    def fingerprint(self) -> str:
        """A digest of every pixel, label and name, by which a result says what it was measured on."""
        digest = hashlib.sha256(repr((tuple(self.images.shape), self.class_names)).encode())
        digest.update(self.images.numpy().data)
        digest.update(self.labels.contiguous().numpy().data)
        return digest.hexdigest()


class Splits(NamedTuple):
    """What is learned from, and what is only ever tested on; both have the same class names."""

    train: ImageSet
    test: ImageSet
