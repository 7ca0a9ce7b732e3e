"""GCR: what is kept are the few pictures whose gradients, weighted, add up to those of all that were seen.

Tiwari, Killamsetty, Iyer and Shenoy, "GCR: Gradient Coreset based Replay Buffer Selection for Continual Learning", CVPR
2022. When a task is over, the buffer is chosen anew from what it held and from the task's pictures, the same number of
each class: orthogonal matching pursuit takes one picture after another, with weights that are not negative, until the
sum of their gradients is as near to that of all candidates as it gets; places that are left over are filled by chance,
with weight 1. Gradients are those of the last layer, of DER++'s loss, with which old pictures are replayed, each by its
weight; a contrast of two views is added to it.

While a task is learned, what was chosen stays as it is; in the first task, where nothing has been chosen yet, a
reservoir stands in. The authors choose from a sample of the task, which they replay from as well, with the logits that
the net gave while it learned; here it is the whole task, with the logits that it gives in the end. The contrast's
weight and the ridge are this project's.

Shapes: N pictures, C logits, D features.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot, pad

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.method import Batch
from sparc.methods.parts.buffer import Buffer
from sparc.methods.parts.contrastive import supervised_contrastive
from sparc.methods.rehearsal.derpp import DERpp, DerppSettings


@dataclass(frozen=True)
class GcrSettings(DerppSettings):
    gamma: float = 0.1
    """Weight of the contrast between replayed pictures."""
    temperature: float = 0.07
    """By which similarities are divided in the contrastive loss."""
    ridge: float = 0.001
    """How strongly weights are kept small when gradients are matched, as a share of a gradient's mean square."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--gamma", self.gamma)
        check_positive("--temperature", self.temperature)
        check_positive("--ridge", self.ridge)


