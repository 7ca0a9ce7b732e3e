"""Those who are taught: a subclass with a name is a row of the table, and nothing else lists it.

Shapes: B batch, C channels, H height, W width, D features.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.nn.functional import avg_pool2d, linear, normalize, pad

from sparc.classifier import ContinualClassifier
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.methods.sparc.chorus import PICTURES_FOR_PATCHES
from sparc.nn.batched import predict_batched
from sparc.nn.chorus import Voice
from sparc.nn.described import COMMON_SEED
from sparc.nn.patch_numbers import PATCH_SHRINKAGE, PatchKind
from sparc.nn.patches import PatchFeatures

DIRECTIONS = 9
CELL = 8
"""Pixels each way."""
BLOCK = 2
"""Cells each way."""
CLIP = 0.2
"""No direction in a block counts for more."""
MEANS_ALONE = PatchKind(filters=192, peaks=0)
"""As the field has them."""

LEARNERS: dict[str, type["Learner"]] = {}
"""By name, in the order of the table."""


class Learner(ABC):
    """Takes in the pictures of one task after another and never sees them again."""

    name: ClassVar[str]
    title: ClassVar[str]
    at_once: ClassVar[bool] = False
    """Whether it is given all classes as one task."""

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            LEARNERS[cls.name] = cls

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @abstractmethod
    def teach(self, pictures: ImageSet) -> None:
        """Learn a task: some classes, none of which came before."""

    @abstractmethod
    def predict(self, images: Tensor) -> Tensor:
        """The label of each picture, among all classes so far; uint8 [B, C, H, W] to int64 [B]."""

    def knows(self, images: Tensor) -> Tensor | None:
        """Whether each may be of a class that was learned, where 95 % of such pictures should pass; None if it cannot
        tell.
        """
        return None


class NearestMean(Learner):
    """Keeps the mean of each class's features."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.means: dict[int, Tensor] = {}

    @staticmethod
    @abstractmethod
    def features(images: Tensor) -> Tensor:
        """Of pictures from 0 to 255, [B, C, H, W] to [B, D]."""

    def teach(self, pictures: ImageSet) -> None:
        for label in pictures.labels.unique().tolist():
            self.means[label] = self._features(pictures.images[pictures.labels == label]).mean(0)

    def predict(self, images: Tensor) -> Tensor:
        nearest = torch.cdist(self._features(images), torch.stack([*self.means.values()])).argmin(1)
        return torch.tensor([*self.means])[nearest]

    def _features(self, images: Tensor) -> Tensor:
        return predict_batched(self.features, images, Tensor.float)


class NearestPixels(NearestMean):
    name = "pixels"
    title = "nearest class mean on pixels"

    @staticmethod
    def features(images: Tensor) -> Tensor:
        return images.flatten(1) / 255


class NearestHOG(NearestMean):
    name = "hog"
    title = "nearest class mean on HOG"

    @staticmethod
    def features(images: Tensor) -> Tensor:
        return hog(images)


class Patches(Learner):
    """What the mean over a picture's quarters has in common with averages of patches of the first task (Coates, Lee and
    Ng, 2011), and a linear discriminant.
    """

    name = "patches"
    title = "patches, class means and one covariance"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.voice = Voice(MEANS_ALONE.features, MEANS_ALONE.features, COMMON_SEED, shrinkage=PATCH_SHRINKAGE)
        self.patches: PatchFeatures | None = None

    def teach(self, pictures: ImageSet) -> None:
        if self.patches is None:
            generator = Generator().manual_seed(self.seed)
            chosen = torch.randperm(len(pictures), generator=generator)[:PICTURES_FOR_PATCHES]
            self.augment = Augment.fitted(pictures)
            self.patches = PatchFeatures(pictures.channels, mirror=True, kind=MEANS_ALONE)
            self.patches.draw(self.augment.normalize(pictures.images[chosen]), generator)
        self.voice.add(predict_batched(self.patches, pictures.images, self.augment.normalize), pictures.labels)
        self.discriminants = self.voice.discriminants()

    def predict(self, images: Tensor) -> Tensor:
        assert self.patches is not None
        features = predict_batched(self.patches, images, self.augment.normalize)
        return linear(features, *self.discriminants).argmax(1)


class Sparc(Learner):
    name = "scratch"
    title = "`sparc learn --start nothing`"
    options: ClassVar[Mapping[str, Any]] = {"start": "nothing", "cache": False}
    """Of the classifier, beside the defaults."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.classifier = ContinualClassifier(seed=seed, **self.options)

    def teach(self, pictures: ImageSet) -> None:
        self.classifier.learn(pictures.images, pictures.labels.tolist())

    def predict(self, images: Tensor) -> Tensor:
        return torch.from_numpy(self.classifier.predict(images))

    def knows(self, images: Tensor) -> Tensor | None:
        return torch.from_numpy(self.classifier.is_known(images))


class SparcAtOnce(Sparc):
    name = "scratch-at-once"
    title = "`sparc learn --start nothing`, all pictures at once"
    at_once = True


class SparcStart(Sparc):
    name = "start"
    title = "`sparc learn --start lite0`, pre-trained on ImageNet"
    options: ClassVar[Mapping[str, Any]] = {"start": "lite0", "cache": False}


class SparcStartAtOnce(SparcStart):
    name = "start-at-once"
    title = "`sparc learn --start lite0`, all pictures at once"
    at_once = True


def hog(images: Tensor) -> Tensor:
    """Histograms of the directions of edges in cells, each block of cells normalized; [B, C, H, W] to [B, D].

    Dalal and Triggs, "Histograms of Oriented Gradients for Human Detection", 2005, without sharing votes between
    neighbouring directions and cells.
    """
    padded = pad(images, (1, 1, 1, 1), mode="replicate")
    across, down = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2], padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]
    # Of each pixel, the channel with the strongest edge.
    strength, channel = torch.hypot(across, down).max(1, keepdim=True)
    angle = torch.atan2(down.gather(1, channel), across.gather(1, channel))
    direction = (angle * (DIRECTIONS / math.pi)).floor().long() % DIRECTIONS
    votes = strength.new_zeros(len(images), DIRECTIONS, *images.shape[2:]).scatter_(1, direction, strength)
    blocks = avg_pool2d(votes, CELL).unfold(2, BLOCK, 1).unfold(3, BLOCK, 1)
    blocks = blocks.permute(0, 2, 3, 1, 4, 5).flatten(3)
    return normalize(normalize(blocks, dim=3).clamp_max(CLIP), dim=3).flatten(1)
