"""Chorus: SPARC's working memories, each starting as the newest one is, and all of them heard about later classes.

Three things are otherwise than in SPARC. A working memory inherits all but the head of the one before it, so features
grow better from task to task while nothing old changes. When a task is over, every working memory describes the task's
classes in its own features (means, and one covariance for all classes), so that old ones can tell their classes from
those that came later; heads and discriminants answer together. And it is trained by Muon, with which an epoch does the
work of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import nn

from sparc.data.augment import Augment
from sparc.data.stream import Task
from sparc.errors import InputError
from sparc.methods.method import ParameterGroup, Phase
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.sparc import SPARC, SparcSettings
from sparc.nn.chorus import ChorusNet


@dataclass(frozen=True)
class ChorusSettings(SparcSettings):
    alpha: float = 1.0
    """How much of the semantic memory is kept at each consolidation; with all of it old features stay as they are."""
    inherit: bool = True
    """Whether a working memory starts as the newest one is."""
    statistics: int = 384
    """Features in which each working memory describes classes; 0 leaves the answer to the heads."""
    mirror: bool = True
    """Whether a picture's mirror image is looked at as well, where mirror images are learned."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.statistics < 0:
            raise InputError(f"--statistics {self.statistics} is no number of features: it must be at least 0")


class Chorus(SPARC):
    name = "chorus"
    title = "Chorus"
    paper = "this project, 2026"
    Settings = ChorusSettings
    recipe = Recipe(epochs=12, lr=0.02, optimizer="muon", weight_decay=0.05, schedule="linear", lr_warm_up=0.5)
    net: ChorusNet

    def new_net(self, settings: SparcSettings, channels: int, image_size: tuple[int, int]) -> ChorusNet:
        own = cast(ChorusSettings, settings)
        mirror = own.mirror and isinstance(self.augment, Augment) and self.augment.flip
        return ChorusNet(
            channels,
            image_size,
            own.width,
            own.depth,
            own.shared,
            self.generator,
            own.inherit,
            own.statistics,
            mirror,
        )

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        """Weight decay is for what is multiplied with many inputs, and not for vectors."""
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        vectors = [parameter for parameter in learning if is_vector(parameter)]
        others = [parameter for parameter in learning if not is_vector(parameter)]
        return [Phase(recipe, parameters=[*others, ParameterGroup(vectors, weight_decay=0.0)])]

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        super().end_task(task)
        if self.net.statistics:
            self.eval()
            features = [
                self.predict_batched(partial(self.net.pooled_in, memory), task.train.images)
                for memory in self.net.memories()
            ]
            self.net.listen(features, task.train.labels)

    def parameters_by_owner(self) -> dict[str, int]:
        return {**super().parameters_by_owner(), "statistics": self.net.count_statistics()}


def is_vector(parameter: nn.Parameter) -> bool:
    return parameter.numel() == len(parameter)
