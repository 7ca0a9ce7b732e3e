"""AdaGauss: Gaussians of old classes are moved, mean and covariance, by a map that learns how features have changed.

Rypeść et al., "Task-recency bias strikes back: Adapting covariances in Exemplar-Free Class Incremental Learning",
NeurIPS 2024. The net answers a few features. It learns each task by cross-entropy over the task's classes, in the first
task those of pictures turned by quarters, and later features must also say, through a distiller, what they were before.
So that they do not collapse into few directions, the diagonal of the Cholesky factor of a batch's covariance is pushed
up to 1. After a later task an adapter learns to tell new features from old ones; old classes' Gaussians are drawn from,
what is drawn goes through the adapter, and new Gaussians are fitted to it. A picture is of the class to whose mean its
Mahalanobis distance is least, by correlations of shrunk covariances, both of them brought to length 1.

Head, distiller and adapter are there only while a task is learned, and do not count among what is kept. Batches with
too few pictures for a covariance, which the authors leave out, do not push against collapse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import mse_loss

from sparc.data.stream import Task
from sparc.errors import InputError, check_not_negative, check_positive
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.densities import Directions, described
from sparc.methods.parts.prepared import Prepared
from sparc.methods.parts.rotations import TURNS, rotation_labels, rotations
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.gaussians import ClassGaussians
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head

LATER = 0.1
"""What the learning rate is multiplied by after the first task, and for the adapter."""
HEAD_ALONE = 0.01
"""Share of the epochs at whose beginning no gradient reaches the net."""


@dataclass(frozen=True)
class AdaGaussSettings(SingleNetSettings):
    features: int = 64
    """Features that pictures are described by; fewer where the net's last layer has fewer filters."""
    hidden: int = 32
    """Hidden units that the distiller and the adapter have for each feature."""
    lam: float = 10.0
    """Weight of the distillation of old features."""
    anti_collapse: float = 1.0
    """Weight of what keeps features from collapsing into few directions."""
    samples: int = 10_000
    """How many are drawn of each old class to move its Gaussian."""
    shrink: float = 3.0
    """How much of its mean variance is added to each variance of a class, when it is asked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--features", self.features)
        check_positive("--hidden", self.hidden)
        check_not_negative("--lam", self.lam)
        check_not_negative("--anti-collapse", self.anti_collapse)
        check_positive("--shrink", self.shrink)
        if self.samples < 2:
            raise InputError(f"--samples {self.samples} are too few for a covariance: give at least 2")


class AdaGauss(SingleNet, Prepared[Directions]):
    name = "adagauss"
    title = "AdaGauss"
    paper = "Rypeść et al., NeurIPS 2024"
    Settings = AdaGaussSettings
    recipe = Recipe(
        epochs=200, batch_size=256, lr=0.1, momentum=0.9, weight_decay=5e-4, milestones=(0.3, 0.6, 0.9), clip_norm=1.0
    )
    settings: AdaGaussSettings

    def __init__(self, settings: AdaGaussSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.teacher = self.new_net(Generator()).as_copy()
        """The net after the last task."""
        self.features = self.net.classes
        self.gaussians = ClassGaussians(self.features, tied=False)
        self.make_helpers(0)

    def new_net(self, generator: Generator) -> GrowingNet:
        """Its last layer answers features, not classes."""
        net = super().new_net(generator)
        net.add_classes(min(self.settings.features, net.head.in_features))
        return net

    def make_helpers(self, classes: int, old: bool = False) -> None:
        """A new head of so many classes and, if there are old ones, a new distiller and a new adapter."""
        features, hidden = self.features, self.features * self.settings.hidden
        units, answers = (hidden, features) if old else (0, 0)

        def mlp() -> nn.Sequential:
            layers = Head(features, units, self.generator), nn.GELU(), Head(hidden, answers, self.generator)
            return nn.Sequential(*layers).to(self.device)

        self.head = Head(features, classes, self.generator).to(self.device)
        self.distiller, self.adapter = mlp(), mlp()

    def begin_task(self, task: Task) -> None:
        old = len(self.gaussians) > 0
        self.make_helpers(len(task.classes) * (1 if old else TURNS), old)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        learning = [*self.net.parameters(), *self.head.parameters(), *self.distiller.parameters()]
        if not len(self.gaussians):
            # With all turns of its pictures a batch is as large as it is later.
            return [Phase(replace(recipe, batch_size=max(2, recipe.batch_size // TURNS)), parameters=learning)]
        later = replace(recipe, lr=LATER * recipe.lr)
        adapt = replace(later, epochs=max(1, recipe.epochs // 2))
        return [
            Phase(later, parameters=learning),
            Phase(adapt, "adapt", list(self.adapter.parameters()), self.adapter_loss),
        ]

    def loss(self, batch: Batch) -> Tensor:
        images, labels = batch.images, batch.labels - batch.task.classes.start
        if not len(self.gaussians):
            images, labels = rotations(images), rotation_labels(labels)
        features = self.net(images)
        if batch.epoch < int(HEAD_ALONE * batch.recipe.epochs):
            features = features.detach()
        loss = batch.cross_entropy(self.head(features), labels)
        loss = loss + self.settings.anti_collapse * anti_collapse(features)
        if len(self.gaussians):
            with torch.no_grad():
                before = self.teacher(images)
            loss = loss + self.settings.lam * mse_loss(self.distiller(features), before)
        return loss

    def adapter_loss(self, batch: Batch) -> Tensor:
        self.net.eval()
        with torch.no_grad():
            before, after = self.teacher(batch.images), self.net(batch.images)
        adapted = self.adapter(before)
        return mse_loss(adapted, after) + self.settings.anti_collapse * anti_collapse(adapted)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        # Where nothing has been learned, as when costs are counted, features are where they were.
        weights = zip(self.net.parameters(), self.teacher.parameters(), strict=True)
        if len(self.gaussians) and not all(torch.equal(now, before) for now, before in weights):
            self.move_gaussians()
        self.gaussians.add(*described(self, self.net, task.train))
        self.teacher.become(self.net)
        self.make_helpers(0)

    def move_gaussians(self) -> None:
        """Fit those of old classes to what the adapter makes of samples."""
        covariances, count = self.gaussians.covariances(), self.settings.samples
        moved = ClassGaussians(self.features, tied=False).to(self.device)
        for label in range(len(self.gaussians)):
            drawn = self.gaussians.sample(label, count, covariances, self.generator)
            moved.add(self.adapter(drawn.float()), torch.full((count,), label, device=self.device))
        self.gaussians = moved

    def prepare(self) -> Directions:
        return Directions.of(self.gaussians.means, self.gaussians.covariances(self.settings.shrink))

    @torch.no_grad()
    def logits(self, images: Tensor) -> Tensor:
        return -self.ready().distances(self.net(images)).float()

    def one_pass(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.net(images))
        return logits


def anti_collapse(features: Tensor) -> Tensor:
    """Less the more directions features are spread in, down to −1; 0 of no more pictures than features, which cannot be
    spread in all of them.
    """
    count, width = features.shape
    if count <= width:
        return features.new_zeros(())
    # In double precision, which autocast leaves alone; a little is added for features that are all alike.
    off = features.double() - features.double().mean(0)
    covariance = off.T @ off / (count - 1) + 1e-6 * torch.eye(width, device=off.device)
    # Does not stop at what is no number, of which the trainer tells.
    root: Tensor = torch.linalg.cholesky_ex(covariance).L
    return -root.diagonal().clamp_max(1).mean().float()
