"""What methods that replay old pictures share: one net and a buffer."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sparc.errors import InputError
from sparc.methods.buffer import Buffer
from sparc.methods.method import Costs
from sparc.methods.single import SingleNet, SingleNetSettings
from sparc.nn.head import count_parameters


@dataclass(frozen=True)
class RehearsalSettings(SingleNetSettings):
    buffer: int = 200
    """Pictures of old tasks that are kept."""
    replay: int = 32
    """Pictures replayed at every step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for flag, value in (("--buffer", self.buffer), ("--replay", self.replay)):
            if value < 2:
                raise InputError(f"{flag} {value} is too small: give at least 2")


class Rehearsal(SingleNet):
    kind = "rehearsal"
    Settings = RehearsalSettings
    forward_passes = 1

    def __init__(self, settings: RehearsalSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.replayed = settings.replay
        self.buffer = Buffer(settings.buffer, self.generator)

    def replay(self) -> tuple[Tensor, Tensor, Tensor]:
        """Some of what is kept: pictures in a new view, labels, logits."""
        images, labels, logits = self.buffer.sample(self.replayed)
        return self.augment(images, self.generator), labels, logits

    def costs(self) -> Costs:
        return Costs(count_parameters(self.net), forward=self.forward_passes, buffer_bytes=self.buffer.bytes)
