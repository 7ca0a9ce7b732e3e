"""SDC: class means follow the drift of features, which pictures of the new task show.

Yu et al., "Semantic Drift Compensation for Class-Incremental Learning", CVPR 2020. A picture is of the class whose mean
feature is nearest. When a task is over, an old class's mean moves as the features of new pictures have moved that lay
near it, the nearer the more. The net learns as in the table that SPARC's paper quotes (Goswami et al., "Resurrecting
Old Classes with New Data for Exemplar-Free Continual Learning", CVPR 2024): a cosine head, cross-entropy over the new
classes alone, and distillation of the old ones' answers, as in LwF. Later tasks take half of the epochs, at half the
rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.distillation import distillation
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.gaussians import ClassMeans
from sparc.nn.growing import GrowingNet
from sparc.nn.head import CosineHead

LATER_MILESTONES = (0.45, 0.9)
FAR = 1e-5
"""What the farthest picture weighs, where the nearest possible one weighs 1: so where all are far, all count alike."""


@dataclass(frozen=True)
class SdcSettings(SingleNetSettings):
    sigma: float = 0.3
    """How far from a class's mean pictures still tell of its drift; features have length 1."""
    lam: float = 10.0
    """Weight of the distillation."""
    temperature: float = 2.0
    """By which logits are divided in the distillation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--sigma", self.sigma)
        check_not_negative("--lam", self.lam)
        check_positive("--temperature", self.temperature)


class SDC(SingleNet):
    name = "sdc"
    title = "SDC"
    paper = "Yu et al., CVPR 2020"
    Settings = SdcSettings
    recipe = Recipe(epochs=200, batch_size=128, lr=0.1, momentum=0.9, weight_decay=5e-4, milestones=(0.3, 0.6, 0.8))
    settings: SdcSettings

    def __init__(self, settings: SdcSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.teacher = self.new_net(Generator()).as_copy()
        """The net after the last task; before the first one it knows no class."""
        self.means = ClassMeans(self.net.head.in_features)

    def new_net(self, generator: Generator) -> GrowingNet:
        net = super().new_net(generator)
        net.head = CosineHead(net.head.in_features, 0, generator)
        return net

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        if not self.teacher.classes:
            return [Phase(recipe)]
        milestones = LATER_MILESTONES if recipe.milestones else ()
        return [Phase(replace(recipe, epochs=max(1, recipe.epochs // 2), lr=recipe.lr / 2, milestones=milestones))]

    def loss(self, batch: Batch) -> Tensor:
        logits, old = self.net(batch.images), self.teacher.classes
        loss = batch.cross_entropy(logits[:, old:], batch.labels - old)
        if old:
            with torch.no_grad():
                target = self.teacher(batch.images)
            loss = loss + self.settings.lam * distillation(logits[:, :old], target, self.settings.temperature)
        return loss

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        after = self.seen_by(self.net, task.train)
        if len(self.means):
            before = self.seen_by(self.teacher, task.train)
            self.means.means += drift(self.means.distances(before), after - before, self.settings.sigma)
        self.means.add(after, task.train.labels)
        self.teacher.become(self.net)

    def seen_by(self, net: GrowingNet, pictures: ImageSet) -> Tensor:
        return normalize(self.features_of(net.features, pictures).double(), dim=1)

    def logits(self, images: Tensor) -> Tensor:
        return -self.means.distances(normalize(self.net.features(images), dim=1)).float()


def drift(distances: Tensor, moved: Tensor, sigma: float) -> Tensor:
    """[C, D]: how far each class's mean has moved, from how far pictures have, [N, D], and the squares of how far they
    lay from it, [N, C].
    """
    near = torch.exp(-distances / (2 * sigma**2)) + FAR
    return (near / near.sum(0)).T @ moved
