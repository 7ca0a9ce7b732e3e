"""What statistics of classes say of pictures, in numpy alone: linear discriminants, and how strange a picture is.

`ClassGaussians` gathers the statistics, and `Voice` and `Strangeness` say the same with torch while a net learns.

Shapes: P features, D of them after projection, C classes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

COMMON_SEED = 2**32
"""Of the projection of common features; those of working memories are numbered from 0."""
LEAST = 0.02
"""Of the number of features, added to what strangeness is divided by: with one class alone the distances are the
same."""


def projection(seed: int, features: int, kept: int) -> Doubles:
    """[P, D]: the random one that follows from a seed."""
    if kept == features:
        return np.eye(features)
    # Signs from a stream that stays the same in all versions, as torch's does not: later ones read the file too.
    words = np.random.Philox(key=seed).random_raw(features * kept // 64 + 1)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8))[: features * kept]
    found: Doubles = (2.0 * bits - 1).reshape(features, kept) / features**0.5
    return found


LEAST_VARIANCE = 1e-4
"""That is made up where all pictures of a class are alike."""


class Shrinkage(NamedTuple):
    """How much of a covariance is made up."""

    half_at: float = 2.0
    """Features a picture, to the power, at which it is half of it."""
    power: float = 1.5

    def share(self, features: int, pictures: int) -> float:
        """More where pictures are few for so many features, and a hundredth at the least.

        >>> [round(Shrinkage().share(features=100, pictures=pictures), 2) for pictures in (50, 100, 100_000)]
        [0.59, 0.33, 0.01]
        """
        crowded = math.pow(features / max(pictures, 1), self.power)
        return max(0.01, crowded / (self.half_at + crowded))


USUAL_SHRINKAGE = Shrinkage()


class StrangenessLayers(NamedTuple):
    """From features to how strange a picture is: linear layers, and what is added to the distance from the centre."""

    weight: Floats
    """[D, P], to features whose covariance is 1, around the centre of the classes."""
    bias: Floats
    """[D]"""
    means: Floats
    """[C, D]: of the classes, in the same."""
    usual: float


@dataclass(frozen=True, eq=False)
class Described:
    """What is known of classes in one kind of features, as a `Voice` has gathered it."""

    shift: Floats
    """[P], taken off features before they are multiplied with the next."""
    scale: Floats
    """[P]"""
    seed: int
    counts: NDArray[np.int64]
    """[C], pictures of each class."""
    means: Doubles
    """[C, D]"""
    scatter: Doubles
    """[D (D + 1) / 2]: the upper half of the sum of products of what lies off the classes' means."""
    shrinkage: Shrinkage = USUAL_SHRINKAGE

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[np.generic]], prefix: str, shrinkage: Shrinkage) -> Self:
        """From tensors by the names that they have in a model file."""
        shift, scale, seed, counts, means, scatters = (
            tensors[f"{prefix}.{name}"]
            for name in ("shift", "scale", "seed", "gaussians.counts", "gaussians.means", "gaussians.scatters")
        )
        return cls(shift, scale, int(seed), counts, means, scatters[0], shrinkage)  # type: ignore[arg-type]

    def merged(self, labels: Sequence[int]) -> Self:
        """The same with one class made of all that are given the same label."""
        count = max(labels, default=-1) + 1
        counts, means = np.zeros(count, np.int64), np.zeros((count, self.means.shape[1]))
        scatter, upper = self.scatter.copy(), np.triu_indices(self.means.shape[1])
        for label, pictures, mean in zip(labels, self.counts, self.means, strict=True):
            total = pictures + counts[label]
            shift = mean - means[label]
            # What is spread between the two means (Chan et al.).
            scatter += (np.outer(shift, shift) * (pictures * counts[label] / max(total, 1)))[upper]
            means[label] += shift * (pictures / max(total, 1))
            counts[label] = total
        return replace(self, counts=counts, means=means, scatter=scatter)

    def discriminants(self) -> tuple[Floats, Floats]:
        """Weight [C, P] and bias [C] from features to log likelihoods, but for what is common to all classes."""
        weight = self._whitened(self.means) @ self._inverse_root
        bias = (weight * self.means).sum(1) * -0.5
        weight = self._unprojected(weight) * self.scale
        return weight.astype(np.float32), (bias - weight @ self.shift.astype(np.float64)).astype(np.float32)

    def is_sound(self) -> bool:
        """Whether the covariance is positive definite and the discriminants are finite."""
        try:
            with np.errstate(all="ignore"):
                weight, bias = self.discriminants()
            return bool(np.isfinite(weight).all()) and bool(np.isfinite(bias).all())
        except np.linalg.LinAlgError:
            return False

    def strangeness(self) -> StrangenessLayers:
        centre = self.means.mean(0)
        means = self._whitened(self.means - centre).astype(np.float32)
        weight = (self._unprojected(self._inverse_root) * self.scale).astype(np.float32)
        from_shift = (-self.shift * self.scale).astype(np.float64)[None]
        bias = self._whitened((from_shift if self._all_kept else from_shift @ self._projection) - centre)[0]
        usual = float(np.square(means).sum(1).mean()) + LEAST * means.shape[1]
        return StrangenessLayers(weight, bias.astype(np.float32), means, usual)

    @property
    def _all_kept(self) -> bool:
        """There is nothing to project, and a product with so many features would take its time."""
        return bool(len(self.shift) == self.means.shape[1])

    @cached_property
    def _projection(self) -> Doubles:
        return projection(self.seed, len(self.shift), self.means.shape[1])

    def _unprojected(self, rows: Doubles) -> Doubles:
        return rows if self._all_kept else rows @ self._projection.T

    def _whitened(self, rows: Doubles) -> Doubles:
        found: Doubles = rows @ self._inverse_root.T
        return found

    @cached_property
    def _inverse_root(self) -> Doubles:
        """[D, D]: of the lower triangular root of the covariance for all classes, which is shrunk as
        `ClassGaussians.shrunk_covariance` has it.
        """
        features = self.means.shape[1]
        upper = np.triu_indices(features)
        found = np.zeros((features, features))
        found[upper] = self.scatter / max(int(self.counts.sum()) - len(self.counts), 1)
        found = np.triu(found, 1).T + found
        share = self.shrinkage.share(features, int(self.counts.sum()))
        found *= 1 - share
        found[np.diag_indices(features)] += share * max(float(np.trace(found)) / (1 - share) / features, LEAST_VARIANCE)
        root = np.linalg.cholesky(found)
        if not np.isfinite(root).all():
            raise np.linalg.LinAlgError("the covariance is not finite")
        return np.linalg.solve(root, np.eye(features))
