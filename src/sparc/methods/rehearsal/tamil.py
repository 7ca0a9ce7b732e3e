"""TAMiL: a gate for each task, a small auto-encoder, lets through what of the common features the task has use for.

Bhat, Zonooz and Arani, "Task-Aware Information Routing from Common Representation Space in Lifelong Learning", ICLR
2023. New pictures go through their task's gate, which is kept apart from older ones. Others go through the gate that
gives back their features best, also at test time. Logits of replayed pictures are drawn to those of a moving average of
the net, which is told the gate by their task; and as a class belongs to one task, its label tells it.

As in the authors' code, the head has room for all classes that will ever come, where their number is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import mse_loss

from sparc.data.stream import Task
from sparc.errors import InputError, check_not_negative, check_share
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.ema import AverageSettings, MovingAverage
from sparc.methods.parts.rehearsal import Rehearsal
from sparc.methods.parts.single import WholeHead
from sparc.methods.recipe import Recipe
from sparc.nn.growing import GrowingNet
from sparc.nn.head import Head


@dataclass(frozen=True)
class TamilSettings(AverageSettings):
    code: int = 64
    """Width of the auto-encoders' hidden layer."""
    beta: float = 0.5
    """Weight of the replayed labels' cross-entropy."""
    pairwise_weight: float = 0.1
    """Weight of how far a task's gate is from each older one, which is to be large."""
    reg_weight: float = 0.1
    """Weight of the squared error between replayed pictures' logits and those of the moving average."""
    rate: float = 0.05
    """Share of the steps after which the moving average follows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.code < 1:
            raise InputError(f"--code {self.code} is too small: give at least 1")
        check_not_negative("--beta", self.beta)
        check_not_negative("--pairwise-weight", self.pairwise_weight)
        check_not_negative("--reg-weight", self.reg_weight)
        check_share("--rate", self.rate)


class TAMiL(WholeHead, Rehearsal):
    name = "tamil"
    title = "TAMiL"
    paper = "Bhat et al., ICLR 2023"
    Settings = TamilSettings
    settings: TamilSettings

    def __init__(self, settings: TamilSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.average = MovingAverage(self.new_net(Generator()), self.net, settings.rate, settings.alpha)
        self.ends: Tensor
        """Where each task's classes end."""
        self.register_buffer("ends", torch.empty(0, dtype=torch.int64))

    def new_net(self, generator: Generator) -> GrowingNet:
        net = super().new_net(generator)
        net.add_module("gates", Gates(net.head.in_features, self.settings.code, generator))
        return net

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.ends = torch.cat((self.ends, self.ends.new_tensor([task.classes.stop])))
        gate, copy = gates_of(self.net).add(), gates_of(self.average.net).add()
        copy.load_state_dict(gate.state_dict())
        self.average.grow(self.net)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        return [Phase(recipe, begin=partial(self.average.pace, task, recipe))]

    def set_trainable(self) -> None:
        self.average.requires_grad_(False)

    def loss(self, batch: Batch) -> Tensor:
        settings = self.settings
        features = self.net.features(batch.images)
        gates = gates_of(self.net)(features)
        loss = batch.cross_entropy(self.net.head(features * gates[:, -1]))
        loss = loss - settings.pairwise_weight * discrepancy(gates)
        if len(self.buffer):
            images, labels, _ = self.replay()
            tasks = torch.bucketize(labels, self.ends, right=True)
            loss = loss + settings.reg_weight * mse_loss(routed(self.net, images), self.remembered(images, tasks))
            images, labels, _ = self.replay()
            loss = loss + settings.beta * batch.cross_entropy(routed(self.net, images), labels)
        self.buffer.add(batch.raw_images, batch.labels)
        return loss

    @torch.no_grad()
    def remembered(self, images: Tensor, tasks: Tensor) -> Tensor:
        """Logits of the moving average, through the gates of these tasks."""
        return routed(self.average.net, images, tasks)

    def after_step(self) -> None:
        self.average.follow(self.net, self.generator)

    def logits(self, images: Tensor) -> Tensor:
        return routed(self.net, images)[:, : int(self.seen_classes)]


class Gates(nn.ModuleList):
    """Auto-encoders of features [N, D], one a task, which grow in number while they are loaded."""

    place: Tensor

    def __init__(self, features: int, code: int, generator: Generator) -> None:
        super().__init__()
        self.features = features
        self.code = code
        self.generator = generator
        self.register_buffer("place", torch.empty(0), persistent=False)

    def add(self) -> nn.Module:
        encoder, decoder = (
            Head(self.features, self.code, self.generator),
            Head(self.code, self.features, self.generator),
        )
        gate = nn.Sequential(encoder, nn.ReLU(), decoder, nn.Sigmoid()).to(self.place.device)
        self.append(gate)
        return gate

    def forward(self, features: Tensor) -> Tensor:
        """[N, T, D]: of each task."""
        return torch.stack([gate(features) for gate in self], 1)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(len(self))

    def set_extra_state(self, state: Tensor) -> None:
        for _ in range(int(state) - len(self)):
            self.add()


def gates_of(net: GrowingNet) -> Gates:
    return cast(Gates, net.get_submodule("gates"))


def routed(net: GrowingNet, images: Tensor, tasks: Tensor | None = None) -> Tensor:
    """Logits, each picture through the gate of its task; where that is not told, the one with the smallest error."""
    features = net.features(images)
    gates = gates_of(net)(features)
    if tasks is None:
        tasks = best_gate(features, gates)
    logits: Tensor = net.head(features * gates[torch.arange(len(gates), device=gates.device), tasks])
    return logits


def best_gate(features: Tensor, gates: Tensor) -> Tensor:
    """[N]: which of the gates' outputs [N, T, D] is nearest to the features [N, D].

    >>> best_gate(torch.tensor([[0.0, 1.0]]), torch.tensor([[[0.5, 0.5], [0.1, 0.6]]]))
    tensor([1])
    """
    return (gates - features[:, None]).square().mean(2).argmin(1)


def discrepancy(gates: Tensor) -> Tensor:
    """How far the last of the outputs [N, T, D] are from each older one, which takes no gradient: the shares of their
    numbers by softmax, compared by their absolute differences.
    """
    older, last = gates[:, :-1].detach().softmax(2), gates[:, -1:].softmax(2)
    return (older - last).abs().sum(2).mean(0).sum()
