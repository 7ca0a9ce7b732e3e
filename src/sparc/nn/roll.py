"""Who has a say about which classes: heads about those that they were trained with, discriminants about all that were
taught since.

It is plain lists and numbers, so that the net and the graph that answers without torch reckon with the same.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

GRID = 2
"""The map before the last is pooled into so many cells each way."""
TEMPERATURE = 3.0
"""What discriminants are divided by: features are not quite as Gaussian as they are taken to be."""
REST = 2.0
"""What stands for a head's word on a class that none speaks for: about what the loudest says of pictures that it does
not know, where heads are re-normalized to 5, so that discriminants decide."""
ENOUGH = 10_000
"""Pictures from which a working memory learns enough to be trusted among all classes; with fewer, it is by their share
of them that all have a say in which portion a picture belongs to, and all of it in which class of the portion.

With 14 classes of CIFAR-100 in four portions, 100 and 500 pictures of each, 61 and 71 % of test pictures are right so
(one draw), 52 and 65 % where every working memory is trusted, and 62 and 69 % without any.
"""


class Weights(NamedTuple):
    """How much heads, and statistics of working memories, count beside statistics in common features.

    The usual ones are from held-out pictures of three tasks of Seq-CIFAR100 of 20 epochs each.
    """

    heads: float = 1.5
    """Of a head's logit, beside the mean of the discriminants' log posteriors."""
    memories: float = 1.0
    """Of each working memory's discriminants in that mean, where those of the common features have 1."""
    between: float = 1.0
    """Share of the heads' weight that is left where portions are compared: heads have not seen each other's classes."""


class Portion(NamedTuple):
    """What was taught at a time."""

    classes: tuple[int, ...]
    """Among all, in the order in which they were first seen; some may have been taught before."""
    seen: int | None
    """From how many pictures its working memory has learned, with those that were spared and those of older ones that
    it has started from; None where it has none."""
    weights: Weights | None = None
    """As its own held-out pictures are told apart best, if there were any."""

    @property
    def has_memory(self) -> bool:
        return self.seen is not None


class Say(NamedTuple):
    """Which classes somebody speaks for, and how much their word counts: `trust` among all classes alone."""

    classes: Sequence[int]
    trust: float = 1.0
    weight: float = 1.0

    def counts(self, by_trust: bool) -> float:
        return self.weight * (self.trust if by_trust else 1.0)


class Roll(NamedTuple):
    """All that was taught, and in what it is described."""

    portions: Sequence[Portion]
    statistics: bool
    """Whether working memories describe classes."""
    common: bool
    """Whether there are features that all classes have in common."""

    @property
    def describes(self) -> bool:
        """Whether anybody has statistics of classes."""
        return self.statistics or self.common

    @property
    def classes(self) -> int:
        """How many there are, of all portions together."""
        return 1 + max((label for portion in self.portions for label in portion.classes), default=-1)

    @property
    def weights(self) -> Weights:
        """The geometric mean of those of all portions: what is told apart in one is told apart by the same means in
        another, and 300 pictures of each say enough.
        """
        found = [portion.weights for portion in self.portions if portion.weights is not None]
        return Weights(*np.exp(np.log(found).mean(0)).tolist()) if found else Weights()

    def unweighed(self) -> Self:
        """Itself, but with the usual weights instead of those that were found."""
        return self._replace(portions=[portion._replace(weights=None) for portion in self.portions])

    def heads(self) -> list[Say]:
        weights = self.weights if self.describes else Weights(1.0)
        taught = [list(portion.classes) for portion in self.portions if portion.has_memory]
        return [
            Say(classes, trust * weights.between, weights.heads)
            for classes, trust in zip(taught, self._trusts(), strict=True)
        ]

    def _trusts(self) -> list[float]:
        """Of each working memory."""
        # Without common features there is nobody else to be asked.
        enough = ENOUGH if self.common else 1
        return [min(portion.seen / enough, 1.0) for portion in self.portions if portion.seen is not None]

    def heard_classes(self) -> list[list[int]]:
        """Those that each of all voices has heard of, as often as they were taught since it is there: a working
        memory's are its own and what was taught since.
        """
        starts = [index for index, portion in enumerate(self.portions) if portion.has_memory] if self.statistics else []
        starts += [0] if self.common else []
        return [[label for portion in self.portions[start:] for label in portion.classes] for start in starts]

    def known_classes(self) -> list[list[int]]:
        """The same, each once, in the order in which they were heard of first."""
        return [list(dict.fromkeys(heard)) for heard in self.heard_classes()]

    def voices(self) -> list[Say]:
        """Of each working memory, and of the common features."""
        memories, trusts = self.weights.memories, self._trusts() if self.statistics else []
        counts = [(trust, memories) for trust in trusts] + [(1.0, 1.0)] * self.common
        return [Say(known, *count) for known, count in zip(self.known_classes(), counts, strict=True)]

    def first_taught(self) -> list[list[int]]:
        """The classes that were first taught together."""
        found, seen = [], set[int]()
        for portion in self.portions:
            found.append([label for label in portion.classes if label not in seen])
            seen.update(portion.classes)
        return [classes for classes in found if classes]


def head_counts(heads: Sequence[Say], by_trust: bool) -> float:
    """How much heads count: by their weight, and among all classes by what they are trusted on average, each as much as
    any other, or the classes of one that is trusted less would be outvoted whatever the picture.

    With 14 classes of CIFAR-100 in four portions and 400 pictures of each, 73.6 % of held-out pictures are right so,
    and 69.9 % where each head counts by its own (one draw).
    """
    return sum(head.counts(by_trust) for head in heads) / len(heads)


def rest(classes: int, heads: Sequence[Say], by_trust: bool) -> NDArray[np.float32]:
    """[C]: what stands for a head's word on a class that none speaks for."""
    found = np.full(classes, REST * head_counts(heads, by_trust), np.float32)
    for head in heads:
        found[list(head.classes)] = -np.inf
    return found


def answers(classes: int, voices: Sequence[Say], by_trust: bool) -> NDArray[np.float32]:
    """[C]: how many discriminants know each class, each as far as it counts."""
    found = np.zeros(classes, np.float32)
    for voice in voices:
        found[list(voice.classes)] += np.float32(voice.counts(by_trust))
    return found
