"""NISPA: a sparse net is rewired until a task lives in few of its units, which are then frozen; others learn the next.

Gurbuz and Dovrolis, "NISPA: Neuro-Inspired Stability-Plasticity Adaptation for Continual Learning in Sparse Networks",
ICML 2022. A task is trained in short phases, each with a new optimizer. After each, the most active units of every
layer, up to a share of the layer's activity that falls from phase to phase, are candidates for stable ones, beside
those that older tasks have left. Their connections from all other units are dropped, and as many are grown at random
into those others, so that the net stays as sparse. When accuracy on held-out pictures falls too far, the phase before
counts. Then what candidates read is frozen, and the rest is drawn anew. The net and the recipe are the authors'.

The epochs of the recipe are the most that a task takes. The share falls by a cosine, and 125 epochs make 25 phases of
which the last one has the authors' share, ½ (1 + cos(24 π / 30)); with fewer phases the steps are larger. The end of a
phase counts, where the authors take its best epoch. In the head all outputs are stable, so new connections come from
stable units there; the authors' lead to outputs of later tasks. Where there is no room, connections are lost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.errors import InputError, check_not_negative
from sparc.methods.method import Phase
from sparc.methods.parts.bit_masks import BitMasks, pack
from sparc.methods.parts.stable_units import PlainConvSettings, StableUnits, like
from sparc.methods.recipe import Recipe
from sparc.nn.resizable_buffers import TensorList

STEPS = 30 / 25
"""The authors' cosine would come to 0 after this many times as many phases as there are at most."""


