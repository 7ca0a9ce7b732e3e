"""What can be set of a method: plain dataclasses, which no net is needed for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sparc.errors import check_choices
from sparc.nn.layout import layer_filters


@dataclass(frozen=True)
class Settings:
    """A method's own settings: none, unless a subclass has some."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """Names that fields had in earlier versions, which are still understood."""

    def __post_init__(self) -> None:
        check_choices(self)


@dataclass(frozen=True)
class NetSettings(Settings):
    """Of nets in layers of residual blocks, which can be made wider and deeper."""

    width: float = 1.0
    """Filters of the first layer, as a multiple of 64."""
    depth: int | None = None
    """Layers of two residual blocks; without it as many as suit the pictures, at most 4."""

    def __post_init__(self) -> None:
        super().__post_init__()
        layer_filters(self.width, 1 if self.depth is None else self.depth)
