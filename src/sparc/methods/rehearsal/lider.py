"""LiDER: on top of another method's rehearsal, layers are kept from moving old pictures further apart than they need.

Bonicelli, Boschini, Porrello, Spampinato and Calderara, "On the Effectiveness of Lipschitz-Driven Rehearsal in
Continual Learning", NeurIPS 2022. A net that fits a few pictures again and again draws its borders close around them.
Two terms, each on pictures replayed for it, keep it smooth there: the estimates of `parts/lipschitz.py` are pulled
down, and towards budgets, which start as the fresh net has them on the first task's pictures, and are learned. So the
paper says; in the authors' code they stay where they start.

The authors' own example starts from a pre-trained net, which this does not. The maps are the picture itself, the
stem's, and those that the layers end with before their ReLU, so the net is a ResNet.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative
from sparc.methods.method import Batch
from sparc.methods.parts.lipschitz import LipschitzBudgets, lipschitz_estimates
from sparc.methods.parts.rehearsal import Rehearsal, RehearsalSettings
from sparc.methods.recipe import Recipe
from sparc.methods.rehearsal.derpp import DERpp, DerppSettings
from sparc.methods.rehearsal.er_ace import ERACE, ErAceSettings
from sparc.nn.backbone import Backbone
from sparc.nn.layout import BLOCKS
from sparc.nn.resnet import ResNet


@dataclass(frozen=True)
class LiderSettings(RehearsalSettings):
    backbone: ClassVar[Backbone] = "resnet"  # type: ignore[misc]

    replay_batch: int = 64
    """Pictures replayed at every step, for each of the terms."""
    lipschitz_weight: float = 0.3
    """Weight of the layers' Lipschitz estimates, which are to be small."""
    budget_weight: float = 0.5
    """Weight of the distance between the layers' Lipschitz estimates and their budgets."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--lipschitz-weight", self.lipschitz_weight)
        check_not_negative("--budget-weight", self.budget_weight)


class LiDER(Rehearsal):
    """What it does, whatever the host."""

    settings: LiderSettings
    net: ResNet

    def __init__(self, settings: LiderSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.lipschitz = LipschitzBudgets(pairs=len(self.net.blocks) // BLOCKS + 1)

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        if self.settings.budget_weight and not task.index:
            self.eval()
            self.lipschitz.start_at(self.predict_batched(self.estimates, task.train.images))

    def estimates(self, images: Tensor) -> Tensor:
        return lipschitz_estimates([images, *self.net.layer_maps(images)], self.generator)

    def loss(self, batch: Batch) -> Tensor:
        # First, as the host puts the batch into the buffer.
        return self.roughness() + super().loss(batch)

    def roughness(self) -> Tensor:
        """Of what is replayed."""
        rough = torch.zeros((), device=self.device)
        if len(self.buffer) and self.settings.lipschitz_weight:
            rough = rough + self.settings.lipschitz_weight * self.estimates(self.replay()[0]).mean()
        if len(self.buffer) and self.settings.budget_weight:
            rough = rough + self.settings.budget_weight * self.lipschitz.distance(self.estimates(self.replay()[0]))
        return rough


@dataclass(frozen=True)
class LiderDerppSettings(LiderSettings, DerppSettings):
    alpha: float | None = 0.3
    """Weight of the replayed logits' squared error."""
    beta: float = 0.3
    """Weight of the replayed labels' cross-entropy."""


class LiderDERpp(LiDER, DERpp):
    name = "lider-der++"
    title = "LiDER"
    paper = "Bonicelli et al., NeurIPS 2022"
    Settings = LiderDerppSettings
    recipe = Recipe(batch_size=64, milestones=(0.7, 0.9))


@dataclass(frozen=True)
class LiderErAceSettings(LiderSettings, ErAceSettings):
    lipschitz_weight: float = 0.1
    """Weight of the layers' Lipschitz estimates, which are to be small."""
    budget_weight: float = 0.3
    """Weight of the distance between the layers' Lipschitz estimates and their budgets."""


class LiderERACE(LiDER, ERACE):
    name = "lider-er-ace"
    title = "LiDER on ER-ACE"
    paper = "Bonicelli et al., NeurIPS 2022"
    Settings = LiderErAceSettings
    recipe = Recipe(batch_size=64, lr=0.1, milestones=(0.7, 0.9))
