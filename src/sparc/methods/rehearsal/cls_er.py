"""CLS-ER: two moving averages of the net, one that follows quickly and one that follows slowly, remember for it.

Arani, Sarfraz and Zonooz, "Learning Fast, Learning Slow: A General Continual Learning Method based on Complementary
Learning System", ICLR 2022. New and replayed pictures go through the net as one batch, and replayed ones by themselves
too: there the net's logits are drawn to those of the average, plastic or stable, that is surer of the true label. The
stable one answers. Weight and rates are the authors' for CIFAR-10 and 200 pictures: they give none for CIFAR-100.

As in the authors' code, the head has room for all classes that will ever come, where their number is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import mse_loss

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_share
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.ema import AverageSettings, MovingAverage
from sparc.methods.parts.rehearsal import Rehearsal
from sparc.methods.parts.single import WholeHead
from sparc.methods.recipe import Recipe


@dataclass(frozen=True)
class ClsErSettings(AverageSettings):
    reg_weight: float = 0.15
    """Weight of the squared error between replayed pictures' logits and those of the surer average."""
    plastic_rate: float = 0.3
    """Share of the steps after which the plastic average follows."""
    stable_rate: float = 0.1
    """Share of the steps after which the stable average follows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--reg-weight", self.reg_weight)
        check_share("--plastic-rate", self.plastic_rate)
        check_share("--stable-rate", self.stable_rate)


class CLSER(WholeHead, Rehearsal):
    name = "cls-er"
    title = "CLS-ER"
    paper = "Arani et al., ICLR 2022"
    Settings = ClsErSettings
    recipe = Recipe(lr=0.1)

    def __init__(self, settings: ClsErSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.reg_weight = settings.reg_weight
        self.plastic, self.stable = (
            MovingAverage(self.new_net(Generator()), self.net, rate, settings.alpha)
            for rate in (settings.plastic_rate, settings.stable_rate)
        )

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.plastic.grow(self.net)
        self.stable.grow(self.net)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        def pace() -> None:
            self.plastic.pace(task, recipe)
            self.stable.pace(task, recipe)

        return [Phase(recipe, begin=pace)]

    def loss(self, batch: Batch) -> Tensor:
        images, labels = batch.images, batch.labels
        if not len(self.buffer):
            self.buffer.add(batch.raw_images, labels)
            return batch.cross_entropy(self.net(images))
        old_images, old_labels, _ = self.replay()
        target = surer(self.plastic(old_images), self.stable(old_images), old_labels)
        kept = mse_loss(self.net(old_images), target)
        logits = self.net(torch.cat((images, old_images)))
        self.buffer.add(batch.raw_images, labels)
        return batch.cross_entropy(logits, torch.cat((labels, old_labels))) + self.reg_weight * kept

    def after_step(self) -> None:
        self.plastic.follow(self.net, self.generator)
        self.stable.follow(self.net, self.generator)

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.stable(images)
        return logits[:, : int(self.seen_classes)]


def surer(plastic: Tensor, stable: Tensor, labels: Tensor) -> Tensor:
    """For each picture the logits, of two, that give its label the larger share.

    >>> surer(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]))
    tensor([[3., 1.],
            [2., 1.]])
    """
    of_plastic, of_stable = (logits.softmax(1).gather(1, labels[:, None]) for logits in (plastic, stable))
    return torch.where(of_stable > of_plastic, stable, plastic)
