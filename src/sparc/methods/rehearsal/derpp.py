"""Dark Experience Replay++: old pictures are replayed with the logits that the net gave them, and with their labels.

Buzzega, Boschini, Porrello, Abati and Calderara, "Dark Experience for General Continual Learning: a Strong, Simple
Baseline", NeurIPS 2020. The batch and the two draws from the buffer go through the net one after another: joined, they
would share batch norm's statistics.

As the authors', the head has room for all classes that will ever come, where their number is known: what the net thinks
of classes to come is stored and replayed as well, so that old pictures are not taken for new classes later. Where it is
not known, the head grows, and logits are compared for the classes that there were when a picture was stored.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sparc.errors import check_not_negative
from sparc.methods.method import Batch
from sparc.methods.parts.rehearsal import Rehearsal, RehearsalSettings
from sparc.methods.parts.single import WholeHead


@dataclass(frozen=True)
class DerppSettings(RehearsalSettings):
    alpha: float | None = None
    """Weight of the replayed logits' squared error; without it the authors' choice, .2 for a buffer of 500 pictures
    or more, .1 for a smaller one."""
    beta: float = 0.5
    """Weight of the replayed labels' cross-entropy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--alpha", self.alpha or 0)
        check_not_negative("--beta", self.beta)


class DERpp(WholeHead, Rehearsal):
    name = "der++"
    title = "DER++"
    paper = "Buzzega et al., NeurIPS 2020"
    Settings = DerppSettings

    def __init__(self, settings: DerppSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.alpha = settings.alpha if settings.alpha is not None else 0.1 if settings.buffer_size < 500 else 0.2
        self.beta = settings.beta

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        loss = batch.cross_entropy(logits)
        if len(self.buffer):
            images, _, stored = self.replay()
            loss = loss + self.alpha * squared_error(self.net(images), stored)
            images, labels, _ = self.replay()
            loss = loss + self.beta * batch.cross_entropy(self.net(images), labels)
        self.buffer.add(batch.raw_images, batch.labels, logits.detach())
        return loss


def squared_error(logits: Tensor, stored: Tensor) -> Tensor:
    """Mean over all that there are now; those that were not known when a picture was stored are nan, and count as 0."""
    known = ~stored.isnan()
    return (logits[:, : stored.shape[1]] - stored)[known].square().sum() / logits.numel()
