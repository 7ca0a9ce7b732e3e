"""GPM: a later task learns only across what old tasks' pictures have shown each layer, so that these find it unchanged.

Saha, Garg and Roy, "Gradient Projection Memory for Continual Learning", ICLR 2021. After each task, the basis of what
goes into a convolution is extended until it holds a share ε of the energy of the task's pictures there; of later
gradients, the part within the span is taken off before every step. A filter's answer to what lies within the span is
then what it was. With weight decay it would not be. Every task has a head of its own, which is not held, so the task
must be known at test time.

Here the net is a ResNet. Batch norm's scales and shifts stay as the first task has left them, as in the authors' code,
and so do its running statistics: theirs are taken from each batch anew, at test time too. Their rate is halved when
they see no progress on held-out pictures, and the best epoch there counts; here it stays, and the last one counts.
Where maps are large, the first few pictures alone show in which space a layer's inputs lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative
from sparc.methods.method import Phase
from sparc.methods.parts.bases import BasesSettings, NetWithBases, check_energy, patches, projected
from sparc.methods.recipe import Recipe, check_plain_steps
from sparc.nn.resnet import Conv

MOST_VECTORS = 10_240
"""Of a layer: ten pictures have as many where maps are of 32 × 32 pixels, and no more are needed there."""


@dataclass(frozen=True)
class GpmSettings(BasesSettings):
    energy: float = 0.97
    """ε: share of the energy of a layer's inputs that the first task's basis holds."""
    energy_growth: float = 0.003
    """By how much ε grows with each task; it ends at 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_energy("--energy", self.energy)
        check_not_negative("--energy-growth", self.energy_growth)


class GPM(NetWithBases):
    name = "gpm"
    title = "GPM"
    paper = "Saha et al., ICLR 2021"
    Settings = GpmSettings
    recipe = Recipe(epochs=200, batch_size=64, lr=0.01)

    def __init__(self, settings: GpmSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.energy, self.energy_growth = settings.energy, settings.energy_growth

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        check_plain_steps(recipe, self.name)
        return super().phases(task, recipe)

    def vector_size(self, conv: Conv) -> int:
        return conv.weight[0].numel()

    def vectors(self, conv: Conv, inputs: Tensor, outputs: Tensor) -> Tensor:
        few = max(1, MOST_VECTORS // outputs[0, 0].numel())
        return patches(conv, inputs[:few])

    @torch.no_grad()
    def before_step(self) -> None:
        for conv, basis in zip(self.convs().values(), self.bases, strict=True):
            assert conv.weight.grad is not None
            conv.weight.grad -= projected(conv.weight.grad.flatten(1), basis).view_as(conv.weight)

    def end_task(self, task: Task) -> None:
        self.zero_grad()
        self.extend_bases(task, min(1.0, self.energy + self.energy_growth * task.index))

    def set_trainable(self) -> None:
        super().set_trainable()
        for norm in self.norms().values():
            norm.requires_grad_(len(self.heads) <= 1)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if len(self.heads) > 1:
            for norm in self.norms().values():
                norm.eval()
        return self
