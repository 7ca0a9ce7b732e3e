"""How models of each age describe classes: one that was made before goes on as it began."""

from collections.abc import Mapping
from typing import NamedTuple

from sparc.nn.described import USUAL_SHRINKAGE, Shrinkage
from sparc.nn.patch_numbers import PATCHES, PatchKind
from sparc.nn.start_numbers import START_SHRINKAGE


class Era(NamedTuple):
    """What all models that were made in some years have in common."""

    patches: PatchKind
    start_shrinkage: Shrinkage


ERAS: Mapping[int, Era] = {
    1: Era(PatchKind(filters=192, peaks=0), USUAL_SHRINKAGE),
    7: Era(PatchKind(filters=96, peaks=2), START_SHRINKAGE),
    8: Era(PATCHES, START_SHRINKAGE),
}
"""By the version of model files with which each began. Those there were do not change, nor does today's: another way to
describe classes begins another."""
TODAY = max(ERAS)
