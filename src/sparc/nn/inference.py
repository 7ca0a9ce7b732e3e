"""The inference form of SPARC's and Chorus's nets: the same scores, sooner.

Batch norms are folded into the point-wise filters, the own and the semantic filters joined once and for all, and
working memories, which have the same layout but for their heads, evaluated several at a time.

Maps are channels-last: a pixel's channels lie side by side, those of one memory after those of another, so that a map
of several memories is also a matrix for each of them, with a pixel a row. docs/speed.md has the measurements.

Shapes: K working memories, B batch, C input and N output channels, H × W the map, P = B·H·W pixels.
"""

import copy
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from sparc.errors import InputError
from sparc.nn.chorus import ChorusNet, CommonFeatures
from sparc.nn.functions import channels_last, pixel_rows, two_of_each
from sparc.nn.layout import BLOCKS
from sparc.nn.readout import Layer, Readout, pooled
from sparc.nn.roll import Say
from sparc.nn.separable import SeparableConv
from sparc.nn.sparc import Shortcut, SparcNet

MAP_BYTES = 4 << 20
"""The largest activation at any time: so many pictures, and then so many memories, are taken at once.

At 32 × 32 and width 0.5 that is one picture through 32 memories, or 32 pictures through one. On one thread of a shared
EPYC with 512 KiB of L2 and 32 MiB of L3, for 1, 2, 4 and 8 MiB, and for the net as trained: 1 picture through 20
memories takes 33, 32, 30, 31 ms, and 119; 256 pictures through 5 take 1.44, 1.25, 1.11, 1.08 s, and 1.31.
"""


@dataclass(frozen=True)
class FoldedConv:
    """A separable convolution without batch norm: of one memory, or of K with a first dimension more."""

    depthwise: Tensor
    """[C, 1, 3, 3]"""
    pointwise: Tensor
    """[N, C]"""
    bias: Tensor
    """[N], of the point-wise filters."""
    stride: int


@dataclass(frozen=True)
class FoldedMemory:
    """One working memory but for its head: the stem, then two convolutions a block around its shortcut."""

    convs: list[FoldedConv]
    shortcuts: list[Tensor | None]
    """[2 C, 1, 1, 1] of each block, with stride 2; None where the input itself is added."""


