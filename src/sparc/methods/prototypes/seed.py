"""SEED: a few experts, each with Gaussians of the classes that it has seen; a task trains only one of them.

Rypeść et al., "Divide and not forget: Ensemble of selectively trained experts in Continual Learning", ICLR 2024. The
first tasks train an expert each. Later ones fine-tune the one that already tells the new classes apart best, with its
features held to where they were. After every task each expert describes the new classes by a Gaussian each, which stays
as it is ever after. An expert shares its vote among the classes that it knows by their likelihoods; a class's votes are
averaged over the experts that know it. Task-IL, too, chooses by these averages. Fine-tuning takes half of the epochs,
without weight decay.

The default net has the filters of the authors' ResNet-32, 16-32-64, and their linear layer of 64 features behind them,
but two blocks a layer instead of five. They also learn from stronger views, which are not here. Their covariances, of a
thousand views a class, are sound as they are. Ours are so of a single picture, too: each class is given a made-up one
more that lies off its mean, alike in all directions, by the mean variance of all classes that the expert knows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import mse_loss, pad

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.errors import check_positive, check_share
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.densities import Densities, described, divergences, sound_covariances
from sparc.methods.parts.prepared import Prepared
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.backbone import new_backbone
from sparc.nn.gaussians import ClassGaussians
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head


@dataclass(frozen=True)
class SeedSettings(SingleNetSettings):
    width: float = 0.25
    """Filters of each expert's first layer, as a multiple of 64."""
    depth: int | None = 3
    """Layers of two residual blocks."""
    features: int = 64
    """Features that each expert describes pictures by; fewer where its last layer has fewer filters."""
    experts: int = 5
    """How many there are at most; so many tasks train a new one each."""
    alpha: float = 0.99
    """Share of the loss that holds an expert's features to where they were, when it is fine-tuned."""
    temperature: float = 3.0
    """By which log likelihoods are divided before an expert's vote is shared out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--features", self.features)
        check_positive("--experts", self.experts)
        check_share("--alpha", self.alpha)
        check_positive("--temperature", self.temperature)


class Expert(nn.Module):
    def __init__(self, net: GrowingNet) -> None:
        super().__init__()
        self.net = net
        """Its last layer answers features, not classes."""
        self.gaussians = ClassGaussians(net.classes, tied=False)
        """Of the classes of the task that it was made for, and of all later ones."""


class Experts(nn.ModuleList):
    """They grow in number while they are loaded."""

    def __init__(self, new_net: Callable[[Generator], GrowingNet]) -> None:
        super().__init__()
        self.new_net = new_net

    def all(self) -> list[Expert]:
        return cast(list[Expert], list(self))

    def add_copy(self, expert: Expert) -> None:
        """One with another's net that knows no class yet."""
        net = self.new_net(Generator())
        net.become(expert.net)
        self.append(Expert(net))

    def get_extra_state(self) -> Tensor:
        return torch.tensor(len(self))

    def set_extra_state(self, state: Tensor) -> None:
        for _ in range(len(self), int(state)):
            self.append(Expert(self.new_net(Generator())))


class SEED(Prepared[list[Densities]]):
    name = "seed"
    title = "SEED"
    paper = "Rypeść et al., ICLR 2024"
    Settings = SeedSettings
    recipe = Recipe(
        epochs=200, batch_size=128, lr=0.05, momentum=0.9, weight_decay=5e-4, milestones=(0.3, 0.6, 0.8), clip_norm=1.0
    )

    def __init__(
        self, settings: SeedSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.settings = settings
        self.channels = channels
        self.image_size = image_size
        self.learning: Tensor
        self.register_buffer("learning", torch.tensor(0))
        """Which expert does."""
        self.experts = Experts(self.new_net)
        self.experts.append(Expert(self.new_net(generator)))
        self.features = self.learner.net.classes
        self.before = Experts(self.new_net)
        """While an expert is fine-tuned, a copy of it as it was."""
        self.head = Head(self.features, 0, generator)
        """Of the task at hand, and thrown away with it."""

    def new_net(self, generator: Generator) -> GrowingNet:
        settings = self.settings
        net = new_backbone(settings.backbone, self.channels, self.image_size, settings.width, settings.depth, generator)
        net.add_classes(min(settings.features, net.head.in_features))
        return net

    @property
    def learner(self) -> Expert:
        return self.experts.all()[int(self.learning)]

    def begin_task(self, task: Task) -> None:
        if not task.index:
            self.learning.fill_(0)
        elif len(self.experts) < self.settings.experts:
            self.experts.add_copy(self.experts.all()[0])
            self.learning.fill_(len(self.experts) - 1)
        else:
            apart = [self.separation(expert, task) for expert in self.experts.all()]
            self.learning.fill_(apart.index(max(apart)))
            self.before.add_copy(self.learner)
        self.head = Head(self.features, len(task.classes), self.generator)

    @torch.no_grad()
    def separation(self, expert: Expert, task: Task) -> float:
        """How far apart the task's classes are to an expert: the mean divergence of each from each other; 0 of one."""
        features, labels = described(self, expert.net, task.train)
        found = ClassGaussians(self.features, tied=False).to(self.device)
        found.add(features, labels - task.classes.start)
        pairs = len(found) * (len(found) - 1)
        return float(divergences(found.means, sound_covariances(found)).fill_diagonal_(0).sum()) / max(1, pairs)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        if not len(self.before):
            return [Phase(recipe)]
        # The authors' weights do not decay here.
        return [Phase(replace(recipe, epochs=max(1, recipe.epochs // 2), weight_decay=0), "fine-tune")]

    def loss(self, batch: Batch) -> Tensor:
        features = self.learner.net(batch.images)
        loss = batch.cross_entropy(self.head(features), batch.labels - batch.task.classes.start)
        if not len(self.before):
            return loss
        with torch.no_grad():
            before = self.before.all()[0].net(batch.images)
        return (1 - self.settings.alpha) * loss + self.settings.alpha * mse_loss(features, before)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        for expert in self.experts.all():
            features, labels = described(self, expert.net, task.train)
            first = task.classes.start - len(expert.gaussians)
            expert.gaussians.add(features, labels - first)
        self.before = Experts(self.new_net)
        self.head = Head(self.features, 0, self.generator)
        self.zero_grad()

    def set_trainable(self) -> None:
        self.to(self.device).requires_grad_(False)
        self.head.requires_grad_(True)
        self.learner.requires_grad_(True)

    def train(self, mode: bool = True) -> Self:
        """Only an expert that is new gathers statistics of its batch norms."""
        super().train(mode)
        self.experts.eval()
        self.before.eval()
        self.learner.train(mode and not len(self.before))
        return self

    def prepare(self) -> list[Densities]:
        known = [expert.gaussians for expert in self.experts.all()]
        return [Densities.of(gaussians.means, sound_covariances(gaussians)) for gaussians in known]

    @torch.no_grad()
    def logits(self, images: Tensor) -> Tensor:
        """Logarithms of the classes' mean votes, as votes themselves may be too small for a number."""
        densities, temperature = self.ready(), self.settings.temperature
        classes = max(len(known.means) for known in densities)
        votes = []
        for expert, known in zip(self.experts.all(), densities, strict=True):
            shares = (known.log_likelihoods(expert.net(images)) / temperature).log_softmax(1)
            votes.append(pad(shares, (classes - shares.shape[1], 0), value=-torch.inf))
        each = torch.stack(votes)
        return (each.logsumexp(0) - each.isfinite().sum(0).log()).float()

    def one_pass(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.learner.net(images))
        return logits
