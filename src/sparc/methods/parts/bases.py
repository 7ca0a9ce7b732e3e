"""What methods share that know the spaces in which the vectors of a net's layers lie.

A basis is orthonormal, a direction a row. It is extended task by task, by the singular vectors of what it does not hold
yet, until it holds enough; what is in it stays as it is, to the bit.

Shapes: N vectors of D numbers each, K directions.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize, unfold

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.errors import InputError, check_positive
from sparc.methods.parts.task_heads import TaskHeads
from sparc.methods.settings import NetSettings
from sparc.nn.head import Heads
from sparc.nn.resizable_buffers import TensorList
from sparc.nn.resnet import Conv, ResNet

NEGLIGIBLE = 1e-10
"""A direction with less than this share of all energy is there by rounding only."""


class Bases(TensorList):
    """One basis a layer, [K, D].

    >>> bases = Bases([2])
    >>> bases.extend(0, torch.tensor([[3.0, 0.0], [0.0, -1.0]]), energy=0.9)
    >>> [tuple(basis.shape) for basis in bases]
    [(1, 2)]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__(len(sizes))
        self.set([torch.zeros(0, size) for size in sizes])

    @torch.no_grad()
    def extend(self, index: int, vectors: Tensor, energy: float) -> None:
        """Make a layer's basis hold this share of the energy, the sum of all squares, of vectors, [N, D].

        As few directions are added as can be.
        """
        basis: Tensor = getattr(self, str(index))
        vectors = vectors.double()
        rest = vectors - projected(vectors, basis.double())
        total = vectors.square().sum()
        missing = rest.square().sum() - (1 - energy) * total
        if missing <= 0:
            return
        energies, directions = principal_directions(rest)
        found = int((energies > NEGLIGIBLE * total).sum())
        enough = int((energies.cumsum(0) < missing).sum()) + 1
        added = directions[: min(found, enough, basis.shape[1] - len(basis))]
        setattr(self, str(index), torch.cat((basis, added.to(basis))))


def projected(vectors: Tensor, basis: Tensor) -> Tensor:
    """[N, D]: the part of vectors that lies within a basis' span."""
    return vectors @ basis.T @ basis


def principal_directions(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """[R] and [R, D]: energies, the largest first, and directions; squared singular values, and singular vectors.

    From the smaller one of the two matrices of products, which is faster by far.
    """
    few = len(vectors) < vectors.shape[1]
    energies, sides = torch.linalg.eigh(vectors @ vectors.T if few else vectors.T @ vectors)
    sides = sides.T.flip(0)
    return energies.flip(0), normalize(sides @ vectors, dim=1) if few else sides


def patches(conv: Conv, inputs: Tensor) -> Tensor:
    """[N, D]: what a convolution's filters are multiplied with, a vector for each pixel of what comes out."""
    size, padding, stride = conv.kernel_size[0], conv.kernel_size[0] // 2, conv.stride[0]
    return unfold(inputs, size, padding=padding, stride=stride).mT.flatten(0, 1)


@dataclass(frozen=True)
class BasesSettings(NetSettings):
    samples: int = 125
    """Pictures of each task that show in which space a layer's vectors lie."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--samples", self.samples)


def check_energy(flag: str, value: float) -> None:
    if not 0 < value <= 1:
        raise InputError(f"{flag} {value:g} must be above 0 and at most 1")


class NetWithBases(TaskHeads):
    """One ResNet with a head a task, and a basis for each of its convolutions; the task is known at test time."""

    keeps_by_pictures = True

    def __init__(
        self, settings: BasesSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.samples = settings.samples
        self.net = ResNet(channels, image_size, settings.width, settings.depth, generator)
        self.heads = Heads(self.net.head.in_features, generator)
        self.bases = Bases([self.vector_size(conv) for conv in self.convs().values()])

    @abstractmethod
    def vector_size(self, conv: Conv) -> int:
        """How many numbers the vectors have that a convolution's basis is for."""

    @abstractmethod
    def vectors(self, conv: Conv, inputs: Tensor, outputs: Tensor) -> Tensor:
        """[N, D]: those vectors, from the maps that go in and come out."""

    def convs(self) -> dict[str, Conv]:
        """By their names, in the order of their bases."""
        return {name: module for name, module in self.net.named_modules() if isinstance(module, Conv)}

    def norms(self) -> dict[str, nn.BatchNorm2d]:
        return {name: module for name, module in self.net.named_modules() if isinstance(module, nn.BatchNorm2d)}

    @torch.no_grad()
    def extend_bases(self, task: Task, energy: float) -> None:
        """By what some of the task's pictures leave in the net, which is in eval mode afterwards."""
        self.eval()
        chosen = torch.randperm(len(task.train), generator=self.generator)[: self.samples]

        def visit(index: int, conv: nn.Module, inputs: tuple[Tensor], outputs: Tensor) -> None:
            assert isinstance(conv, Conv)
            self.bases.extend(index, self.vectors(conv, inputs[0], outputs), energy)

        # Layer by layer while the pictures pass, as all layers' vectors at once would take much memory.
        convs = enumerate(self.convs().values())
        handles = [conv.register_forward_hook(partial(visit, index)) for index, conv in convs]
        try:
            self.net.features(self.augment.normalize(task.train.images[chosen].to(self.device)))
        finally:
            for handle in handles:
                handle.remove()

    def begin_task(self, task: Task) -> None:
        self.heads.add(len(task.classes))