class Coreset(Buffer):
    """A buffer whose pictures have a weight each: about how many they stand for."""

    weights: Tensor

    def __init__(self, size: int, generator: Generator) -> None:
        super().__init__(size, generator)
        self.register_buffer("weights", torch.empty(0))

    @property
    def bytes(self) -> int:
        return super().bytes + self.weights.nbytes

    def add(self, images: Tensor, labels: Tensor, logits: Tensor | None = None) -> None:
        super().add(images, labels, logits)
        self.weights = torch.ones(len(self), device=labels.device)

    def draw(self, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Pictures, labels, logits and weights, 1 on average, of so many, or of all that there are; none twice."""
        chosen = torch.randperm(len(self), generator=self.generator)[:count]
        weights = self.weights[chosen]
        return self.images[chosen], self.labels[chosen], self.logits[chosen], weights / weights.mean()


class GCR(DERpp):
    name = "gcr"
    title = "GCR"
    paper = "Tiwari et al., CVPR 2022"
    Settings = GcrSettings
    settings: GcrSettings
    buffer: Coreset

    def __init__(self, settings: GcrSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.buffer = Coreset(settings.buffer_size, self.generator)

    def loss(self, batch: Batch) -> Tensor:
        logits = self.net(batch.images)
        loss = batch.cross_entropy(logits)
        if len(self.buffer):
            raw_images, _, stored, weights = self.buffer.draw(self.replay_batch)
            errors = squared_errors(self.net(self.augment(raw_images, self.generator)), stored)
            loss = loss + self.alpha * (weights * errors).mean()
            raw_images, labels, _, weights = self.buffer.draw(self.replay_batch)
            said = self.net(self.augment(raw_images, self.generator))
            loss = loss + self.beta * (weights * batch.cross_entropy(said, labels, reduction="none")).mean()
            if self.settings.gamma:
                loss = loss + self.settings.gamma * self.contrast()
        if not batch.task.index:
            self.buffer.add(batch.raw_images, batch.labels, logits.detach())
        return loss

    def contrast(self) -> Tensor:
        """Of the logits for two views of some old pictures."""
        raw_images, labels, _ = self.buffer.sample(self.replay_batch)
        views = torch.cat([self.augment(raw_images, self.generator) for _ in range(2)])
        return supervised_contrastive(self.net(views), labels.repeat(2), self.settings.temperature)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        self.eval()
        buffer = self.buffer
        old = buffer.labels < task.classes.start
        if task.index:
            buffer.seen += len(task.train)
        images = torch.cat((buffer.images[old].cpu(), task.train.images))
        labels = torch.cat((buffer.labels[old].cpu(), task.train.labels))
        weights = torch.cat((buffer.weights[old].cpu(), torch.ones(len(task.train))))
        features = self.predict_batched(self.net.features, images)
        logits = self.net.head(features.to(self.device)).cpu()
        stored = logits.clone()
        if old.any():
            kept = buffer.logits[old].cpu()
            stored[: len(kept)] = pad(kept, (0, logits.shape[1] - kept.shape[1]), value=torch.nan)
        gradients = self.alpha * 2 * (logits - stored).nan_to_num() / logits.shape[1]
        gradients += self.beta * (logits.softmax(1) - one_hot(labels, logits.shape[1]))
        rows, found = self.choose(gradients, features, labels, weights)
        buffer.images, buffer.labels = images[rows].to(self.device), labels[rows].to(self.device)
        buffer.logits, buffer.weights = stored[rows].to(self.device), found.float().to(self.device)

    def choose(self, gradients: Tensor, features: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Which pictures stay, and their weights; by the gradients at their logits, [N, C], and features, [N, D]."""
        rows, found = [], []
        for label, count in enumerate(equal_shares(torch.bincount(labels).tolist(), self.buffer.size)):
            mine = torch.nonzero(labels == label).flatten()
            # A picture's gradient at the last layer is the outer product of the two, and at its bias the first alone.
            at_logits, at_features = (each[mine].double() for each in (gradients, features))
            products = (at_logits @ at_logits.T) * (at_features @ at_features.T + 1)
            chosen, matched = matching_pursuit(products, weights[mine].double(), count, self.settings.ridge)
            others = torch.ones(len(mine), dtype=torch.bool)
            others[chosen] = False
            spare = torch.nonzero(others).flatten()
            filled = spare[torch.randperm(len(spare), generator=self.generator)][: count - len(chosen)]
            rows.append(mine[torch.cat((chosen, filled))])
            found.append(torch.cat((matched, matched.new_ones(len(filled)))))
        return torch.cat(rows), torch.cat(found)


def squared_errors(logits: Tensor, stored: Tensor) -> Tensor:
    """[N]: means over all classes that there are now; those that were not known when it was stored count as 0."""
    return (logits[:, : stored.shape[1]] - stored).nan_to_num().square().sum(1) / logits.shape[1]


def matching_pursuit(products: Tensor, weights: Tensor, count: int, ridge: float) -> tuple[Tensor, Tensor]:
    """At most so many of N vectors, and weights above 0 with which their sum is nearest to the weighted sum of all.

    The vectors are known by their inner products, [N, N]. Each step takes the one that has most of what is missing yet,
    and solves for all weights anew; whoever then has none above 0 goes, for good.

    >>> vectors = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, -1.5]])
    >>> matching_pursuit(vectors @ vectors.T, torch.tensor([1.0, 3.0, 1.0]), count=2, ridge=0.0)
    (tensor([0, 1]), tensor([1.0000, 1.5000]))
    """
    missing = wanted = products @ weights
    squares = ridge * products.diagonal().mean()
    chosen, found = torch.empty(0, dtype=torch.int64), products.new_empty(0)
    untried = torch.ones(len(weights), dtype=torch.bool)
    while len(chosen) < count:
        best = missing.masked_fill(~untried, -torch.inf).argmax()
        if not untried[best] or missing[best] <= 0:
            break
        untried[best] = False
        chosen = torch.cat((chosen, best[None]))
        while len(chosen):
            among = products[chosen][:, chosen]
            found = torch.linalg.solve(among + squares * torch.eye(len(chosen)).to(among), wanted[chosen])
            if found.min() > 0:
                break
            chosen = chosen[torch.arange(len(chosen)) != found.argmin()]
        found = found[: len(chosen)]
        missing = wanted - products[:, chosen] @ found
    return chosen, found


def equal_shares(counts: list[int], total: int) -> list[int]:
    """How many of so many there are of each are taken: the same of each, as far as there are, and no more in all.

    >>> equal_shares([9, 1, 0, 9], 6)
    [3, 1, 0, 2]
    """
    shares = [0] * len(counts)
    while sum(shares) < min(total, sum(counts)):
        smallest = min(share for share, count in zip(shares, counts, strict=True) if share < count)
        shares[next(each for each, share in enumerate(shares) if share == smallest and share < counts[each])] += 1
    return shares
