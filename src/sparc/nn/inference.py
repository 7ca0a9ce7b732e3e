"""The inference form of SPARC's net: the same logits, sooner.

Batch norms are folded into the point-wise filters, the own and the semantic filters joined once and for all, and
working memories, which have the same layout but for their heads, evaluated several at a time.

Shapes: K working memories, B batch, C input and N output channels, H × W the map.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from sparc.errors import InputError
from sparc.nn.separable import SeparableConv
from sparc.nn.sparc import Shortcut, SparcNet

MAP_BYTES = 2 << 20
"""The largest activation at any time: so many pictures, and then so many memories, are taken at once.

At 32 × 32 and width 0.5 that is one picture through 16 memories, or 16 pictures through one. So measured on one thread
of a shared EPYC, 32 MiB of L3, against one memory at a time: 1 picture × 20 memories 3.4 times as fast (2.2 at 1 MiB,
4.3 at 4), 1 × 5 2.2 (2.0, 2.3), 4 × 5 1.0 (1.2, 1.0), 16 × 5 1.1 (0.9, 0.7). More is lost at once with many
pictures: 256 through one memory take 1.8 times as long whole as in pieces of 16, since their maps leave the cache.
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
    """One working memory: the stem, then two convolutions a block around its shortcut, then the head."""

    convs: list[FoldedConv]
    shortcuts: list[Tensor | None]
    """[2 C, 1, 1, 1] of each block, with stride 2; None where the input itself is added."""
    head_weight: Tensor
    head_bias: Tensor


class InferenceNet:
    """A frozen copy of a net that gives the logits of all working memories, in their order.

    >>> net = SparcNet(channels=1, image_size=(8, 8), width=0.25)
    >>> memory = net.add_task(2)
    >>> InferenceNet.of(net).forward(torch.zeros(7, 1, 8, 8)).shape
    torch.Size([7, 2])
    """

    def __init__(self, memories: list[FoldedMemory]) -> None:
        self.count = len(memories)
        self.heads = [(memory.head_weight, memory.head_bias) for memory in memories]
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

    @classmethod
    @torch.no_grad()
    def of(cls, net: SparcNet) -> Self:
        """The net as it is now; what becomes of it later does not matter."""
        if not len(net.working):
            raise InputError("the net has learned no task yet: there is nothing to infer")
        memories = []
        for memory in net.memories():
            convs = [_fold(conv, bank) for conv, bank in zip(memory.separable(), net.semantic.filters, strict=True)]
            shortcuts = [
                block.shortcut.weight.clone() if isinstance(block.shortcut, Shortcut) else None
                for block in memory.blocks
            ]
            memories.append(FoldedMemory(convs, shortcuts, memory.head.weight.clone(), memory.head.bias.clone()))
        return cls(memories)

    def memories(self) -> list[FoldedMemory]:
        """Each working memory by itself: views of the same weights."""
        return [
            FoldedMemory(
                [FoldedConv(conv.depthwise[k], conv.pointwise[k], conv.bias[k], conv.stride) for conv in self.convs],
                [None if weight is None else weight[k] for weight in self.shortcuts],
                *self.heads[k],
            )
            for k in range(self.count)
        ]

    @torch.no_grad()
    def forward(self, x_BCHW: Tensor) -> Tensor:  # noqa: N803
        batch, channels, height, width = x_BCHW.shape
        if not batch:
            return x_BCHW.new_empty(0, sum(len(bias) for _, bias in self.heads))
        picture = x_BCHW.element_size() * max(channels, self.convs[0].bias.shape[1]) * height * width
        pieces = x_BCHW.split(max(1, MAP_BYTES // picture))
        return torch.cat([self._piece(piece, max(1, MAP_BYTES // (len(piece) * picture))) for piece in pieces])

    __call__ = forward

    def _piece(self, x: Tensor, at_once: int) -> Tensor:
        groups = [slice(first, first + at_once) for first in range(0, self.count, at_once)]
        return torch.cat([self._logits(x, memories) for memories in groups], dim=1)

    def _logits(self, x: Tensor, memories: slice) -> Tensor:
        """Of some memories, whose channels lie side by side: [B, K·C, H, W] between the layers."""
        heads = self.heads[memories]
        stem, *rest = self.convs
        x = _separable(x.repeat(1, len(heads), 1, 1), stem, memories).relu_()
        # oneDNN's convolutions are faster so, and a place's channels lie together for the products.
        x = x.contiguous(memory_format=torch.channels_last)
        for shortcut, first, second in zip(self.shortcuts, rest[::2], rest[1::2], strict=True):
            out = _separable(_separable(x, first, memories).relu_(), second, memories)
            if shortcut is not None:
                x = conv2d(x, shortcut[memories].flatten(0, 1), stride=2, groups=x.shape[1])
            x = out.add_(x).relu_()
        features = x.mean((2, 3)).unflatten(1, (len(heads), -1))
        return torch.cat([torch.addmm(bias, features[:, k], weight.T) for k, (weight, bias) in enumerate(heads)], dim=1)


def _separable(x: Tensor, conv: FoldedConv, memories: slice) -> Tensor:
    depthwise, pointwise, bias = conv.depthwise[memories], conv.pointwise[memories], conv.bias[memories]
    x = conv2d(x, depthwise.flatten(0, 1), stride=conv.stride, padding=1, groups=x.shape[1])
    count, filters, channels = pointwise.shape
    if count == 1:
        return conv2d(x, pointwise[0, :, :, None, None], bias[0])
    # A grouped 1×1 convolution leaves oneDNN's fast path; a batched product over the places does not.
    batch, _, height, width = x.shape
    places = x.permute(0, 2, 3, 1).reshape(-1, count, channels)
    out = x.new_empty(len(places), count, filters)
    torch.baddbmm(bias[:, None], places.transpose(0, 1), pointwise.mT, out=out.transpose(0, 1))
    return out.view(batch, height, width, -1).permute(0, 3, 1, 2)


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