@dataclass(frozen=True)
class NispaSettings(PlainConvSettings):
    sparsity: float = 0.9
    """Share of the possible connections that are not there, in all layers but the first."""
    phase_epochs: int = 5
    """Epochs between two choices of stable units; fewer where a task would not have two phases."""
    margin: float = 2.5
    """By how much accuracy may fall below its best, in percentage points."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.sparsity < 1:
            raise InputError(f"--sparsity {self.sparsity:g} must be at least 0 and below 1")
        if self.phase_epochs < 1:
            raise InputError(f"--phase-epochs {self.phase_epochs} learns nothing: give at least 1")
        check_not_negative("--margin", self.margin)


class NISPA(StableUnits):
    name = "nispa"
    title = "NISPA"
    paper = "Gurbuz and Dovrolis, ICML 2022"
    Settings = NispaSettings
    recipe = Recipe(epochs=125, batch_size=64, lr=2e-3, optimizer="adam")

    def __init__(self, settings: NispaSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.settings = settings
        first, *others = (per_link(layer.weight) for layer in self.net.layers)
        links = [torch.ones_like(first, dtype=torch.bool), *map(self.some_links, others)]
        for layer, mask in zip(self.net.layers, links, strict=True):
            layer.weight.data.masked_fill_(like(~mask, layer.weight), 0)
        count = len(links)
        self.connections = BitMasks(count + 1)
        """One set: what each layer's units read, and the current task's head."""
        self.connections.add([*links, links[0][:0]])
        self.candidates = TensorList(count)
        """Units that are to be stable, while a task is learned; those of older tasks are among them."""
        self.before = TensorList(2 * count + 2 + (count + 1) + count)
        """`whole`, as the phase before has left it."""
        self.accuracies: Tensor
        self.register_buffer("accuracies", torch.empty(0, dtype=torch.float64))

    def some_links(self, possible: Tensor) -> Tensor:
        """At random, as many as the sparsity leaves."""
        every = torch.ones_like(possible, dtype=torch.bool)
        return some_of(every, max(1, round((1 - self.settings.sparsity) * every.numel())), self.generator)

    def connected(self) -> list[Tensor]:
        return self.connections.of(0, [per_link(weight) for weight in self.weights()])

    def whole(self) -> list[Tensor]:
        """All that a phase changes."""
        parameters = [*self.held(), self.heads.of(-1).bias]
        return [*(each.data for each in parameters), *self.connections.packed(0), *self.candidates]

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        head = self.heads.of(-1).weight.data
        mask = self.some_links(head)
        head.masked_fill_(~mask, 0)
        *others, _ = self.connections.packed(0)
        self.connections.packed(0).set([*others, pack(mask)])
        self.candidates.set([units.clone() for units in self.stable])
        self.accuracies = self.accuracies[:0]

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        length = max(1, min(self.settings.phase_epochs, recipe.epochs // 2))
        most, over = recipe.epochs // length, len(self.accuracies)
        return [
            Phase(
                replace(recipe, epochs=length),
                f"phase {number + 1}",
                end=partial(self.judge, task, most),
                images=lambda: self.split(task)[0],
            )
            for number in range(over if self.has_fallen() or over == most else over + 1)
        ]

    def has_fallen(self) -> bool:
        """Too far below the best, which is not asked of the first two phases."""
        *earlier, last = self.accuracies.tolist() or [0.0]
        return len(earlier) >= 2 and last < max(earlier) - self.settings.margin

    def judge(self, task: Task, most: int) -> None:
        """At the end of a phase: go back to the one before, or choose units for the next."""
        learned_from, judged_by = self.split(task)
        self.accuracies = torch.cat((self.accuracies, self.accuracies.new_tensor([self.accuracy(judged_by, task)])))
        if self.has_fallen():
            for value, old in zip(self.whole(), self.before, strict=True):
                value.copy_(old)
        elif len(self.accuracies) < most:
            self.before.set([value.clone() for value in self.whole()])
            self.choose(stable_share(len(self.accuracies), most), learned_from)
            self.grow(self.drop())

    def choose(self, share: float, pictures: ImageSet) -> None:
        """Make candidates of those units of each layer that bring up this share of its activity."""
        found = [most_active(activity, share) for activity in self.activity(pictures)]
        self.candidates.set([old | new for old, new in zip(self.stable, found, strict=True)])

    @torch.no_grad()
    def drop(self) -> list[int]:
        """Of the candidates' connections, and the head's, those from all other units; how many in each layer."""
        crossing = list(zip(self.connected(), self.crossing(list(self.candidates)), strict=True))
        self.connections.replace(0, [links & ~mask for links, mask in crossing])
        self.cut(list(self.candidates))
        return [int((links & mask).sum()) for links, mask in crossing]

    @torch.no_grad()
    def grow(self, counts: Sequence[int]) -> None:
        """So many in each layer, into units that are no candidates; in the head, from candidates."""
        room = [~units[:, None] for units in self.candidates] + [[*self.candidates][-1][None]]
        links = self.connected()
        for weight, mask, free, count in zip(self.weights(), links, room, counts, strict=True):
            new = some_of(free & ~mask, count, self.generator)
            alike = weight[mask] if mask.any() else weight.new_zeros(1)
            noise = torch.randn(weight[new].shape, generator=self.generator).to(weight)
            weight[new] = alike.mean() + noise * alike.std(correction=0)
            mask |= new
        self.connections.replace(0, links)

    def end_task(self, task: Task) -> None:
        if len(self.accuracies) < 2:  # a single epoch leaves no time to choose and train on
            self.choose(stable_share(1, 2), self.split(task)[0])
            self.drop()
        self.freeze(list(self.candidates))
        self.before.clear()
        self.candidates.clear()
        self.accuracies = self.accuracies[:0]


def stable_share(phase: int, most: int) -> float:
    """Of a layer's activity, after a phase, counted from 1, of so many.

    >>> [round(stable_share(phase, 25), 4) for phase in (1, 15, 24)]
    [0.9973, 0.5, 0.0955]
    """
    return (1 + math.cos(math.pi * phase / (STEPS * most))) / 2


def most_active(activity: Tensor, share: float) -> Tensor:
    """Which units are needed, the most active first, to bring up this share of all activity: one at least.

    >>> most_active(torch.tensor([1.0, 5.0, 0.0, 4.0]), 0.6)
    tensor([False,  True, False,  True])
    """
    values, order = activity.sort(descending=True, stable=True)
    count = 1 + int((values.cumsum(0) < share * values.sum()).sum())
    return torch.zeros_like(activity, dtype=torch.bool).index_fill_(0, order[:count], True)


def some_of(mask: Tensor, count: int, generator: Generator) -> Tensor:
    """So many of what is in a mask, at random, or all."""
    places = mask.flatten().nonzero().flatten()
    chosen = places[torch.randperm(len(places), generator=generator)[:count].to(places.device)]
    return torch.zeros_like(mask).flatten().index_fill_(0, chosen, True).view(mask.shape)


def per_link(weight: Tensor) -> Tensor:
    """One number for each connection: for a filter, of each map that it reads."""
    return weight.flatten(2)[..., 0] if weight.ndim == 4 else weight
