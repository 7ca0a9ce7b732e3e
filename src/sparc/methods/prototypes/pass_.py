"""PASS: old classes are rehearsed as noisy prototypes, and turned pictures as classes of their own make features last.

Zhu et al., "Prototype Augmentation and Self-Supervision for Incremental Learning", CVPR 2021. The head has an output
for each quarter turn of each class, and the one for no turn answers. From the second task on, the mean features of old
classes, with noise as strong as the first task's classes spread, keep the head from forgetting them, and features are
held to where the net after the last task has them. The authors also change the pictures' brightness, which is not done
here.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch
from sparc.methods.parts.rotations import TURNS, rotation_labels, rotations
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.gaussians import ClassMeans


@dataclass(frozen=True)
class PassSettings(SingleNetSettings):
    temperature: float = 0.1
    """By which logits are divided while it learns."""
    prototype_weight: float = 10.0
    """Weight of telling old classes' prototypes apart."""
    distillation_weight: float = 10.0
    """Weight of how far features have moved, of a whole batch at once: a larger batch counts for more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--temperature", self.temperature)
        check_not_negative("--prototype-weight", self.prototype_weight)
        check_not_negative("--distillation-weight", self.distillation_weight)


class PASS(SingleNet):
    name = "pass"
    title = "PASS"
    paper = "Zhu et al., CVPR 2021"
    Settings = PassSettings
    recipe = Recipe(
        epochs=101, batch_size=64, lr=1e-3, optimizer="adam", weight_decay=2e-4, milestones=(45 / 101, 90 / 101)
    )
    settings: PassSettings

    def __init__(self, settings: PassSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.teacher = self.new_net(Generator()).as_copy()
        """The net after the last task."""
        self.prototypes = ClassMeans(self.net.head.in_features)
        """Mean features of old classes, each in the net as it was when its task was over."""
        self.radius: Tensor
        """How strong the noise is."""
        self.register_buffer("radius", torch.tensor(0.0))

    def begin_task(self, task: Task) -> None:
        self.net.add_classes(TURNS * len(task.classes))

    def loss(self, batch: Batch) -> Tensor:
        images, labels = rotations(batch.images), rotation_labels(batch.labels)
        features = self.net.features(images)
        loss = self.cross_entropy(features, labels, batch)
        if not len(self.prototypes):
            return loss
        with torch.no_grad():
            before = self.teacher.features(images)
        prototypes, classes = self.drawn_prototypes(batch.recipe.batch_size)
        return (
            loss
            + self.settings.distillation_weight * torch.dist(features, before)
            + self.settings.prototype_weight * self.cross_entropy(prototypes, TURNS * classes, batch)
        )

    def cross_entropy(self, features: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        return batch.cross_entropy(self.net.head(features) / self.settings.temperature, labels)

    def drawn_prototypes(self, count: int) -> tuple[Tensor, Tensor]:
        """So many of old classes, with noise, and which classes they are of."""
        means, classes = self.prototypes.draw(count, self.generator)
        noise = torch.randn(means.shape, generator=self.generator).to(self.device)
        return means + self.radius * noise, classes

    def end_task(self, task: Task) -> None:
        features = self.features_of(self.net.features, task.train)
        labels = task.train.labels.to(self.device)
        if not len(self.prototypes):
            self.radius.fill_(mean_deviation(features, labels))
        self.prototypes.add(features, labels)
        self.teacher.become(self.net)

    def logits(self, images: Tensor) -> Tensor:
        return super().logits(images)[:, ::TURNS]


def mean_deviation(features: Tensor, labels: Tensor) -> float:
    """Of features from their class's mean: the root of their variance, averaged over features and then over classes.

    >>> round(mean_deviation(torch.tensor([[0.0, 1.0], [4.0, 1.0], [2.0, 2.0]]), torch.tensor([0, 0, 1])), 6)
    1.414214
    """
    classes = [features[labels == label].double() for label in labels.unique()]
    # The variance of a single picture is taken to be 0.
    variances = [(own - own.mean(0)).square().sum(0).mean() / max(1, len(own) - 1) for own in classes]
    return float(torch.stack(variances).mean().sqrt())
