"""SSRE: a later task learns in branches beside a net that stays as it is, and into which they are folded afterwards.

Zhu et al., "Self-Sustaining Representation Expansion for Non-Exemplar Class-Incremental Learning", CVPR 2022. The first
task trains a ResNet. From the second on each 3×3 convolution but the stem has a 1×1 branch, which starts at zero, and
branches and head alone are trained. A picture whose features are near to an old class's mean is held by that nearness
to the features that it had, and counts for the new classes by what is left of it; the means themselves keep the head
from forgetting old classes. What the net was before the task is the net without its branches, so no copy of it is kept.
Later tasks take 0.6 of the epochs, at a fifth of the rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Generator, Tensor
from torch.linalg import vector_norm
from torch.nn.functional import normalize

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch, Method, Phase
from sparc.methods.recipe import Recipe
from sparc.methods.settings import NetSettings
from sparc.nn.gaussians import ClassMeans
from sparc.nn.side_branch import SideBranchNet

LATER_EPOCHS = 0.6
"""Of a later task, as a share of the first one's."""
LATER_LR = 0.2
"""Of a later task, as a multiple of the first one's."""


@dataclass(frozen=True)
class SsreSettings(NetSettings):
    temperature: float = 0.1
    """By which logits are divided while it learns."""
    prototype_weight: float = 10.0
    """Weight of telling old classes' prototypes apart."""
    distillation_weight: float = 1.0
    """Weight of how far features have moved, summed over a batch's pictures."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--temperature", self.temperature)
        check_not_negative("--prototype-weight", self.prototype_weight)
        check_not_negative("--distillation-weight", self.distillation_weight)


class SSRE(Method):
    name = "ssre"
    title = "SSRE"
    paper = "Zhu et al., CVPR 2022"
    Settings = SsreSettings
    recipe = Recipe(epochs=100, batch_size=128, lr=1e-3, optimizer="adam", weight_decay=5e-4, milestones=(0.45, 0.9))

    def __init__(
        self, settings: SsreSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.settings = settings
        self.net = SideBranchNet(channels, image_size, settings.width, settings.depth, generator)
        self.prototypes = ClassMeans(self.net.head.in_features)
        """Mean features of old classes, each in the net as it was when its task was over."""

    def begin_task(self, task: Task) -> None:
        self.net.add_classes(len(task.classes))
        if self.net.folded:
            self.net.add_branches()

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        if not self.net.folded:
            return [Phase(recipe)]
        # The rate drops after as many epochs as in the first task, where there are so many.
        milestones = tuple(share / LATER_EPOCHS for share in recipe.milestones if share < LATER_EPOCHS)
        epochs = max(1, round(LATER_EPOCHS * recipe.epochs))
        return [Phase(replace(recipe, epochs=epochs, lr=LATER_LR * recipe.lr, milestones=milestones))]

    def loss(self, batch: Batch) -> Tensor:
        features = self.net.features(batch.images)
        learned = self.cross_entropies(features, batch.labels, batch)
        if not self.net.folded:
            return learned.mean()
        before = self.net.features_before(batch.images)
        near = largest_cosine(features.double(), self.prototypes.means).float()
        moved: Tensor = vector_norm(features - before, dim=1)
        prototypes, classes = self.prototypes.draw(batch.recipe.batch_size, self.generator)
        return (
            ((1 - near) * learned).mean()
            + self.settings.distillation_weight * (near * moved).sum()
            + self.settings.prototype_weight * self.cross_entropies(prototypes, classes, batch).mean()
        )

    def cross_entropies(self, features: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """[B]: cross-entropy of each picture."""
        return batch.cross_entropy(self.net.head(features) / self.settings.temperature, labels, reduction="none")

    def end_task(self, task: Task) -> None:
        self.net.fold()
        self.prototypes.add(self.features_of(self.net.features, task.train), task.train.labels.to(self.device))

    def set_trainable(self) -> None:
        self.net.requires_grad_(not self.net.folded)
        for parameter in (*self.net.branches(), *self.net.head.parameters()):
            parameter.requires_grad_(True)

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits


def largest_cosine(features: Tensor, prototypes: Tensor) -> Tensor:
    """[B]: the largest cosine between a picture's features, [B, D], and any of the prototypes, [C, D].

    >>> import torch
    >>> largest_cosine(torch.tensor([[3.0, 4.0], [2.0, 0.0]]), torch.tensor([[0.0, 2.0], [5.0, 0.0]]))
    tensor([0.8000, 1.0000])
    """
    return (normalize(features, dim=1) @ normalize(prototypes, dim=1).T).amax(1)
