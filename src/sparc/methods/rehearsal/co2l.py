"""Co²L: a representation is learned by contrast, which forgets less than a classifier does, and then probed.

Cha, Lee and Shin, "Co²L: Contrastive Continual Learning", ICCV 2021. The task's pictures and those that are kept are
learned from together, in two views each. Views of new pictures are drawn to others of their class; old ones only push
away, as the few that are left would be fitted too closely. From the second task on, how alike each view is to each
other is held to what the net before this task thought of it. Then the net rests, and a fresh head is fitted to it, by a
loss that gives each class the same weight: in expectation, classes drawn equally often, as the authors draw them.

The first task is learned five times as long as later ones. The kept pictures are drawn anew, balanced over the classes,
when a task is over. The authors' views are stronger: crops of any size, and colours that are shifted. Here they are the
benchmark's own; and the head's batches are as large as the net's, where theirs are half as large.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.buffer import Buffer
from sparc.methods.parts.contrastive import supervised_contrastive
from sparc.methods.parts.rehearsal import RehearsalSettings
from sparc.methods.parts.single import SingleNet
from sparc.methods.recipe import Recipe
from sparc.nn.head import Head

LATER_EPOCHS = 1 / 5
"""Of later tasks, and of the probe, as a share of the first task's."""
LONGEST_WARM_UP = 1 / 10
"""As a share of the epochs: the authors' of later tasks."""
UNIT_TEMPERATURE = 0.07
"""By which the authors' contrast is scaled: its weight is the temperature over this."""


@dataclass(frozen=True)
class Co2lSettings(RehearsalSettings):
    # All that is kept joins the task's pictures, so there is no batch of its own to choose.
    replay_batch: ClassVar[int] = RehearsalSettings.replay_batch  # type: ignore[misc]

    temperature: float = 0.5
    """By which similarities are divided in the contrastive loss."""
    current_temperature: float = 0.2
    """By which the net's similarities are divided in the distillation."""
    past_temperature: float = 0.01
    """By which those of the net before the task are divided in the distillation."""
    distillation_weight: float = 1.0
    """Weight of the distillation of similarities."""
    projection: int = 128
    """Numbers that views are compared by."""
    probe_lr: float = 1.0
    """Learning rate of the head, when it is fitted to the net."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--temperature", self.temperature)
        check_positive("--current-temperature", self.current_temperature)
        check_positive("--past-temperature", self.past_temperature)
        check_not_negative("--distillation-weight", self.distillation_weight)
        check_positive("--projection", self.projection)
        check_positive("--probe-lr", self.probe_lr)


class Co2L(SingleNet):
    name = "co2l"
    title = "Co²L"
    paper = "Cha et al., ICCV 2021"
    Settings = Co2lSettings
    recipe = Recipe(
        epochs=500, batch_size=512, lr=0.5, momentum=0.9, weight_decay=1e-4, schedule="cosine", lr_warm_up=10
    )
    settings: Co2lSettings

    def __init__(self, settings: Co2lSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.project = self.new_projection(self.generator)
        self.net_before = self.new_net(Generator()).as_copy()
        """The net after the last task; before the first one it knows no class."""
        self.project_before = self.new_projection(Generator()).requires_grad_(False)
        self.buffer = Buffer(settings.buffer_size, self.generator, "balanced")

    def new_projection(self, generator: Generator) -> nn.Sequential:
        features = self.net.head.in_features
        first, second = (Head(features, out, generator) for out in (features, self.settings.projection))
        return nn.Sequential(first, nn.ReLU(), second)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        def pictures() -> ImageSet:
            return self.buffer.joined(task.train)

        fewer = max(1, round(LATER_EPOCHS * recipe.epochs))
        epochs = fewer if self.net_before.classes else recipe.epochs
        contrast = replace(recipe, epochs=epochs, lr_warm_up=min(recipe.lr_warm_up, LONGEST_WARM_UP * epochs))
        probe = Recipe(
            epochs=fewer,
            batch_size=recipe.batch_size,
            lr=self.settings.probe_lr,
            momentum=0.9,
            milestones=(0.6, 0.75, 0.9),
            lr_drop=0.2,
            label_smoothing=recipe.label_smoothing,
        )
        body = [value for name, value in self.net.named_parameters() if not name.startswith("head.")]
        head = list(self.net.head.parameters())
        return [
            Phase(contrast, "contrast", [*body, *self.project.parameters()], images=pictures),
            Phase(probe, "probe", head, self.probe_loss, begin=self.renew_head, images=pictures),
        ]

    def loss(self, batch: Batch) -> Tensor:
        images = torch.cat((batch.images, self.augment(batch.raw_images, self.generator)))
        labels = batch.labels.repeat(2)
        new = labels >= batch.task.classes.start
        projected = self.project(self.net.features(images))
        # As the authors', a mean over all views, though old ones have no loss of their own.
        weight = self.settings.temperature / UNIT_TEMPERATURE * new.float().mean()
        loss = weight * supervised_contrastive(projected, labels, self.settings.temperature, anchors=new)
        if not self.net_before.classes:
            return loss
        with torch.no_grad():
            before = self.project_before(self.net_before.features(images))
        temperatures = self.settings.current_temperature, self.settings.past_temperature
        return loss + self.settings.distillation_weight * relation_distillation(projected, before, *temperatures)

    def renew_head(self) -> None:
        fresh = Head(self.net.head.in_features, self.net.classes, self.generator)
        self.net.head.load_state_dict(fresh.state_dict())

    def probe_loss(self, batch: Batch) -> Tensor:
        self.net.eval()
        with torch.no_grad():
            features = self.net.features(batch.images)
        labels = torch.cat((batch.task.train.labels.to(self.device), self.buffer.labels))
        weights = class_weights(labels, self.net.classes)[batch.labels]
        return (weights * batch.cross_entropy(self.net.head(features), reduction="none")).mean()

    def end_task(self, task: Task) -> None:
        self.net_before.become(self.net)
        self.project_before.load_state_dict(self.project.state_dict())
        self.buffer.add(task.train.images.to(self.device), task.train.labels.to(self.device))


def relation_distillation(now: Tensor, before: Tensor, now_temperature: float, before_temperature: float) -> Tensor:
    """Cross-entropy between how alike each of N vectors is to each other one, now and before; [N, D] each.

    >>> views = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> relation_distillation(views, views, 1.0, 1.0)  # ln 2, and twice the entropy of (e, 1) / (e + 1), over three
    tensor(0.6192)
    """
    target = (cosines(before) / before_temperature).softmax(1)
    return cross_entropy(cosines(now) / now_temperature, target)


def cosines(vectors: Tensor) -> Tensor:
    """[N, N − 1]: cosines of each with each other one."""
    unit, count = normalize(vectors, dim=1), len(vectors)
    others = ~torch.eye(count, dtype=torch.bool, device=vectors.device)
    return (unit @ unit.T)[others].view(count, count - 1)


def class_weights(labels: Tensor, classes: int) -> Tensor:
    """Of each class, so that all that are there weigh as much as any other, and 1 on average over the pictures.

    >>> class_weights(torch.tensor([0, 0, 0, 2]), 3)
    tensor([0.6667,    inf, 2.0000])
    """
    counts = torch.bincount(labels, minlength=classes)
    return len(labels) / (counts.count_nonzero() * counts)
