"""The buffer of rehearsal: pictures of old tasks, chosen by a policy.

Pictures are kept as they were before augmentation, a byte a pixel, and are augmented anew whenever they are replayed.
"""

from typing import Literal

import torch
from torch import Generator, Tensor

from sparc.data.imageset import ImageSet
from sparc.nn.resizable_buffers import ResizableBuffers

Policy = Literal["reservoir", "balanced"]
"""Which pictures stay when there is no room for all.

`reservoir`: every picture that was shown has the same chance to be there (Vitter, "Random Sampling with a Reservoir",
ACM Transactions on Mathematical Software 1985). `balanced`: classes have as many pictures each, as far as they can, and
every picture of a class the same chance (Chrysakis and Moens, "Online Continual Learning from Imbalanced Data", ICML
2020).
"""


class Buffer(ResizableBuffers):
    """
    >>> buffer = Buffer(2, torch.Generator().manual_seed(0))
    >>> buffer.add(torch.zeros(5, 1, 8, 8, dtype=torch.uint8), torch.arange(5))
    >>> len(buffer), int(buffer.seen), buffer.bytes
    (2, 5, 144)
    """

    images: Tensor
    labels: Tensor
    logits: Tensor
    """What a net said when the pictures were stored, where that is kept; nan for classes that it did not know then."""
    seen: Tensor
    """How many were offered."""
    seen_by_class: Tensor
    """How many of each class were offered, where the policy has to know."""

    def __init__(self, size: int, generator: Generator, policy: Policy = "reservoir") -> None:
        super().__init__()
        self.size = size
        self.generator = generator
        self.register_buffer("images", torch.empty(0, dtype=torch.uint8))
        self.register_buffer("labels", torch.empty(0, dtype=torch.int64))
        self.register_buffer("logits", torch.empty(0))
        self.register_buffer("seen", torch.tensor(0))
        self.balanced = policy == "balanced"
        if self.balanced:
            self.register_buffer("seen_by_class", torch.empty(0, dtype=torch.int64))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bytes(self) -> int:
        return self.images.nbytes + self.labels.nbytes + self.logits.nbytes

    def add(self, images: Tensor, labels: Tensor, logits: Tensor | None = None) -> None:
        """Offer a batch; each picture takes a row of its own while there is one, and then perhaps another's."""
        kept = self._balanced_rows(labels) if self.balanced else self._reservoir_rows(len(labels))
        self.seen += len(labels)
        rows = min(int(self.seen), self.size)
        self.images = _put(self.images, rows, kept, images)
        self.labels = _put(self.labels, rows, kept, labels)
        if logits is not None:
            unknown = logits.new_full((len(self.logits), logits.shape[1] - self.logits.shape[-1]), torch.nan)
            self.logits = _put(torch.cat((self.logits, unknown), 1) if len(unknown) else logits[:0], rows, kept, logits)

    def sample(self, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Pictures, labels and logits of so many, or of all that there are; none twice."""
        assert len(self), "nothing has been stored yet"
        chosen = torch.randperm(len(self), generator=self.generator)[:count]
        return self.images[chosen], self.labels[chosen], self.logits[chosen] if len(self.logits) else self.logits

    def joined(self, task: ImageSet) -> ImageSet:
        """A task's pictures and all that are kept, for a phase that learns from both."""
        images, labels = self.images.to(task.images.device), self.labels.to(task.labels.device)
        return ImageSet(torch.cat((task.images, images)), torch.cat((task.labels, labels)), task.class_names)

    def _reservoir_rows(self, count: int) -> dict[int, int]:
        """Which row takes which of the pictures offered."""
        rows = torch.arange(count) + int(self.seen)
        late = rows >= self.size
        share = torch.rand(int(late.sum()), dtype=torch.float64, generator=self.generator)
        rows[late] = (share * (rows[late] + 1)).long()
        # Two may take the same row: the later one stays.
        return {row: item for item, row in enumerate(rows.tolist()) if row < self.size}

    def _balanced_rows(self, labels: Tensor) -> dict[int, int]:
        """The same: one of the largest class makes room, and within that class it is a reservoir."""
        classes = max(int(labels.max()) + 1, len(self.seen_by_class))
        seen = torch.nn.functional.pad(self.seen_by_class.cpu(), (0, classes - len(self.seen_by_class)))
        there, kept = self.labels.tolist(), {}
        for item, label in enumerate(labels.tolist()):
            seen[label] += 1
            row = len(there)
            if row < self.size:
                there.append(label)
            else:
                counts = torch.bincount(torch.tensor(there), minlength=classes)
                largest = label if counts[label] == counts.max() else int(counts.argmax())
                rows = [index for index, other in enumerate(there) if other == largest]
                pick = int(torch.rand((), generator=self.generator) * (seen[label] if largest == label else len(rows)))
                if pick >= len(rows):
                    continue
                row = rows[pick]
                there[row] = label
            kept[row] = item
        self.seen_by_class = seen.to(self.labels.device)
        return kept


def _put(held: Tensor, rows: int, kept: dict[int, int], new: Tensor) -> Tensor:
    """With so many rows, and in some of them new ones."""
    if len(held) < rows:
        held = torch.cat((held.reshape(len(held), *new.shape[1:]), new.new_zeros(rows - len(held), *new.shape[1:])))
    held[list(kept)] = new[list(kept.values())]
    return held
