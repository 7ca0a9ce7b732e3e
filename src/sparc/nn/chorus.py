"""A net like SPARC's in which frozen working memories go on to learn of later classes.

A working memory's weights never change once its task is over, but the classes of later tasks can be described in its
features while their pictures are at hand: a mean a class, and one covariance for all. So an old memory can tell its own
classes from all that came later, which its head has never seen.

Shapes: B batch, K working memories, P pooled features of a memory, D of them after projection, C classes.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Generator, Tensor, nn

from sparc.nn.gaussians import ClassGaussians
from sparc.nn.layout import BLOCKS
from sparc.nn.readout import GRID, Readout, pooled
from sparc.nn.sparc import SparcNet, WorkingMemory


class Voice(nn.Module):
    """What one working memory knows of its task's classes and of all later ones, by linear discriminants.

    Features are brought to one scale and projected at random on fewer, so that the covariance stays small; the
    projection follows from a seed and is not kept.
    """

    def __init__(self, features: int, kept: int, seed: int) -> None:
        super().__init__()
        self.shift: Tensor
        self.scale: Tensor
        self.projection: Tensor
        self.register_buffer("shift", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        drawn = torch.eye(features)
        if kept < features:
            drawn = torch.randn(features, kept, generator=Generator().manual_seed(seed)) / features**0.5
        self.register_buffer("projection", drawn, persistent=False)
        self.gaussians = ClassGaussians(drawn.shape[1])

    @torch.no_grad()
    def add(self, features: Tensor, labels: Tensor) -> None:
        """Take in classes; labels count from the memory's own first class. The first ones set the scale."""
        if not len(self.gaussians):
            self.shift.copy_(features.mean(0))
            self.scale.copy_(1 / features.std(0).clamp_min(1e-6))
        self.gaussians.add((features - self.shift) * self.scale @ self.projection, labels)

    @torch.no_grad()
    def discriminants(self) -> tuple[Tensor, Tensor]:
        """Weight [C, P] and bias [C] from pooled features to log likelihoods, but for what is common to all classes."""
        weight, bias = self.gaussians.discriminants()
        weight = weight @ self.projection.T * self.scale
        return weight, bias - weight @ self.shift


class ChorusNet(SparcNet):
    """Working memories, each with a voice in what is said of its own and of all later classes.

    >>> net = ChorusNet(channels=1, image_size=(8, 8), width=0.5)
    >>> for task in range(2):
    ...     memory = net.add_task(classes=2)
    ...     net.listen([torch.rand(8, 192)] * (task + 1), torch.arange(8) % 2 + 2 * task)
    >>> net.eval()(torch.zeros(7, 1, 8, 8)).shape
    torch.Size([7, 4])
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 0.5,
        depth: int | None = None,
        shared: float = 0.5,
        generator: Generator | None = None,
        statistics: int = 384,
        mirror: bool = False,
    ) -> None:
        super().__init__(channels, image_size, width, depth, shared, generator)
        self.statistics = statistics
        self.mirror = mirror
        """Features are the mean over a picture and its mirror image."""
        self.voices = nn.ModuleList()

    def add_task(self, classes: int) -> WorkingMemory:
        memory = super().add_task(classes)
        if not self.statistics:
            return memory
        filters = [unit.own + unit.shared for unit in self.units[2 * BLOCKS :: 2 * BLOCKS]]
        features = filters[-1] + sum(GRID**2 * count for count in filters[-2:-1])
        self.voices.append(Voice(features, self.statistics, seed=len(self.voices)).to(memory.head.weight.device))
        return memory

    def all_voices(self) -> list[Voice]:
        return cast(list[Voice], list(self.voices))

    def pooled(self, x: Tensor) -> list[Tensor]:
        """[B, P] of each working memory."""
        return [self.pooled_in(memory, x) for memory in self.memories()]

    def pooled_in(self, memory: WorkingMemory, x: Tensor) -> Tensor:
        (features,) = pooled(memory.maps(x, self.semantic))
        if self.mirror:
            features = (features + pooled(memory.maps(x.flip(3), self.semantic))[0]) / 2
        return features

    def listen(self, features: Sequence[Tensor], labels: Tensor) -> None:
        """Let every working memory take in classes of the newest task, in its own features of their pictures."""
        first = 0
        for voice, own, classes in zip(self.all_voices(), features, self.task_sizes, strict=True):
            voice.add(own, labels - first)
            first += classes

    def forward(self, x: Tensor) -> Tensor:
        return self.readout()(self.pooled(x))

    def readout(self) -> Readout:
        heads = [(memory.head.weight, memory.head.bias) for memory in self.memories()]
        voices = self.all_voices()
        heard = all(len(voice.gaussians) for voice in voices)  # which the newest is not before its task is over
        return Readout(heads, [voice.discriminants() for voice in voices] if heard else [])
