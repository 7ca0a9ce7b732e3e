"""FeTrIL: old classes are played by pictures of new ones, moved to where the old classes' means are.

Petit, Popescu, Schindler, Picard and Delezoide, "FeTrIL: Feature Translation for Exemplar-Free Class-Incremental
Learning", WACV 2023. The net learns with the first task alone, and of each class its mean feature is kept. With every
task a linear classifier of all classes is learned anew: for an old class from the features of the new class that is
most like it, less that class's mean and plus its own. The authors' second training of the net, with AugMix, is not
here.
"""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, normalize

from sparc.data.stream import Task
from sparc.methods.parts.first_task import FirstTaskNet
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.gaussians import ClassMeans


class FeTrIL(FirstTaskNet):
    name = "fetril"
    title = "FeTrIL"
    paper = "Petit et al., WACV 2023"
    recipe = Recipe(epochs=90, batch_size=128, lr=0.1, momentum=0.9, weight_decay=1e-4, milestones=(1 / 3, 2 / 3))

    def __init__(self, settings: SingleNetSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        features = self.net.head.in_features
        self.means = ClassMeans(features)
        self.weight: Tensor
        self.bias: Tensor
        self.register_buffer("weight", torch.zeros(0, features))
        self.register_buffer("bias", torch.zeros(0))

    def end_task(self, task: Task) -> None:
        features, labels = self.features_of(self.net.features, task.train).cpu(), task.train.labels
        self.means.add(features.to(self.device), labels.to(self.device))
        played = translated(features, labels, self.means.means.cpu().float(), task.classes.start)
        features, labels = torch.cat((features, played[0])), torch.cat((labels, played[1]))
        weight, bias = linear_svm(normalize(features, dim=1), labels, task.classes.stop)
        self.weight, self.bias = weight.to(self.device), bias.to(self.device)

    def logits(self, images: Tensor) -> Tensor:
        return linear(normalize(self.net.features(images), dim=1), self.weight, self.bias)


def translated(features: Tensor, labels: Tensor, means: Tensor, old: int) -> tuple[Tensor, Tensor]:
    """What the first `old` classes may look like, from features of the others, each class with its label."""
    units = normalize(means, dim=1)
    nearest = old + (units[:old] @ units[old:].T).argmax(1) if old else torch.zeros(0, dtype=torch.int64)
    moved = [features[labels == new] - means[new] + means[label] for label, new in enumerate(nearest.tolist())]
    names = [torch.full((len(part),), label) for label, part in enumerate(moved)]
    return torch.cat([features[:0], *moved]), torch.cat([labels[:0], *names])


def linear_svm(features: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Weight [C, D] and bias [C] of a support vector machine for each class against all others."""
    from sklearn.svm import LinearSVC

    if classes == 1:
        return torch.zeros(1, features.shape[1]), torch.zeros(1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # there may be few pictures of each
        machine = LinearSVC(C=1.0, tol=1e-4, dual=False).fit(features.double().numpy(), labels.numpy())
    weight, bias = machine.coef_, machine.intercept_
    if classes == 2:  # of two classes it learns the second one alone
        weight, bias = np.concatenate((-weight, weight)), np.concatenate((-bias, bias))
    return torch.from_numpy(weight).float(), torch.from_numpy(bias).float()
