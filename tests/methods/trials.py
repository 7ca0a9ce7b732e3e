"""A method of a kind that is still to come, in its smallest form: what the contract has to carry.

It keeps to its idea and leaves out what does not bear on the contract; it is measured by nobody.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import interpolate, normalize

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.methods import Batch, Method, Recipe, Settings
from sparc.nn.head import Head
from sparc.nn.pretrained import Pretrained


@dataclass(frozen=True)
class PromptSettings(Settings):
    """Neither width nor depth."""

    pool: int = 4
    length: int = 2


class SmallViT(nn.Module):
    """Somebody's pre-trained transformer of 16 × 16 pixels."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.patches = nn.Conv2d(3, 16, 4, 4)
            self.positions = nn.Parameter(torch.randn(16, 16))
            self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, images: Tensor, prompts: Tensor | None = None) -> Tensor:
        tokens = self.patches(images).flatten(2).mT + self.positions
        tokens = tokens if prompts is None else torch.cat((prompts, tokens), 1)
        features: Tensor = self.block(tokens)[:, : 1 if prompts is None else prompts.shape[1]].mean(1)
        return features


class ForViT:
    """Views of the size, channels and scale that the pre-trained net wants."""

    def __init__(self, augment: Views) -> None:
        self.augment = augment

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        return self.sized(self.augment(images, generator))

    def normalize(self, images: Tensor) -> Tensor:
        return self.sized(self.augment.normalize(images))

    def sized(self, images: Tensor) -> Tensor:
        return interpolate(images.expand(-1, 3, -1, -1), (16, 16))


class L2P(Method):
    """Prompts for a net that nobody trains, chosen by what the picture looks like to it."""

    Settings = PromptSettings
    recipe = Recipe(optimizer="adamw", lr=0.1, clip_norm=1.0)

    def __init__(
        self, settings: PromptSettings, channels: int, size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, size, ForViT(augment), generator)
        self.vit = Pretrained(SmallViT())
        self.keys = nn.Parameter(torch.randn(settings.pool, 16, generator=generator))
        self.prompts = nn.Parameter(torch.randn(settings.pool, settings.length, 16, generator=generator))
        self.head = Head(16, 0, generator)

    def begin_task(self, task: Task) -> None:
        self.head = self.head.grown(len(task.classes), self.generator)

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor]:
        alike = normalize(self.vit(images), dim=1) @ normalize(self.keys, dim=1).T
        best, chosen = alike.max(1)
        return self.head(self.vit(images, self.prompts[chosen])), best

    def loss(self, batch: Batch) -> Tensor:
        logits, alike = self.answer(batch.images)
        old = torch.arange(logits.shape[1]) < batch.task.classes.start
        return batch.cross_entropy(logits.masked_fill(old, -math.inf)) - 0.1 * alike.mean()

    def logits(self, images: Tensor) -> Tensor:
        return self.answer(images)[0]
