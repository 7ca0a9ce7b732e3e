"""What methods share that describe each class by a Gaussian of a net's features.

Shapes: N pictures, D features, C classes.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sparc.data.imageset import ImageSet
from sparc.methods.method import Method
from sparc.nn.gaussians import ClassGaussians, correlations, mahalanobis
from sparc.nn.growing import GrowingNet


def described(method: Method, net: GrowingNet, pictures: ImageSet) -> tuple[Tensor, Tensor]:
    """[N, D] and [N]: what a net answers to pictures, and to their mirror images where these are learned from; labels.

    The method is in eval mode afterwards.
    """
    mirrored = [replace(pictures, images=pictures.images.flip(3))] if getattr(method.augment, "flip", False) else []
    views = [pictures, *mirrored]
    features = torch.cat([method.features_of(net, view) for view in views])
    return features, pictures.labels.repeat(len(views)).to(method.device)


class Densities(NamedTuple):
    """Gaussians of classes, ready to be asked."""

    means: Tensor
    """[C, D]"""
    precisions: Tensor
    """[C, D, D]"""
    log_determinants: Tensor
    """[C], of the covariances."""

    @classmethod
    def of(cls, means: Tensor, covariances: Tensor) -> Self:
        return cls(means, torch.linalg.inv(covariances), torch.logdet(covariances))

    def log_likelihoods(self, features: Tensor) -> Tensor:
        """[N, C], but for what all of them have in common."""
        return -(mahalanobis(features.double(), self.means, self.precisions) + self.log_determinants) / 2


class Directions(NamedTuple):
    """Gaussians of classes, ready to be asked how far a picture's features point from where the class's do."""

    means: Tensor
    """[C, D], of length 1."""
    precisions: Tensor
    """[C, D, D], of features that have a variance of 1 each."""

    @classmethod
    def of(cls, means: Tensor, covariances: Tensor) -> Self:
        # Where all pictures of a class are alike, it has no variance to be brought to 1.
        least = 1e-8 * torch.eye(means.shape[1]).to(means)
        return cls(normalize(means, dim=1), torch.linalg.inv(correlations(covariances + least)))

    def distances(self, features: Tensor) -> Tensor:
        """[N, C]: squared Mahalanobis distances, of features brought to length 1."""
        return mahalanobis(normalize(features.double(), dim=1), self.means, self.precisions)


def sound_covariances(gaussians: ClassGaussians) -> Tensor:
    """[C, D, D]: with a made-up picture more of each class, off its mean by the mean variance of all, so that none is
    singular; a very small one where all pictures are alike.
    """
    found = gaussians.covariances()
    variance = found.diagonal(dim1=1, dim2=2).mean().clamp_min(1e-8)
    return found + (variance / gaussians.counts)[:, None, None] * torch.eye(found.shape[1]).to(found)


def divergences(means: Tensor, covariances: Tensor) -> Tensor:
    """[C, C]: Kullback and Leibler's, of each Gaussian (a row) from each (a column)."""
    _, precisions, sizes = Densities.of(means, covariances)
    traces = covariances.flatten(1) @ precisions.flatten(1).T
    return (traces + mahalanobis(means, means, precisions) - means.shape[1] + sizes - sizes[:, None]) / 2
