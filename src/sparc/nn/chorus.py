"""A net like SPARC's in which frozen working memories go on to learn of later classes.

A working memory's weights never change once its task is over, but the classes of later tasks can be described in its
features while their pictures are at hand: a mean a class, and one covariance for all. So an old memory can tell its own
classes from all that came later, which its head has never seen. Features of patches, which nobody trains, are the same
for all tasks, and describe every class.

Shapes: B batch, K working memories, P pooled features of a memory, D of them after projection, C classes.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Self, cast

import numpy as np
import torch
from torch import Generator, Tensor, nn

from sparc.nn.gaussians import ClassGaussians
from sparc.nn.layout import BLOCKS
from sparc.nn.patches import FEATURES, PatchFeatures
from sparc.nn.readout import GRID, Readout, pooled
from sparc.nn.sparc import SparcNet, Unit, WorkingMemory

PATCH_SEED = 2**32
"""Of the projection of patches; those of working memories are numbered from 0."""


class Voice(nn.Module):
    """What is known in one kind of features of the classes from a certain one on, by linear discriminants.

    Features are brought to one scale and projected at random on fewer, so that the covariance stays small; the
    projection follows from a seed, which is kept, and is drawn whenever it is needed.
    """

    def __init__(self, features: int, kept: int, seed: int) -> None:
        super().__init__()
        self.shift: Tensor
        self.scale: Tensor
        self.seed: Tensor
        self.register_buffer("shift", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("seed", torch.tensor(seed))
        self.gaussians = ClassGaussians(min(kept, features))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Nothing: it stays on the processor, in double precision, whatever device the net is moved to."""
        return self

    @torch.no_grad()
    def add(self, features: Tensor, labels: Tensor) -> None:
        """Take in classes; labels count from the first that is known. The first pictures set the scale."""
        if not len(self.gaussians):
            self.shift.copy_(features.mean(0))
            deviation = features.std(0)
            # One that hardly varies now may do so later, and should not drown all others then.
            self.scale.copy_(1 / deviation.clamp_min(max(float(deviation.mean()) / 10, 1e-6)))
        self.gaussians.add(((features - self.shift) * self.scale).double() @ self.projection(), labels)

    def projection(self) -> Tensor:
        """The random one, [P, D], that follows from the seed."""
        features, kept = len(self.shift), self.gaussians.means.shape[1]
        if kept == features:
            return torch.eye(features, dtype=torch.float64)
        # Signs from a stream that stays the same in all versions, as torch's does not: later ones read the file too.
        words = np.random.Philox(key=int(self.seed)).random_raw(features * kept // 64 + 1)
        bits = np.unpackbits(words.astype("<u8").view(np.uint8))[: features * kept]
        projection: Tensor = torch.from_numpy(2.0 * bits - 1).view(features, kept) / features**0.5
        return projection

    @torch.no_grad()
    def discriminants(self) -> tuple[Tensor, Tensor]:
        """Weight [C, P] and bias [C] from pooled features to log likelihoods, but for what is common to all classes."""
        weight, bias = self.gaussians.discriminants()
        weight = weight @ self.projection().T * self.scale
        return weight.float(), (bias - weight @ self.shift.double()).float()

    @torch.no_grad()
    def is_sound(self) -> bool:
        """Whether the covariance is positive definite and the discriminants are finite."""
        _, failed = torch.linalg.cholesky_ex(self.gaussians.shrunk_covariance())
        return not failed and all(bool(part.isfinite().all()) for part in self.discriminants())


class ChorusNet(SparcNet):
    """Working memories, each with a voice in what is said of its own and of all later classes; and patches of pictures,
    with a voice in all.

    >>> net = ChorusNet(channels=1, image_size=(8, 8), width=0.5, patches=0)
    >>> for task in range(2):
    ...     memory = net.add_task(classes=2)
    ...     net.add_statistics([torch.rand(8, 192)] * (task + 1), torch.arange(8) % 2 + 2 * task)
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
        statistics: int = 256,
        mirror: bool = False,
        patches: int = 512,
    ) -> None:
        super().__init__(channels, image_size, width, depth, shared, generator)
        self.statistics = statistics
        self.mirror = mirror
        """Features are the mean over a picture and its mirror image."""
        self.voices = nn.ModuleList()
        """Of each working memory."""
        self.patches = PatchFeatures(channels, mirror) if patches else None
        self.patch_voice = Voice(FEATURES, patches, seed=PATCH_SEED) if patches else None

    def add_task(self, classes: int) -> WorkingMemory:
        memory = super().add_task(classes)
        if self.statistics:
            self.voices.append(Voice(pooled_features(self.units), self.statistics, seed=len(self.voices)))
        return memory

    def all_voices(self) -> list[Voice]:
        """Of each working memory, and of patches."""
        voices = [*self.voices] if self.patch_voice is None else [*self.voices, self.patch_voice]
        return cast(list[Voice], voices)

    def first_classes(self) -> list[int]:
        """The first class that each of all voices knows."""
        own = [sum(self.task_sizes[:task]) for task in range(len(self.voices))]
        return own if self.patch_voice is None else [*own, 0]

    def pooled(self, x: Tensor) -> list[Tensor]:
        """[B, P] of each working memory, and features of patches."""
        found = [self.pooled_in(memory, x) for memory in self.memories()]
        return found if self.patches is None else [*found, self.patches(x)]

    def pooled_in(self, memory: WorkingMemory, x: Tensor) -> Tensor:
        (features,) = pooled(memory.maps(x, self.semantic))
        if self.mirror:
            features = (features + pooled(memory.maps(x.flip(3), self.semantic))[0]) / 2
        return features

    def add_statistics(self, features: Iterable[Tensor], labels: Tensor) -> None:
        """Let every voice take in classes of the newest task, each in its own features of their pictures."""
        for voice, own, first in zip(self.all_voices(), features, self.first_classes(), strict=True):
            voice.add(own, labels - first)

    def keep_outputs(self, kept: Sequence[list[int]]) -> None:
        """Of each working memory, keep these outputs, in its head and in all that is known of its classes; one that
        has none left goes as well.
        """
        starts = accumulate(self.task_sizes[:-1], initial=0)
        outputs = [start + index for start, indices in zip(starts, kept, strict=True) for index in indices]
        for first, voice in zip(self.first_classes(), self.all_voices(), strict=True):
            voice.gaussians.keep([output - first for output in outputs if output >= first])
        for memory, indices in zip(self.memories(), kept, strict=True):
            if len(indices) < memory.head.out_features:
                memory.keep_outputs(indices)
        stay = [task for task, indices in enumerate(kept) if indices]
        self.working = nn.ModuleList(self.working[task] for task in stay)
        if self.statistics:
            self.voices = nn.ModuleList(self.voices[task] for task in stay)

    def count_statistics(self) -> int:
        """How many numbers describe classes, or patches; seeds do not."""
        parts = [*self.all_voices(), *([] if self.patches is None else [self.patches])]
        return sum(kept.numel() for part in parts for kept in part.state_dict().values() if kept.ndim)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout()(self.pooled(x))

    def readout(self) -> Readout:
        heads = [(memory.head.weight, memory.head.bias) for memory in self.memories()]
        voices = self.all_voices()
        heard = all(len(voice.gaussians) for voice in voices)  # which the newest is not before its task is over
        device = self.semantic.filters[0].device
        found = [voice.discriminants() for voice in voices] if heard else []
        return Readout(heads, [(weight.to(device), bias.to(device)) for weight, bias in found])


def pooled_features(units: Sequence[Unit]) -> int:
    """P: how many features a working memory of this layout has, once they are pooled."""
    filters = [unit.own + unit.shared for unit in units[2 * BLOCKS :: 2 * BLOCKS]]
    return filters[-1] + sum(GRID**2 * count for count in filters[-2:-1])
