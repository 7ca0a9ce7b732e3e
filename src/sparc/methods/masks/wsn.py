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
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sparc.data.stream import Task
from sparc.errors import InputError
from sparc.methods.method import Batch
from sparc.methods.parts.bit_masks import BitMasks
from sparc.methods.parts.single import SingleNet, SingleNetSettings
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


class WSN(SingleNet):
    name = "wsn"
    title = "WSN"
    paper = "Kang et al., ICML 2022"
    needs_task_id = True
    Settings = WsnSettings
    frozen_parts = ("heads", "norms", "masks")
    recipe = Recipe(epochs=200, batch_size=64, lr=1e-3, optimizer="adam")

    def __init__(self, settings: WsnSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.share = settings.share
        weights = self.weights()
        self.scores = nn.ParameterList(first_scores(weight, self.generator) for weight in weights.values())
        self.masks = BitMasks(len(weights))
        """One set for each task that is over."""
        self.heads = Heads(self.net.head.in_features, self.generator)
        """One a task, in the place of the net's own, which has no outputs."""
        modules = self.net.named_modules()
        self.own_norms = {name: each for name, each in modules if isinstance(each, nn.BatchNorm2d)}
        """The net's, in whose place a task's are put."""
        self.norms = Norms([each.num_features for each in self.own_norms.values()])
        self.fixed = TensorList(len(weights))
        """What weights were when the task at hand began, while it is learned."""
        self.used: list[Tensor] = []
        """Which weights older tasks use; follows from the state."""

    def weights(self) -> dict[str, nn.Parameter]:
        """All but batch norm's and the heads'."""
        return {name: parameter for name, parameter in self.net.named_parameters() if parameter.ndim == 4}

    def begin_task(self, task: Task) -> None:
        self.heads.add(len(task.classes))
        self.norms.add()
        self.fixed.set([weight.detach().clone() for weight in self.weights().values()])

    def loss(self, batch: Batch) -> Tensor:
        return batch.cross_entropy(self.one_pass(batch.images), batch.labels - batch.task.classes.start)

    @torch.no_grad()
    def after_step(self) -> None:
        """Put back what belongs to older tasks."""
        for weight, used, fixed in zip(self.weights().values(), self.used, self.fixed, strict=True):
            weight.copy_(torch.where(used, fixed, weight))

    def end_task(self, task: Task) -> None:
        self.masks.add([largest(score.detach().abs(), self.share) for score in self.scores])
        self.fixed.clear()
        self.zero_grad()

    def logits(self, images: Tensor) -> Tensor:
        return torch.cat([self.task_logits(images, task) for task in range(len(self.heads))], 1)

    def task_logits(self, images: Tensor, task: int) -> Tensor:
        """By the task's own choice of weights, which is that of the scores until the task is over."""
        weights, head = self.weights(), self.heads.of(task)
        if task < len(self.masks):
            masks = [mask.float() for mask in self.masks.of(task, list(weights.values()))]
        else:
            masks = [straight_through(score, self.share) for score in self.scores]
        parts = {name: weight * mask for (name, weight), mask in zip(weights.items(), masks, strict=True)}
        for name, norm in zip(self.own_norms, self.norms.of(task), strict=True):
            parts |= {f"{name}.{key}": value for key, value in norm.state_dict(keep_vars=True).items()}
        parts |= {"head.weight": head.weight, "head.bias": head.bias}
        logits: Tensor = functional_call(self.net, parts, (images,))
        return logits

    def one_pass(self, images: Tensor) -> Tensor:
        return self.task_logits(images, len(self.heads) - 1)

    def set_trainable(self) -> None:
        for norm in self.own_norms.values():
            norm.requires_grad_(False)
        for parts in (self.heads, self.norms):
            parts.to(self.device).requires_grad_(False)
            if len(parts):
                parts[-1].requires_grad_(True)
        self.used = self.masks.any(list(self.weights().values()))


class Norms(nn.ModuleList):
    """A net's batch norms, one set a task, which grow in number while they are loaded."""

    def __init__(self, channels: list[int]) -> None:
        super().__init__()
        self.channels = channels

    def add(self) -> None:
        self.append(nn.ModuleList(map(nn.BatchNorm2d, self.channels)))

    def of(self, task: int) -> nn.ModuleList:
        return cast(nn.ModuleList, self[task])

    def get_extra_state(self) -> Tensor:
        return torch.tensor(len(self))

    def set_extra_state(self, state: Tensor) -> None:
        for _ in range(len(self), int(state)):
            self.add()


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
