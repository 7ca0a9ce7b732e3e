"""What methods that replay old pictures share: one net and a buffer."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from sparc.errors import InputError
from sparc.methods.parts.buffer import Buffer
from sparc.methods.parts.single import SingleNet, SingleNetSettings


@dataclass(frozen=True)
class RehearsalSettings(SingleNetSettings):
    renamed: ClassVar = {"buffer": "buffer_size", "replay": "replay_batch"}

    buffer_size: int = 200
    """Pictures of old tasks that are kept."""
    replay_batch: int = 32
    """Pictures replayed at every step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for flag, value in (("--buffer-size", self.buffer_size), ("--replay-batch", self.replay_batch)):
            if value < 2:
                raise InputError(f"{flag} {value} is too small: give at least 2")


class Rehearsal(SingleNet):
    Settings = RehearsalSettings

    def __init__(self, settings: RehearsalSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.replay_batch = settings.replay_batch
        self.buffer = Buffer(settings.buffer_size, self.generator)

    def replay(self) -> tuple[Tensor, Tensor, Tensor]:
        """Some of what is kept: pictures in a new view, labels, logits."""
        images, labels, logits = self.buffer.sample(self.replay_batch)
        return self.augment(images, self.generator), labels, logits
