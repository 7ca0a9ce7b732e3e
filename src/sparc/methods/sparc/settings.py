"""What can be set of SPARC, its ablations and Chorus."""

from dataclasses import dataclass
from typing import Literal

from sparc.data.pictures import LARGEST_SIDE
from sparc.errors import InputError, check_not_negative, check_share
from sparc.methods.settings import NetSettings
from sparc.nn.start_numbers import SIDE, Start
from sparc.text import counted

Inherit = Literal["newest", "alike", "nothing"]


@dataclass(frozen=True)
class WorkingSettings(NetSettings):
    width: float = 0.5
    """Filters of the first layer of each working memory, as a multiple of 64."""


@dataclass(frozen=True)
class SemanticSettings(WorkingSettings):
    shared: float = 0.5
    """Share of the point-wise filters that is the semantic memory's; 0 isolates the tasks completely."""
    alpha: float = 0.99
    """How much of the semantic memory is kept at each consolidation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("--alpha", self.alpha)


@dataclass(frozen=True)
class RenormalizationSettings(WorkingSettings):
    kappa: float = 5.0
    """Where re-normalization puts the largest activation of every head; 0 leaves the heads as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--kappa", self.kappa)


@dataclass(frozen=True)
class SparcSettings(RenormalizationSettings, SemanticSettings):
    pass


@dataclass(frozen=True)
class ChorusSettings(SparcSettings):
    alpha: float = 1.0
    """How much of the semantic memory is kept at each consolidation; with all of it old features stay as they are."""
    inherit: Inherit = "newest"
    """What a working memory starts as: the newest one, the one whose features tell the new classes apart best, or
    random weights."""
    statistics: int = 256
    """Features in which each working memory describes classes; 0 leaves its answer to the head."""
    patches: int = 960
    """Features of small patches in which all classes are described, without training; 0 does without them."""
    start: Start = "nothing"
    """With lite0, classes are described in the features of a net that was pre-trained on ImageNet, instead of in
    patches, and nothing is trained."""
    start_size: int = SIDE
    """Pixels each way that pictures are brought to for the start."""
    weigh: bool = True
    """Let a few pictures that a working memory was not trained on say how much heads and statistics count; --no-weigh
    gives them usual weights."""
    mirror: bool = True
    """Answer by the mean over a picture and its mirror image, where mirror images are learned from; --no-mirror looks
    once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("statistics", "patches"):
            if (count := getattr(self, name)) < 0:
                raise InputError(f"--{name} {count} is no number of features: it must be at least 0")
        if not 32 <= self.start_size <= LARGEST_SIDE:
            raise InputError(f"--start-size {self.start_size} is out of range: choose from 32 to {LARGEST_SIDE}")

    def mirrors(self, flip: bool) -> bool:
        """Whether a net answers by mirror images too; `flip` says whether they are learned from."""
        return self.mirror and flip and self.start == "nothing"

    def check_channels(self, channels: int) -> None:
        if self.start != "nothing" and channels != 3:
            raise InputError(
                f"--start {self.start} is for coloured pictures: these have {counted(channels, 'channel')}"
            )

    @property
    def describes_all(self) -> bool:
        """Whether there are common features, in which every class is described."""
        return self.patches > 0 or self.start != "nothing"
