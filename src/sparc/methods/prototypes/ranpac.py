"""RanPAC: ridge regression on random features of a net that learns with the first task alone.

McDonnell, Gong, Parvaneh, Abbasnejad and van den Hengel, "RanPAC: Random Projections and Pre-trained Models for
Continual Learning", NeurIPS 2023; without a pre-trained net it is ACIL: Zhuang et al., "ACIL: Analytic
Class-Incremental Learning with Absolute Memorization and Privacy Protection", NeurIPS 2022. What the regression needs
are sums over pictures, so whatever the order and the portions in which classes come, it is as if all had come at once.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from sparc.data.stream import Task
from sparc.errors import InputError, check_positive
from sparc.methods.parts.first_task import FirstTaskNet
from sparc.methods.parts.prepared import Prepared
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.ridge import RunningRidge


@dataclass(frozen=True)
class RanpacSettings(SingleNetSettings):
    random_features: int = 2000
    """Features after the random projection; the authors have 10,000, whose products take 800 MB."""
    ridge: float = 0.01
    """Penalty on the weights, as a share of the features' mean square; the authors choose one on held-out pictures."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.random_features < 1:
            raise InputError(f"--random-features {self.random_features} is too few: give at least 1")
        check_positive("--ridge", self.ridge)


class RanPAC(FirstTaskNet, Prepared[Tensor]):
    name = "ranpac"
    title = "RanPAC"
    paper = "McDonnell et al., NeurIPS 2023"
    Settings = RanpacSettings
    recipe = Recipe(epochs=160, batch_size=128, lr=0.1, momentum=0.9, weight_decay=5e-4, milestones=(0.5, 0.75))
    settings: RanpacSettings

    def __init__(self, settings: RanpacSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.projection: Tensor
        shape = (settings.random_features, self.net.head.in_features)
        self.register_buffer("projection", torch.randn(shape, generator=self.generator))
        self.ridge = RunningRidge(settings.random_features)

    def end_task(self, task: Task) -> None:
        self.ridge.add(self.projected(self.features_of(self.net.features, task.train)), task.train.labels)

    def projected(self, features: Tensor) -> Tensor:
        return linear(features, self.projection).relu()

    def prepare(self) -> Tensor:
        return self.ridge.weight(self.settings.ridge)

    def logits(self, images: Tensor) -> Tensor:
        return linear(self.projected(self.net.features(images)).double(), self.ready()).float()
