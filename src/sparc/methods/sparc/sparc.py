"""SPARC: a tiny frozen sub-network a task, half of whose point-wise filters all tasks share.

Bhat, Niesten, Arani and Zonooz, "Continual Learning Beyond Experience Rehearsal and Full Model Surrogates", ICML 2025.
No picture of an old task is kept and no copy of the model is made. The paper names no schedule of the learning rate:
one that falls along a cosine brings its accuracy, a constant one less.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Generator, Tensor, nn

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.methods.method import Batch
from sparc.methods.parts.prepared import Prepared
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.settings import SparcSettings, WorkingSettings
from sparc.nn.head import Head
from sparc.nn.inference import InferenceNet
from sparc.nn.sparc import SparcNet

WORTH_SPLITTING = 16_384
"""Values of a picture's first map: of smaller ones two halves of a batch take as long as all of it."""


class SPARC(Prepared[InferenceNet]):
    name = "sparc"
    title = "SPARC"
    paper = "Bhat et al., ICML 2025"
    Settings: ClassVar[type[WorkingSettings]] = SparcSettings
    recipe = Recipe(lr=5e-3, optimizer="adam", schedule="cosine")
    frozen_parts = ("net.working",)
    notes = frozenset({"head_norms"})

    def __init__(
        self, settings: SparcSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.settings = settings
        self.image_size = image_size
        self.net = self.new_net(settings, channels, image_size)
        self.maxima: Tensor
        self.register_buffer("maxima", torch.empty(0))
        """A: the largest logit of each training sample in the last epoch."""
        self.head_norms: Tensor
        self.register_buffer("head_norms", torch.empty(0, 2))
        """Of each task's head, before and after re-normalization."""

    def new_net(self, settings: SparcSettings, channels: int, image_size: tuple[int, int]) -> SparcNet:
        return SparcNet(channels, image_size, settings.width, settings.depth, settings.shared, self.generator)

    def begin_task(self, task: Task) -> None:
        self.net.add_task(len(task.classes))

    def loss(self, batch: Batch) -> Tensor:
        logits = self.one_pass(batch.images)
        if batch.last_epoch:
            self.maxima = torch.cat((self.maxima, logits.detach().amax(1)))
        return batch.cross_entropy(logits, batch.labels - batch.task.classes.start)

    @property
    def splits(self) -> bool:
        stem = self.net.units[0]
        return math.prod(self.image_size) * (stem.own + stem.shared) >= WORTH_SPLITTING

    def twin(self) -> Self:
        twin = super().twin()
        twin.maxima = twin.maxima[:0]
        return twin

    def join(self, twins: Sequence[Self]) -> None:
        self.maxima = torch.cat((self.maxima, *(twin.maxima for twin in twins)))
        for twin in twins:
            twin.maxima = twin.maxima[:0]

    def end_task(self, task: Task) -> None:
        memory = self.net.memories()[-1]
        before = head_norm(memory.head)
        self.balance(memory.head)
        self.head_norms = torch.cat((self.head_norms, torch.stack((before, head_norm(memory.head)))[None]))
        if len(self.net.working) > 1:
            self.net.semantic.consolidate(memory, self.settings.alpha)
        memory.freeze()
        self.zero_grad()
        self.maxima = self.maxima[:0]

    def balance(self, head: Head) -> None:
        """See to it that the new head does not shout down the others, nor they it."""
        if self.settings.kappa and len(self.maxima):
            renormalize(head, self.maxima, self.settings.kappa)

    def set_trainable(self) -> None:
        """The semantic memory learns with the first working memory, and by consolidation alone ever after."""
        self.net.semantic.requires_grad_(len(self.net.working) == 1)

    def logits(self, images: Tensor) -> Tensor:
        if self.training:
            logits: Tensor = self.net(images)
            return logits
        return self.ready()(images)

    def prepare(self) -> InferenceNet:
        """The net as it answers fastest."""
        return InferenceNet.of(self.net)

    def logits_by_part(self, images: Tensor) -> dict[str, Tensor]:
        if not self.settings.kappa:  # nor with weight alignment, which scales heads otherwise
            return {}
        net, scales = self.ready(), self.head_norms[:, 0] / self.head_norms[:, 1]
        heads = [
            replace(head, weight=head.weight * scale, bias=head.bias * scale)
            for head, scale in zip(net.readout.heads, scales, strict=True)
        ]
        return {"without re-normalization": replace(net.readout, heads=heads)(net.pooled(images))}

    def one_pass(self, images: Tensor) -> Tensor:
        return self.net.task_logits(images, len(self.net.working) - 1)

    def parameters_by_owner(self) -> dict[str, int]:
        counts = self.net.parameter_counts()
        return {"working memories": sum(counts.tasks), "semantic memory": counts.semantic, "heads": sum(counts.heads)}

    def diagnostics(self) -> dict[str, list[float]]:
        before, after = self.head_norms.T.tolist()
        return {"head norm before": before, "head norm after": after}


@torch.no_grad()
def head_norm(head: nn.Linear) -> Tensor:
    """How long a class's weight vector is, in the mean over the head's classes."""
    norm: Tensor = head.weight.norm(dim=1).mean()
    return norm


@torch.no_grad()
def renormalize(head: nn.Linear, maxima: Tensor, kappa: float) -> None:
    """Scale a head so that its largest usual activation is κ, and no task shouts down the others."""
    eta = max_without_outliers(maxima)
    # A head that never answers above 0 has no scale to bring to κ, and a negative one would turn it upside down.
    if eta > 0:
        head.weight.mul_(kappa / eta)
        head.bias.mul_(kappa / eta)


def max_without_outliers(maxima: Tensor) -> float:
    """η: the largest of A that is no outlier, lying at most one inter-quartile range above the third quartile.

    >>> max_without_outliers(torch.tensor([1.0, 2.0, 3.0, 4.0, 100.0]))
    4.0
    """
    values = maxima.cpu().double().numpy()  # torch's own quantile takes 16 million values at the most
    first, third = np.quantile(values, [0.25, 0.75])
    return float(values[values <= third + (third - first)].max())
