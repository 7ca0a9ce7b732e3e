"""What methods share that freeze units of a net, some at each task: a stable unit says the same for ever.

A unit is a filter, or one of the hidden layer. Stable units read stable ones alone, so that others can learn whatever
comes. A task is told by a head of its own, which reads stable units alone as well once its task is over; so the task
must be known at test time. The net is plain (`nn/plain_conv.py`): batch norm would let every unit's statistics speak in
those of the others, and a shortcut would tie units of several layers together.

Masks of connections have a row for each unit of a layer and a column for each number that it reads: of a convolution, a
map.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from sparc.data.augment import Views
from sparc.data.imageset import ImageSet
from sparc.data.stream import Task, hold_out
from sparc.methods.parts.task_heads import TaskHeads
from sparc.methods.settings import Settings
from sparc.nn.head import Heads
from sparc.nn.layout import layer_filters
from sparc.nn.plain_conv import LAYERS, PlainConv, first_weights
from sparc.nn.resizable_buffers import TensorList

HELD_OUT = 0.1
"""Share of a task's pictures that tell how many units it needs."""


@dataclass(frozen=True)
class PlainConvSettings(Settings):
    width: float = 1.0
    """Filters of the first layer, as a multiple of 64."""

    def __post_init__(self) -> None:
        super().__post_init__()
        layer_filters(self.width, LAYERS)


class StableUnits(TaskHeads):
    Settings = PlainConvSettings
    net: PlainConv

    def __init__(
        self,
        settings: PlainConvSettings,
        channels: int,
        image_size: tuple[int, int],
        augment: Views,
        generator: Generator,
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.net = PlainConv(channels, image_size, settings.width, generator)
        self.heads = Heads(self.net.head.in_features, generator)
        layers = self.net.layers
        self.stable = TensorList(len(layers))
        """Which units of each layer are."""
        self.stable.set([torch.zeros(len(layer.weight), dtype=torch.bool) for layer in layers])
        self.fixed = TensorList(2 * len(layers) + 1)
        """What stable units read, and how much of it, while a task is learned; 0 for all others."""
        self.learns: list[Tensor] = []
        """Which numbers of `held` the task at hand may change; follows from the state."""

    def held(self) -> list[Tensor]:
        """Of each layer weights and biases, and the weights of the current task's head."""
        own = [parameter for layer in self.net.layers for parameter in layer.parameters()]
        return [*own, self.heads.of(-1).weight]

    def weights(self) -> list[Tensor]:
        """The same without biases."""
        return self.held()[::2]

    def begin_task(self, task: Task) -> None:
        self.heads.add(len(task.classes))
        self.heads.to(self.device)
        stable = [units for units in self.stable for _ in range(2)]
        *own, head = (parameter.detach() for parameter in self.held())
        kept = [torch.where(like(units, value), value, 0) for units, value in zip(stable, own, strict=True)]
        self.fixed.set([*kept, torch.zeros_like(head)])

    @torch.no_grad()
    def after_step(self) -> None:
        """Put back what the optimizer had no business with."""
        for parameter, mask, fixed in zip(self.held(), self.learns, self.fixed, strict=True):
            parameter.copy_(torch.where(mask, parameter, fixed))

    def connected(self) -> list[Tensor]:
        """What each layer's units, and the head's, may read at all: everything, in masks that fit any layer."""
        return [torch.ones(1, 1, dtype=torch.bool, device=self.device)] * len(self.weights())

    def crossing(self, stable: Sequence[Tensor]) -> list[Tensor]:
        """Where each layer's stable units, and the head's, read what is not stable."""
        *maps, last, hidden = stable
        everything = hidden.new_ones(1)
        read = [everything, *maps, last.repeat_interleave(self.net.pixels), hidden]
        return [units[:, None] & ~source for units, source in zip((*stable, everything), read, strict=True)]

    @torch.no_grad()
    def cut(self, stable: Sequence[Tensor]) -> None:
        """Let these units, and the head, read each other alone."""
        for weight, mask in zip(self.weights(), self.crossing(stable), strict=True):
            weight.masked_fill_(like(mask, weight), 0)

    @torch.no_grad()
    def freeze(self, stable: Sequence[Tensor]) -> None:
        """Make these units stable, and start all others anew."""
        self.cut(stable)
        self.stable.set([units.clone() for units in stable])
        for layer, units, links in zip(self.net.layers, self.stable, self.connected(), strict=False):
            weight, bias = layer.parameters()
            fresh = first_weights(weight, self.generator).masked_fill(like(~links, weight), 0)
            weight.copy_(torch.where(like(units, weight), weight, fresh))
            bias.masked_fill_(~units, 0)
        self.fixed.clear()
        self.zero_grad()

    def split(self, task: Task) -> tuple[ImageSet, ImageSet]:
        """What a task is learned from and what tells how well: some are held out, or all there are tell it.

        Always the same pictures of the same task; those that the stream holds out are for whoever compares methods.
        """
        held_out = hold_out(task.train.labels, HELD_OUT)
        return (task.train.take(~held_out), task.train.take(held_out)) if held_out.any() else (task.train, task.train)

    def accuracy(self, pictures: ImageSet, task: Task) -> float:
        """Of the current task's head, in percent."""
        self.eval()
        said = self.predict_batched(self.one_pass, pictures.images).argmax(1) + task.classes.start
        return 100 * float((said == pictures.labels).double().mean())

    def activity(self, pictures: ImageSet) -> list[Tensor]:
        """The mean activation of each layer's units, over pictures and over a map's pixels."""

        def total(images: Tensor) -> Tensor:
            found: list[Tensor] = []
            self.net.features(images, found)
            means = [each.flatten(2).mean(2) if each.ndim == 4 else each for each in found]
            return torch.cat(means, 1).sum(0, keepdim=True, dtype=torch.float64)

        self.eval()
        activity = self.predict_batched(total, pictures.images).sum(0) / len(pictures)
        return list(activity.to(self.device).split([len(units) for units in self.stable]))

    def set_trainable(self) -> None:
        super().set_trainable()
        if not len(self.heads):
            return
        *links, head_links = (like(mask, weight) for mask, weight in zip(self.connected(), self.weights(), strict=True))
        pairs = zip(links, self.stable, strict=True)
        self.learns = [mask for read, units in pairs for mask in (read & ~like(units, read), ~units)] + [head_links]


def like(mask: Tensor, weight: Tensor) -> Tensor:
    """With as many dimensions as a weight, so that it can be laid over it."""
    return mask[(..., *(None,) * (weight.ndim - mask.ndim))]
