"""WSN: every task is a part of one net, chosen by scores that are learned with the weights; what a task uses is frozen.

Kang et al., "Forget-free Continual Learning with Winning Subnetworks", ICML 2022. Each weight has a score, and a task
uses the share of each layer's weights whose scores are the largest by their size. Scores learn as if the choice were
the scores themselves (straight-through). Weights that older tasks use take no step, but may be chosen again. A task's
choice is kept, a bit a weight, so the task must be known at test time.

The net is our ResNet, where the authors have AlexNet for CIFAR-100. Each task has batch norms of its own, with weights,
biases and running statistics; those of the authors' ResNet have neither, and take a test batch's statistics. Rate,
batch and epochs are the authors', but their rate is halved whenever six epochs bring nothing, and the best epoch on
held-out pictures counts; ours stays, and the last one counts.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sparc.data.stream import Task
from sparc.errors import InputError
from sparc.methods.parts.bit_masks import BitMasks
from sparc.methods.parts.single import SingleNet, SingleNetSettings
from sparc.methods.parts.task_heads import TaskWeights
from sparc.methods.parts.task_norms import TaskNorms
from sparc.methods.recipe import Recipe
from sparc.nn.head import Heads
from sparc.nn.resizable_buffers import TensorList


@dataclass(frozen=True)
class WsnSettings(SingleNetSettings):
    share: float = 0.5
    """c: of each layer's weights, how many a task uses."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 1:
            raise InputError(f"--share {self.share:g} must be above 0 and at most 1")


class WSN(TaskWeights, SingleNet):
    name = "wsn"
    title = "WSN"
    paper = "Kang et al., ICML 2022"
    Settings = WsnSettings
    frozen_parts = ("heads", "norms", "masks")
    recipe = Recipe(epochs=200, batch_size=64, lr=1e-3, optimizer="adam")

    def __init__(self, settings: WsnSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.share = settings.share
        weights = self.weights()
        self.scores = nn.ParameterList(first_scores(weight, self.generator) for weight in weights)
        self.masks = BitMasks(len(weights))
        """One set for each task that is over."""
        self.heads = Heads(self.net.head.in_features, self.generator)
        self.norms = TaskNorms(self.net)
        self.fixed = TensorList(len(weights))
        """What weights were when the task at hand began, while it is learned."""
        self.used: list[Tensor] = []
        """Which weights older tasks use; follows from the state."""

    def begin_task(self, task: Task) -> None:
        self.heads.add(len(task.classes))
        self.norms.add()
        self.fixed.set([weight.detach().clone() for weight in self.weights()])

    @torch.no_grad()
    def after_step(self) -> None:
        """Put back what belongs to older tasks."""
        for weight, used, fixed in zip(self.weights(), self.used, self.fixed, strict=True):
            weight.copy_(torch.where(used, fixed, weight))

    def end_task(self, task: Task) -> None:
        self.masks.add([largest(score.detach().abs(), self.share) for score in self.scores])
        self.fixed.clear()
        self.zero_grad()

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        """By the task's own choice of weights, which is that of the scores until the task is over."""
        self.norms.put(task)
        weights = self.weights()
        if task < len(self.masks):
            masks = [mask.float() for mask in self.masks.of(task, weights)]
        else:
            masks = [straight_through(score, self.share) for score in self.scores]
        return self.answer(images, [weight * mask for weight, mask in zip(weights, masks, strict=True)], task)

    def set_trainable(self) -> None:
        super().set_trainable()
        self.used = self.masks.any(self.weights())


def first_scores(weight: Tensor, generator: torch.Generator) -> nn.Parameter:
    """As convolutions' weights are drawn, which is the authors' choice."""
    return nn.Parameter(nn.init.kaiming_uniform_(torch.empty_like(weight), a=5**0.5, generator=generator))


def straight_through(scores: Tensor, share: float) -> Tensor:
    """1 where scores are among the largest, by their size, and 0 elsewhere; with the gradient of the sizes."""
    sizes = scores.abs()
    return largest(sizes.detach(), share) + (sizes - sizes.detach())


def largest(values: Tensor, share: float) -> Tensor:
    """Where the largest are, as many as make up this share, and one at least; of equal ones the first.

    >>> largest(torch.tensor([0.5, 3.0, 0.5, 0.5]), 0.5)
    tensor([ True,  True, False, False])
    """
    flat = values.flatten()
    count = max(1, round(share * len(flat)))
    least = flat.kthvalue(len(flat) - count + 1).values
    chosen = flat > least
    chosen[(flat == least).nonzero().flatten()[: count - int(chosen.sum())]] = True
    return chosen.view(values.shape)
