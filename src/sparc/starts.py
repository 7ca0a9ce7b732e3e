"""What a new model starts from: a net that has seen the world, where that suits, or nothing."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

from torch import Tensor

from sparc.methods.sparc.settings import ChorusSettings
from sparc.nn.lite0_weights import are_installed
from sparc.nn.patch_numbers import PATCHES
from sparc.nn.start_numbers import Start
from sparc.text import counted

StartChoice = Literal["auto", "nothing", "lite0"]
SMALLEST = 32
"""Pixels each way; with 20 pictures of each of 14 classes of CIFAR-100, of that size, 74 % are right with the start and
49 % from scratch (one draw, at a start size of 128)."""
GLANCED = 24
"""Pictures that are looked at to choose a start."""
GREY = 3.0
"""Colour channels that differ by less, of 255, in the mean over some pictures, are those of grey ones."""
USUAL = ChorusSettings(patches=PATCHES.features)
"""Settings of a new model. Runs, which count every number that is kept, have fewer features of patches: by these
alone, 49.4 and 50.9 % of held-out pictures of all classes of CIFAR-100 are right with 960 and all 1,440 (one draw), and
the covariance has 4 and 8 MB."""
_FROM_SCRATCH = [field.name for field in fields(ChorusSettings) if field.name not in ("start", "start_size")]


@dataclass(frozen=True, eq=False)
class Glance:
    """Some of the pictures that a model is to be made for."""

    images: Tensor
    """uint8, N × channels × height × width, perhaps smaller than they are."""
    side: int
    """Of the usual picture as it is, in pixels."""


def choose_start(
    asked: StartChoice, settings: ChorusSettings, trains: bool, look: Callable[[], Glance]
) -> tuple[Start, str]:
    """The start, and why; `trains` says that somebody has said how long to train."""
    if asked != "auto":
        return asked, "as it was asked for"
    for name in _FROM_SCRATCH:
        if getattr(settings, name) != getattr(USUAL, name):
            return "nothing", f"{name} is a setting of models without a start"
    if trains:
        return "nothing", "it was said how long to train"
    if not are_installed():
        return "nothing", "sparc-cl[start] is not installed, which names more coloured photographs right"
    glance = look()
    if glance.images.shape[1] != 3:
        return "nothing", f"pictures have {counted(glance.images.shape[1], 'channel')}, and the start is for colours"
    if glance.side < SMALLEST:
        return "nothing", f"pictures of {glance.side} pixels are too small for the start"
    if colourfulness(glance.images) < GREY:
        return "nothing", "pictures are grey, and the start is for colours"
    return "lite0", f"pictures are coloured, and large enough with {glance.side} pixels"


def colourfulness(images: Tensor) -> float:
    """How far apart the channels of RGB pictures lie, in the mean.

    >>> import torch
    >>> colourfulness(torch.full((2, 3, 8, 8), 7, dtype=torch.uint8))
    0.0
    """
    channels = images.float()
    return float((channels.amax(1) - channels.amin(1)).mean()) if len(images) else 0.0
