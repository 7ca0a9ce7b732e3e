"""Pictures that were passed over, and how that is told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparc.text import counted, one_line

SHOWN = 10


@dataclass(frozen=True)
class Skipped:
    """A picture that was neither learned nor counted, and why."""

    path: str
    reason: str


def told(skipped: Sequence[Skipped]) -> Iterator[str]:
    """A line that counts them, a line each for the first of them, and how many more there are.

    >>> list(told([Skipped("cat/1.png", "it is empty")]))
    ['1 picture was skipped:', 'cat/1.png: it is empty']
    """
    if skipped:
        yield f"{counted(len(skipped), 'picture')} {'was' if len(skipped) == 1 else 'were'} skipped:"
        yield from (one_line(f"{each.path}: {each.reason}") for each in skipped[:SHOWN])
    if len(skipped) > SHOWN:
        yield f"and {len(skipped) - SHOWN:,} more"
