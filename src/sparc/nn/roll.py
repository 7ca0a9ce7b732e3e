"""Who has a say about which classes: heads about those that they were trained with, discriminants about all that were
taught since.

It is plain lists and numbers, so that the net and the graph that answers without torch reckon with the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID = 2
"""The map before the last is pooled into so many cells each way."""
TEMPERATURE = 3.0
"""What discriminants are divided by: features are not quite as Gaussian as they are taken to be.

This and the weight of the heads are from held-out pictures of three tasks of Seq-CIFAR100, where all of 2 to 3 and 0.5
to 1.5 lie within a point.
"""
HEAD_WEIGHT = 1.5
"""How much a head's logit counts beside a log posterior of the discriminants."""
REST = 2.0
"""What stands for a head's word on a class that none speaks for: about what the loudest says of pictures that it does
not know, where heads are re-normalized to 5, so that discriminants decide."""
ENOUGH = 10_000
"""Pictures from which a working memory learns enough to be trusted among all classes; with fewer, it is by their share
of them that all have a say in which portion a picture belongs to, and all of it in which class of the portion.

With 14 classes of CIFAR-100 in four portions, 100 and 500 pictures of each, 61 and 71 % of test pictures are right so
(one draw), 52 and 65 % where every working memory is trusted, and 62 and 69 % without any.
"""


class Portion(NamedTuple):
    """What was taught at a time."""

    classes: tuple[int, ...]
    """Among all, in the order in which they were first seen; some may have been taught before."""
    seen: int | None
    """From how many pictures its working memory has learned, with those of older ones that it has started from; None
    where it has none."""

    @property
    def has_memory(self) -> bool:
        return self.seen is not None


class Say(NamedTuple):
    """Which classes somebody speaks for, and how much their word counts among all classes."""

    classes: Sequence[int]
    trust: float = 1.0


class Roll(NamedTuple):
    """All that was taught, and in what it is described."""

    portions: Sequence[Portion]
    statistics: bool
    """Whether working memories describe classes."""
    common: bool
    """Whether there are features that all classes have in common."""

    @property
    def classes(self) -> int:
        """How many there are, of all portions together."""
        return 1 + max((label for portion in self.portions for label in portion.classes), default=-1)

    def heads(self) -> list[Say]:
        # Without common features there is nobody else to be asked.
        enough = ENOUGH if self.common else 1
        return [
            Say(list(portion.classes), min(portion.seen / enough, 1.0))
            for portion in self.portions
            if portion.seen is not None
        ]

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
        trusts = [head.trust for head in self.heads()] if self.statistics else []
        trusts += [1.0] if self.common else []
        return [Say(known, trust) for known, trust in zip(self.known_classes(), trusts, strict=True)]

    def first_taught(self) -> list[list[int]]:
        """The classes that were first taught together."""
        found, seen = [], set[int]()
        for portion in self.portions:
            found.append([label for label in portion.classes if label not in seen])
            seen.update(portion.classes)
        return [classes for classes in found if classes]


def head_trust(heads: Sequence[Say], by_trust: bool) -> float:
    """How much heads count: among all classes by what they are trusted on average, each as much as any other, or the
    classes of one that is trusted less would be outvoted whatever the picture.

    With 14 classes of CIFAR-100 in four portions and 400 pictures of each, 73.6 % of held-out pictures are right so,
    and 69.9 % where each head counts by its own (one draw).
    """
    return sum(head.trust for head in heads) / len(heads) if by_trust else 1.0


def rest(classes: int, heads: Sequence[Say], by_trust: bool) -> NDArray[np.float32]:
    """[C]: what stands for a head's word on a class that none speaks for."""
    found = np.full(classes, REST * head_trust(heads, by_trust), np.float32)
    for head in heads:
        found[list(head.classes)] = -np.inf
    return found


def answers(classes: int, voices: Sequence[Say], by_trust: bool) -> NDArray[np.float32]:
    """[C]: how many discriminants know each class, each as far as it is trusted."""
    found = np.zeros(classes, np.float32)
    for voice in voices:
        found[list(voice.classes)] += np.float32(voice.trust if by_trust else 1.0)
    return found
