"""The buffer of rehearsal: a reservoir, in which every picture that was shown has the same chance to be.

Vitter, "Random Sampling with a Reservoir", ACM Transactions on Mathematical Software 1985. Pictures are kept as they
were before augmentation, a byte a pixel, and are augmented anew whenever they are replayed.
"""

import torch
from torch import Generator, Tensor

from sparc.nn.resizable_buffers import ResizableBuffers


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

    def __init__(self, size: int, generator: Generator) -> None:
        super().__init__()
        self.size = size
        self.generator = generator
        self.register_buffer("images", torch.empty(0, dtype=torch.uint8))
        self.register_buffer("labels", torch.empty(0, dtype=torch.int64))
        self.register_buffer("logits", torch.empty(0))
        self.register_buffer("seen", torch.tensor(0))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bytes(self) -> int:
        return self.images.nbytes + self.labels.nbytes + self.logits.nbytes

    def add(self, images: Tensor, labels: Tensor, logits: Tensor | None = None) -> None:
        """Offer a batch; each of them takes a place of its own while there is one, and then perhaps another's."""
        places = torch.arange(len(labels)) + int(self.seen)
        late = places >= self.size
        share = torch.rand(int(late.sum()), dtype=torch.float64, generator=self.generator)
        places[late] = (share * (places[late] + 1)).long()
        # Two may take the same place: the later one stays.
        kept = {place: item for item, place in enumerate(places.tolist()) if place < self.size}
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


def _put(held: Tensor, rows: int, places: dict[int, int], new: Tensor) -> Tensor:
    """With so many rows, and in these places these items of the new ones."""
    if len(held) < rows:
        held = torch.cat((held.reshape(len(held), *new.shape[1:]), new.new_zeros(rows - len(held), *new.shape[1:])))
    held[list(places)] = new[list(places.values())]
    return held
