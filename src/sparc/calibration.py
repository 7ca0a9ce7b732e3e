"""How far a model can be relied on: how sure it is when it is right, and how strange the pictures are that it knows.

Pictures that were held out say so when a task has just been learned, and what they say is kept as sums and sorted
numbers, so that all tasks' pictures speak together although none is there any more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32] | NDArray[np.float64]
TEMPERATURES = tuple(2 ** (step / 4) for step in range(-12, 13))
"""What scores may be divided by before they become probabilities."""
DEVIATION = 0.5
"""Of the logarithm of a temperature, as it is taken to be before a picture was seen: few pictures, all of them right,
should not make a model certain of everything."""
BINS = 10
"""By how sure the model is, from 0 to 1."""
FEWEST = 10
"""Pictures held out, from which it is known how strange a known one may be."""
MOST = 200
"""Pictures of a task whose strangeness is kept."""


@dataclass(frozen=True)
class Bin:
    """Pictures that were named with about the same probability."""

    pictures: int
    sure: float
    """The sum of the probabilities."""
    right: int

    def __post_init__(self) -> None:
        if not (0 <= self.right <= self.pictures < 2**53 and 0 <= self.sure <= self.pictures + 1e-6):
            raise ValueError("a bin should have a number of pictures, and no more that were right")


@dataclass(frozen=True)
class Check:
    """What held-out pictures have said when a task had just been learned."""

    classes: int
    """That the model knew then."""
    losses: tuple[float, ...]
    """The sum over the pictures of −log p of the right class, at each of `TEMPERATURES`."""
    before: tuple[Bin, ...]
    """How sure it was, and how often right, by its scores as they are."""
    after: tuple[Bin, ...]
    """The same with the temperature of that time."""
    strangeness: tuple[float, ...] = ()
    """Of the pictures, in rising order; of some of them where there are many."""

    def __post_init__(self) -> None:
        if len(self.losses) != len(TEMPERATURES) or not len(self.before) == len(self.after) == BINS:
            raise ValueError("a check should have a loss for each temperature, and ten bins")
        if len(self.strangeness) > MOST or list(self.strangeness) != sorted(self.strangeness):
            raise ValueError("a check should have the strangeness of some pictures in rising order")


def checked(scores: Floats, labels: NDArray[np.int64], strangeness: Floats | None, earlier: Sequence[Check]) -> Check:
    """What these scores [B, C] say, after what was said before."""
    right = np.arange(len(labels)), labels
    losses = [round(-float(log_softmax(scores / each)[right].sum()), 6) + 0.0 for each in TEMPERATURES]
    kept = () if strangeness is None else _some(strangeness)
    before = reliability(scores, labels)
    check = Check(scores.shape[1], tuple(losses), before, before, kept)
    after = reliability(scores / temperature([*earlier, check]), labels)
    return replace(check, after=after)


def temperature(checks: Sequence[Check]) -> float:
    """At which all pictures together are least surprising; 1 where there are none."""
    losses = [math.log(each) ** 2 / (2 * DEVIATION**2) for each in TEMPERATURES]
    for check in checks:
        losses = [loss + own for loss, own in zip(losses, check.losses, strict=True)]
    return TEMPERATURES[losses.index(min(losses))]


def known_strangeness(checks: Sequence[Check], classes: int) -> list[float]:
    """Of held-out pictures, in rising order, as far as it is comparable now that there are so many classes.

    A single class has a scale of its own, and with many classes forgotten others are stranger than they were.
    """
    alike = [check for check in checks if (check.classes > 1) == (classes > 1) and 3 * check.classes <= 4 * classes]
    return sorted(value for check in alike for value in check.strangeness)


def limit(strangeness: Sequence[float], share: float) -> float | None:
    """How strange a picture may be, so that this share of known ones pass; None where these are few."""
    if len(strangeness) < FEWEST:
        return None
    return strangeness[min(math.ceil((len(strangeness) + 1) * share), len(strangeness)) - 1]


def reliability(scores: Floats, labels: NDArray[np.int64]) -> tuple[Bin, ...]:
    """How sure a model is by its scores [B, C], and how often it is right."""
    probabilities = np.exp(log_softmax(scores))
    sure, given = probabilities.max(1, initial=0), scores.argmax(1)
    index = (sure * BINS).astype(np.int64).clip(max=BINS - 1)
    columns = (
        np.bincount(index, weights=values, minlength=BINS) for values in (np.ones_like(sure), sure, given == labels)
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(Bin(int(pictures), round(total, 6), int(right)) for pictures, total, right in rows)


def together(all_bins: Sequence[Sequence[Bin]]) -> tuple[Bin, ...]:
    """Bins of several tasks as one."""
    return tuple(
        Bin(sum(each.pictures for each in bins), sum(each.sure for each in bins), sum(each.right for each in bins))
        for bins in zip(*all_bins, strict=True)
    )


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """The expected one, in percent: how far probabilities lie from how often the model is right.

    >>> calibration_error([Bin(pictures=10, sure=9.0, right=8), Bin(pictures=30, sure=15.0, right=15)])
    2.5
    """
    pictures = sum(each.pictures for each in bins)
    return 100 * sum(abs(each.sure - each.right) for each in bins) / pictures if pictures else None


def log_softmax(scores: Floats) -> NDArray[np.float64]:
    """Logarithms of probabilities, in each row, in double precision."""
    off: NDArray[np.float64] = scores.astype(np.float64) - scores.max(1, keepdims=True, initial=-np.inf)
    off -= np.log(np.exp(off).sum(1, keepdims=True))
    return off


def _some(strangeness: Floats) -> tuple[float, ...]:
    """In rising order; where they are many, some that lie evenly among them."""
    found = np.sort(strangeness.astype(np.float64))
    if len(found) > MOST:
        found = found[np.linspace(0, len(found) - 1, MOST).round().astype(np.int64)]
    return tuple(round(value, 6) for value in found.tolist())
