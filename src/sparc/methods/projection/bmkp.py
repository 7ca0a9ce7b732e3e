"""BMKP: a net learns freely, and what it has learned is kept as coefficients in bases that all tasks share.

Sun et al., "Decoupling Learning and Remembering: a Bilevel Memory Framework with Knowledge Projection for
Task-Incremental Learning", CVPR 2023. The working memory is a ResNet. From the second task on it learns with a penalty
on what of its filters lies outside the bases. Then each layer's basis is extended until it holds enough of the energy
of what the layer puts out, the filters W are projected on its span, and trained on within it. The long-term memory
keeps of each task the coefficients A of W = BᵀA, where the basis B has a direction a row, and batch norm and a head of
the task's own, so the task must be known at test time. Old tasks' coefficients belong to the first rows of a basis,
which new rows do not change: old answers stay as they are to the bit.

Training A by gradient descent is the same as training W with gradients that are projected on the span, as rows of B are
orthonormal; so there is no second set of parameters. In the authors' code later tasks train neither their batch norms
nor their part of the head, and the working memory goes on from where it was before the projection; here they are
trained, and it goes on from what has been kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sparc.data.stream import Task
from sparc.errors import check_not_negative
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.bases import BasesSettings, NetWithBases, check_energy, projected
from sparc.methods.recipe import Recipe, check_plain_steps
from sparc.nn.functions import pixel_rows
from sparc.nn.resizable_buffers import TensorList
from sparc.nn.resnet import Conv

NORM_PARTS = ("weight", "bias", "running_mean", "running_var")


@dataclass(frozen=True)
class BmkpSettings(BasesSettings):
    width: float = 20 / 64
    """Filters of the first layer, as a multiple of 64."""
    samples: int = 500
    """Pictures of each task that show in which space a layer's vectors lie."""
    lam: float = 1.0
    """λ: weight of the penalty on what lies outside the bases."""
    first_energy: float = 0.95
    """Share of the energy of a layer's outputs that its basis holds after the first task."""
    energy: float = 0.96
    """Share of the energy of a layer's outputs that its basis holds after each later task."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--lam", self.lam)
        check_energy("--first-energy", self.first_energy)
        check_energy("--energy", self.energy)


class LongTermMemory(nn.ModuleList):
    """A list of tensors for each task; lists are added while they are loaded."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def add(self, tensors: Sequence[Tensor]) -> None:
        self.append(TensorList(self.count))
        self.of(-1).set(tensors)

    def of(self, task: int) -> TensorList:
        return cast(TensorList, self[task])

    def get_extra_state(self) -> Tensor:
        return torch.tensor(len(self))

    def set_extra_state(self, state: Tensor) -> None:
        while len(self) < int(state):
            self.append(TensorList(self.count))


class BMKP(NetWithBases):
    name = "bmkp"
    title = "BMKP"
    paper = "Sun et al., CVPR 2023"
    Settings = BmkpSettings
    frozen_parts = ("heads", "memory")
    recipe = Recipe(epochs=100, batch_size=128, lr=0.05, milestones=(0.45, 0.9))

    def __init__(self, settings: BmkpSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.lam, self.first_energy, self.energy = settings.lam, settings.first_energy, settings.energy
        self.memory = LongTermMemory(len(self.convs()) + len(self.norms()))
        """Of each task the coefficients of every convolution, and all of every batch norm."""
        self.within: Tensor
        self.register_buffer("within", torch.tensor(False))
        """Whether the task at hand has got to where it is trained within the bases' spans."""

    def vector_size(self, conv: Conv) -> int:
        return conv.out_channels

    def vectors(self, conv: Conv, inputs: Tensor, outputs: Tensor) -> Tensor:
        return pixel_rows(outputs)

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.within.fill_(False)
        for norm in self.norms().values():
            norm.reset_parameters()

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        check_plain_steps(recipe, self.name)
        return [
            Phase(recipe, loss=self.free_loss, end=partial(self.project, task)),
            Phase(recipe, "retrain"),
        ]

    def free_loss(self, batch: Batch) -> Tensor:
        loss = self.loss(batch)
        return loss + self.lam * self.penalty() if len(self.memory) else loss

    def penalty(self) -> Tensor:
        """Summed over layers: the trace of BᵀB + RRᵀ over the sum of all its numbers, where R is what the span lacks of
        the filters.

        So little should lie outside, and that in few directions.
        """
        terms = []
        for conv, basis in zip(self.convs().values(), self.bases, strict=True):
            filters = conv.weight.flatten(1)
            coefficients, ones = basis @ filters, basis.sum(1)
            outside = (filters.square().sum() - coefficients.square().sum()).clamp_min(0)
            sums = filters.sum(0) - (ones[:, None] * coefficients).sum(0)
            terms.append((len(basis) + outside) / (ones.square().sum() + sums.square().sum()))
        return torch.stack(terms).sum()

    @torch.no_grad()
    def project(self, task: Task) -> None:
        """Extend the bases, and leave of the filters what lies within their spans."""
        self.extend_bases(task, self.energy if len(self.memory) else self.first_energy)
        for conv, basis in zip(self.convs().values(), self.bases, strict=True):
            conv.weight.copy_(within_span(conv.weight, basis))
        self.within.fill_(True)

    @torch.no_grad()
    def before_step(self) -> None:
        if self.within:
            for conv, basis in zip(self.convs().values(), self.bases, strict=True):
                assert conv.weight.grad is not None
                conv.weight.grad.copy_(within_span(conv.weight.grad, basis))

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        self.zero_grad()
        convs = zip(self.convs().values(), self.bases, strict=True)
        coefficients = [basis @ conv.weight.flatten(1) for conv, basis in convs]
        norms = [torch.stack([getattr(norm, part) for part in NORM_PARTS]) for norm in self.norms().values()]
        self.memory.add([*coefficients, *norms])

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        head = self.heads.of(task)
        weights = {**self.recalled(task), "head.weight": head.weight, "head.bias": head.bias}
        logits: Tensor = functional_call(self.net, weights, (images,))
        return logits

    def recalled(self, task: int) -> dict[str, Tensor]:
        """A task's filters and batch norms, by their names in the net."""
        convs, kept = self.convs(), list(self.memory.of(task))
        filters = {
            f"{name}.weight": (basis[: len(coefficients)].T @ coefficients).view_as(conv.weight)
            for (name, conv), basis, coefficients in zip(convs.items(), self.bases, kept[: len(convs)], strict=True)
        }
        norms = {
            f"{name}.{part}": value
            for name, values in zip(self.norms(), kept[len(convs) :], strict=True)
            for part, value in zip(NORM_PARTS, values, strict=True)
        }
        return {**filters, **norms}


def within_span(filters: Tensor, basis: Tensor) -> Tensor:
    """What a basis of outputs has of filters, or of their gradients."""
    return projected(filters.flatten(1).T, basis).T.reshape(filters.shape)
