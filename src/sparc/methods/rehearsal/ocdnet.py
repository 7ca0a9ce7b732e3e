"""OCDNet: a teacher, a moving average of the net, passes on its logits and what it finds alike, and answers.

Li et al., "Learning from Students: Online Contrastive Distillation Network for General Continual Learning", IJCAI
2022. On replayed pictures the net's logits are drawn to the teacher's, the more the surer that is of the true label,
and its projected features to those that the teacher has for the same class. Beside that the net learns by contrast,
and to tell turns apart: from a second view of new and old pictures, two thirds of their area at a random place, made as
large as before and turned by a random number of quarters.

As in the authors' code, the head has room for all classes that will ever come, where their number is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import affine_grid, grid_sample, linear, normalize

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive, check_share
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.contrastive import supervised_contrastive
from sparc.methods.parts.ema import AverageSettings, MovingAverage
from sparc.methods.parts.rehearsal import Rehearsal
from sparc.methods.parts.rotations import TURNS, rotations
from sparc.methods.parts.single import WholeHead
from sparc.methods.recipe import Recipe
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head
from sparc.nn.resnet import Conv

PROJECTED = 64
"""Features that are compared."""
AREA = 2 / 3
"""Of a picture, in the second view."""


@dataclass(frozen=True)
class OcdNetSettings(AverageSettings):
    replay_weight: float = 0.5
    """Weight of the replayed labels' cross-entropy."""
    consistency_weight: float = 0.1
    """Weight of the squared error between replayed pictures' logits and the teacher's."""
    distillation_weight: float = 0.1
    """Weight of the contrast between the net's and the teacher's features of replayed pictures."""
    contrast_weight: float = 0.3
    """Weight of the contrast between both views of new and old pictures."""
    rotation_weight: float = 0.3
    """Weight of telling by how many quarters the second view is turned."""
    temperature: float = 0.07
    """By which similarities are divided where features are compared."""
    rate: float = 0.1
    """Share of the steps after which the teacher follows; the authors have .7 for a buffer of 5120 pictures."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--replay-weight", self.replay_weight)
        check_not_negative("--consistency-weight", self.consistency_weight)
        check_not_negative("--distillation-weight", self.distillation_weight)
        check_not_negative("--contrast-weight", self.contrast_weight)
        check_not_negative("--rotation-weight", self.rotation_weight)
        check_positive("--temperature", self.temperature)
        check_share("--rate", self.rate)


class OCDNet(WholeHead, Rehearsal):
    name = "ocdnet"
    title = "OCDNet"
    paper = "Li et al., IJCAI 2022"
    Settings = OcdNetSettings
    recipe = Recipe(lr=0.1)
    settings: OcdNetSettings

    def __init__(self, settings: OcdNetSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.teacher = MovingAverage(self.new_net(Generator()), self.net, settings.rate, settings.alpha)

    def new_net(self, generator: Generator) -> GrowingNet:
        net = super().new_net(generator)
        features = net.head.in_features
        net.head = HeadWithoutBias(features, 0, generator)
        net.add_module("rotation", perceptron(features, TURNS, generator))
        net.add_module("invariance", perceptron(features, PROJECTED, generator))
        return net

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.teacher.grow(self.net)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        return [Phase(recipe, begin=partial(self.teacher.pace, task, recipe))]

    def loss(self, batch: Batch) -> Tensor:
        weights = self.settings
        images, labels = batch.images, batch.labels
        logits, _, projected = answers(self.net, images)
        loss = batch.cross_entropy(logits)
        if len(self.buffer):
            old_images, old_labels, _ = self.replay()
            logits, _, old_projected = answers(self.net, old_images)
            with torch.no_grad():
                taught, _, taught_projected = answers(self.teacher.net, old_images)
            alike = contrast(taught_projected, old_projected, old_labels, weights.temperature)
            loss = loss + weights.replay_weight * batch.cross_entropy(logits, old_labels)
            loss = loss + weights.consistency_weight * consistency(logits, taught, old_labels)
            loss = loss + weights.distillation_weight * alike
            images, labels = torch.cat((images, old_images)), torch.cat((labels, old_labels))
            projected = torch.cat((projected, old_projected))
        self.buffer.add(batch.raw_images, batch.labels)
        view, turns = second_view(images, self.generator)
        _, said, other = answers(self.net, view)
        apart = supervised_contrastive(torch.cat((projected, other)), labels.repeat(2), weights.temperature)
        return loss + weights.contrast_weight * apart + weights.rotation_weight * batch.cross_entropy(said, turns)

    def after_step(self) -> None:
        self.teacher.follow(self.net, self.generator)

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.teacher(images)
        return logits[:, : int(self.seen_classes)]

    def one_pass(self, images: Tensor) -> Tensor:
        return torch.cat(answers(self.net, images), 1)


class HeadWithoutBias(Head):
    """The bias takes no part."""

    def __init__(self, features: int, classes: int, generator: Generator) -> None:
        super().__init__(features, classes, generator)
        self.bias.data.zero_()

    def forward(self, features: Tensor) -> Tensor:
        return linear(features, self.weight)


def perceptron(features: int, outputs: int, generator: Generator) -> nn.Sequential:
    """With two hidden layers as wide as what it sees: convolutions of maps that have one pixel."""
    hidden = [(Conv(features, features, 1, 1, generator), nn.BatchNorm2d(features), nn.ReLU()) for _ in range(2)]
    layers = [layer for layers in hidden for layer in layers]
    return nn.Sequential(nn.Unflatten(1, (features, 1, 1)), *layers, nn.Flatten(), Head(features, outputs, generator))


def answers(net: GrowingNet, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of all three heads: logits of classes, logits of turns, projected features."""
    features = net.features(images)
    return net.head(features), net.get_submodule("rotation")(features), net.get_submodule("invariance")(features)


def second_view(images: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """A part of each picture, made as large as before and turned; by how many quarters, each as often as any other."""
    count, side = len(images), AREA**0.5
    window = torch.zeros(count, 2, 3)
    window[:, [0, 1], [0, 1]] = side
    window[:, :, 2] = (1 - side) * (2 * torch.rand(count, 2, generator=generator) - 1)
    turns = (torch.randperm(count, generator=generator) % TURNS).to(images.device)
    grid = affine_grid(window.to(images.device), list(images.shape), align_corners=False)
    parts = grid_sample(images, grid, padding_mode="border", align_corners=False)
    return rotations(parts)[TURNS * torch.arange(count, device=images.device) + turns], turns


def consistency(logits: Tensor, taught: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error, each picture weighted by the share that the teacher gives to its label."""
    sure = taught.softmax(1).gather(1, labels[:, None])[:, 0]
    return (sure * (logits - taught).square().mean(1)).mean()


def contrast(anchors: Tensor, others: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Each anchor is to find those of its class, itself as well, among the others, two [N, D] of the same pictures."""
    similarity = normalize(anchors, dim=1) @ normalize(others, dim=1).T / temperature
    alike = labels[:, None] == labels
    return -((similarity.log_softmax(1) * alike).sum(1) / alike.sum(1)).mean()
