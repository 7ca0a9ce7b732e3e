"""Dark Experience Replay++: old pictures are replayed with the logits that the net gave them, and with their labels.

Buzzega, Boschini, Porrello, Abati and Calderara, "Dark Experience for General Continual Learning: a Strong, Simple
Baseline", NeurIPS 2020. The batch and the two draws from the buffer go through the net one after another: joined, they
would share batch norm's statistics. The head grows, so logits are compared for the classes that there were when a
picture was stored, and for no others.
"""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from sparc.errors import InputError
from sparc.methods.method import Batch
from sparc.methods.rehearsal import Rehearsal, RehearsalSettings


@dataclass(frozen=True)
class DerppSettings(RehearsalSettings):
    alpha: float = 0.1
    """Weight of the replayed logits' squared error; the authors take .1 with 200 pictures and .2 with 500."""
    beta: float = 0.5
    """Weight of the replayed labels' cross-entropy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for flag, value in (("--alpha", self.alpha), ("--beta", self.beta)):
            if not 0 <= value < math.inf:
                raise InputError(f"{flag} {value:g} must be a number that is not negative")


class DERpp(Rehearsal):
    name = "der++"
    title = "DER++"
    paper = "Buzzega et al., NeurIPS 2020"
    Settings = DerppSettings
    forward_passes = 3

    def __init__(self, settings: DerppSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.alpha, self.beta = settings.alpha, settings.beta

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        loss = cross_entropy(logits, batch.labels)
        if len(self.buffer):
            images, _, stored = self.replay()
            loss = loss + self.alpha * squared_error(self.net(images), stored)
            images, labels, _ = self.replay()
            loss = loss + self.beta * cross_entropy(self.net(images), labels)
        self.buffer.add(batch.originals, batch.labels, logits.detach())
        return loss


def squared_error(logits: Tensor, stored: Tensor) -> Tensor:
    """Mean over the classes that were known when the pictures were stored; the others are nan there."""
    known = ~stored.isnan()
    return (logits[:, : stored.shape[1]] - stored)[known].square().mean()
