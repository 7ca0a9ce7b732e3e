"""A model made ready to answer, in numpy: batch norms folded into filters, statistics into linear layers.

Shapes: K working memories, C input and N output channels of a convolution, P features, L classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparc.model_info import ModelInfo
from sparc.nn.described import StrangenessLayers
from sparc.nn.patch_numbers import PatchKind
from sparc.nn.roll import Say
from sparc.stored_model import Tensors, conv_names, voices

EPSILON = 1e-5
"""Of the batch norms."""
Floats = NDArray[np.float32]


class FoldedConv(NamedTuple):
    """A separable convolution of all working memories, without batch norm."""

    depthwise: Floats
    """[K, C, 1, 3, 3]"""
    pointwise: Floats
    """[K, N, C]"""
    bias: Floats
    """[K, N], of the point-wise filters."""
    stride: int


class Linear(NamedTuple):
    """A layer that speaks for some classes."""

    weight: Floats
    """[L, P]"""
    bias: Floats
    say: Say


class Patches(NamedTuple):
    filters: Floats
    bias: Floats
    kind: PatchKind


@dataclass(frozen=True)
class FoldedModel:
    """All that answers come from."""

    info: ModelInfo
    memories: int
    """K"""
    convs: Sequence[FoldedConv]
    """The stem, then two a block."""
    shortcuts: Sequence[Floats | None]
    """[K, 2 C, 1, 1, 1] of each block, with stride 2; None where the input itself is added."""
    heads: Sequence[Linear]
    discriminants: Sequence[Linear]
    """Of each working memory that has statistics, and of the common features."""
    patches: Patches | None
    strangeness: StrangenessLayers | None

    @classmethod
    def of(cls, info: ModelInfo, tensors: Tensors) -> "FoldedModel":
        """From tensors by the names that they have in a model file."""
        heads = [
            Linear(tensors[f"working.{number}.head.weight"], tensors[f"working.{number}.head.bias"], say)
            for number, say in enumerate(info.roll.heads())
        ]
        names = conv_names(len(info.units)) if heads else []
        described = voices(info, tensors)
        return cls(
            info,
            len(heads),
            [
                _stacked(tensors, number, name, info.units[number].stride, len(heads))
                for number, name in enumerate(names)
            ],
            [_shortcut(tensors, name, len(heads)) for name in names if name.endswith(".first")],
            heads,
            [
                Linear(*voice.discriminants(), say)
                for voice, say in zip(described.values(), info.roll.voices(), strict=True)
            ],
            Patches(tensors["common.filters"], tensors["common.bias"], info.its_era.patches)
            if "common.filters" in tensors
            else None,
            described["common_voice"].strangeness() if "common_voice" in described else None,
        )

    @property
    def mirror(self) -> bool:
        """Features are the mean over a picture and its mirror image."""
        return self.info.settings.mirrors(self.info.flip)

    @property
    def has_start(self) -> bool:
        return self.info.settings.start != "nothing"

    @property
    def portions(self) -> list[list[int]]:
        """The classes that were first taught together."""
        return self.info.roll.first_taught()

    def nbytes(self) -> int:
        """Of all weights."""
        convs = [part for conv in self.convs for part in conv[:3]]
        layers = [part for layer in (*self.heads, *self.discriminants) for part in layer[:2]]
        others = [*(self.patches[:2] if self.patches else ()), *(self.strangeness[:3] if self.strangeness else ())]
        return sum(part.nbytes for part in (*convs, *layers, *others, *filter(_is_there, self.shortcuts)))


def _is_there(weight: Floats | None) -> bool:
    return weight is not None


def _stacked(tensors: Tensors, number: int, name: str, stride: int, memories: int) -> FoldedConv:
    convs = [_folded(tensors, f"working.{memory}.{name}", f"semantic.filters.{number}") for memory in range(memories)]
    depthwise, pointwise, bias = (np.stack(parts) for parts in zip(*convs, strict=True))
    return FoldedConv(depthwise, pointwise, bias, stride)


def _shortcut(tensors: Tensors, first: str, memories: int) -> Floats | None:
    """Of the block with this first convolution."""
    name = first.replace(".first", ".shortcut.weight")
    if f"working.0.{name}" not in tensors:
        return None
    return np.stack([tensors[f"working.{memory}.{name}"] for memory in range(memories)])


def _folded(tensors: Tensors, conv: str, semantic: str) -> tuple[Floats, Floats, Floats]:
    """Batch norm of given statistics is a scale and a shift; in double precision, so that nothing is lost to it."""
    mean, variance, weight, shift = (
        tensors[f"{conv}.norm.{each}"].astype(np.float64) for each in ("running_mean", "running_var", "weight", "bias")
    )
    scale = weight / np.sqrt(variance + EPSILON)
    pointwise = np.concatenate((tensors[f"{conv}.pointwise"], tensors[semantic]))[:, :, 0, 0]
    return (
        tensors[f"{conv}.depthwise"],
        (pointwise * scale[:, None]).astype(np.float32),
        (shift - mean * scale).astype(np.float32),
    )