class InferenceNet:
    """A frozen copy of a net that gives the logits of all working memories, in their order.

    >>> net = SparcNet(channels=1, image_size=(8, 8), width=0.25)
    >>> memory = net.add_task(2)
    >>> InferenceNet.of(net).forward(torch.zeros(7, 1, 8, 8)).shape
    torch.Size([7, 2])
    """

    def __init__(
        self,
        memories: list[FoldedMemory],
        readout: Readout,
        mirror: bool = False,
        quarters: bool = False,
        common: CommonFeatures | None = None,
    ) -> None:
        """With `quarters` features have the map before the last among them."""
        self.count = len(memories)
        self.readout = readout
        self.mirror = mirror
        self.quarters = quarters
        self.common = common
        if not memories:
            return
        self.convs = [
            FoldedConv(
                torch.stack([conv.depthwise for conv in convs]),
                torch.stack([conv.pointwise for conv in convs]),
                torch.stack([conv.bias for conv in convs]),
                convs[0].stride,
            )
            for convs in zip(*(memory.convs for memory in memories), strict=True)
        ]
        self.shortcuts = [
            torch.stack([weight for weight in weights if weight is not None]) if weights[0] is not None else None
            for weights in zip(*(memory.shortcuts for memory in memories), strict=True)
        ]
        # All stems look at the same picture, and with its few channels one 3×3 convolution is the quickest.
        stem = self.convs[0]
        filters = stem.pointwise[..., None, None].double() * stem.depthwise.transpose(1, 2).double()
        self.stem = filters.to(stem.pointwise.dtype)
        """[K, N, C, 3, 3]"""

    @classmethod
    @torch.no_grad()
    def of(cls, net: SparcNet) -> Self:
        """The net as it is now; what becomes of it later does not matter."""
        if not len(net.working) and not (isinstance(net, ChorusNet) and net.portions):
            raise InputError("the net has learned no task yet: there is nothing to infer")
        memories = []
        for memory in net.memories():
            convs = [_fold(conv, bank) for conv, bank in zip(memory.separable(), net.semantic.filters, strict=True)]
            shortcuts = [
                block.shortcut.weight.clone() if isinstance(block.shortcut, Shortcut) else None
                for block in memory.blocks
            ]
            memories.append(FoldedMemory(convs, shortcuts))
        if isinstance(net, ChorusNet):
            readout = net.readout()
            common = copy.deepcopy(net.common) if readout.discriminants else None
            heads = [replace(head, weight=head.weight.clone(), bias=head.bias.clone()) for head in readout.heads]
            readout = replace(readout, heads=heads)
            return cls(memories, readout, net.mirror, quarters=net.statistics > 0, common=common)
        starts = [sum(net.task_sizes[:task]) for task in range(len(memories))]
        heads = [
            Layer(memory.head.weight.clone(), memory.head.bias.clone(), Say([*range(first, first + size)]))
            for memory, first, size in zip(net.memories(), starts, net.task_sizes, strict=True)
        ]
        return cls(memories, Readout(sum(net.task_sizes), heads, ()))

    def pooled(self, x: Tensor) -> list[Tensor]:
        """[B, P] of each working memory, without quarters only what its head sees; and the common features."""
        found = self._pieces(x) if self.count else []
        if self.mirror and found:
            found = [(own + mirrored) / 2 for own, mirrored in zip(found, self._pieces(x.flip(3)), strict=True)]
        return found if self.common is None else [*found, self.common(x)]

    def alone(self, memory: int) -> Self:
        """One working memory, for its features."""
        nobody = Readout(0, (), ())
        return type(self)([self.memories()[memory]], nobody, mirror=self.mirror, quarters=self.quarters)

    def memories(self) -> list[FoldedMemory]:
        """Each working memory by itself: views of the same weights."""
        return [
            FoldedMemory(
                [FoldedConv(conv.depthwise[k], conv.pointwise[k], conv.bias[k], conv.stride) for conv in self.convs],
                [None if weight is None else weight[k] for weight in self.shortcuts],
            )
            for k in range(self.count)
        ]

    @torch.no_grad()
    def forward(self, x_BCHW: Tensor) -> Tensor:  # noqa: N803
        if not len(x_BCHW):
            return x_BCHW.new_empty(0, self.readout.classes)
        return self.readout(self.pooled(x_BCHW))

    __call__ = forward

    def _pieces(self, x: Tensor) -> list[Tensor]:
        _, channels, height, width = x.shape
        picture = x.element_size() * max(channels, self.convs[0].bias.shape[1]) * height * width
        pieces = x.split(max(1, MAP_BYTES // picture))
        found = [self._piece(piece, max(1, MAP_BYTES // (len(piece) * picture))) for piece in pieces]
        return [torch.cat(parts) for parts in zip(*found, strict=True)]

    def _piece(self, x: Tensor, at_once: int) -> list[Tensor]:
        groups = [slice(first, first + at_once) for first in range(0, self.count, at_once)]
        return [features for memories in groups for features in self._features(x, memories)]

    def _features(self, x: Tensor, memories: slice) -> list[Tensor]:
        """Of some memories, whose channels lie side by side: [B, K·C, H, W] between the layers."""
        stem, *rest = self.convs
        x = channels_last(x)
        x = conv2d(x, self.stem[memories].flatten(0, 1), stem.bias[memories].flatten(), padding=1).relu_()
        x = channels_last(x)
        before: list[Tensor] = []
        for number, (shortcut, first, second) in enumerate(zip(self.shortcuts, rest[::2], rest[1::2], strict=True)):
            if self.quarters and number == len(self.shortcuts) - BLOCKS and number:
                before = [x]
            out = _separable(x, first, memories).relu_()
            if shortcut is not None:
                x = two_of_each(x, shortcut[memories].flatten())
            x = _separable(out, second, memories, onto=x).relu_()
        return pooled([*before, x], len(stem.bias[memories]))


def _separable(x: Tensor, conv: FoldedConv, memories: slice, onto: Tensor | None = None) -> Tensor:
    """The convolution's output, added to another map where one is given."""
    depthwise, pointwise, bias = conv.depthwise[memories], conv.pointwise[memories], conv.bias[memories]
    x = conv2d(x, depthwise.flatten(0, 1), stride=conv.stride, padding=1, groups=x.shape[1])
    batch, _, height, width = x.shape
    count, filters, channels = pointwise.shape
    # The product is added to what is there already, so the bias costs nothing more.
    bias = bias.flatten()
    out = bias.repeat(batch * height * width, 1) if onto is None else pixel_rows(onto).add_(bias)
    # A grouped 1×1 convolution leaves oneDNN's fast path; a batched product over the pixels does not.
    by_memory = out.view(-1, count, filters).transpose(0, 1)
    by_memory.baddbmm_(pixel_rows(x).view(-1, count, channels).transpose(0, 1), pointwise.mT)
    return out.view(batch, height, width, -1).movedim(-1, 1)


def _fold(conv: SeparableConv, semantic: Tensor) -> FoldedConv:
    """Batch norm of given statistics is a scale and a shift; in double precision, so that nothing is lost to it."""
    norm = conv.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    pointwise = torch.cat((conv.pointwise, semantic)).flatten(1)
    return FoldedConv(
        conv.depthwise.clone(),
        (pointwise * scale[:, None]).to(pointwise.dtype),
        (norm.bias - norm.running_mean * scale).to(pointwise.dtype),
        conv.stride,
    )
