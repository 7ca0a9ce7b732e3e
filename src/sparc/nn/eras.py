"""How models of each age describe classes: one that was made before goes on as it began."""

from collections.abc import Mapping
from typing import NamedTuple

from sparc.nn.described import USUAL_SHRINKAGE, Shrinkage
from sparc.nn.patch_numbers import PATCHES, PatchKind
from sparc.nn.start_numbers import START_SHRINKAGE


class Era(NamedTuple):
    patches: PatchKind = PATCHES
    start: Shrinkage = START_SHRINKAGE


ERAS: Mapping[int, Era] = {6: Era(PatchKind(192, 0), USUAL_SHRINKAGE), 7: Era(PatchKind(96, 2)), 8: Era()}
"""By the version of model files in which each ended, or which is today's."""
TODAY = 8
