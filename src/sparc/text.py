"""Words made fit to be shown."""

import math
import re
from collections.abc import Iterable


def one_line(text: str) -> str:
    r"""The text, with what would move the cursor or break the line written out.

    >>> print(one_line("cat\ndog\x1b[0m naïve"))
    cat\ndog\x1b[0m naïve
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def markdown(text: str) -> str:
    r"""The text, as it stands, inside a line of Markdown or a cell of a table.

    >>> print(markdown("a|b *c* <d>"))
    a\|b \*c\* \<d\>
    """
    return re.sub(r"([\\`*_\[\]<>#~|&$@])", r"\\\1", one_line(text))


def counted(number: int, one: str, many: str = "") -> str:
    """So many of something, in the singular where it is one.

    >>> counted(1, "task"), counted(2, "task"), counted(1200, "class", "classes")
    ('1 task', '2 tasks', '1,200 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spread(numbers: Iterable[int], one: str) -> str:
    """From the fewest to the most of something.

    >>> spread([3, 3], "seed"), spread([3, 1, 2], "seed")
    ('3 seeds', '1 to 3 seeds')
    """
    fewest, *_, most = sorted(numbers) * 2
    return counted(most, one) if fewest == most else f"{fewest} to {counted(most, one)}"


def amount(done: int, total: int | None) -> str:
    """How much is done, of how much if that is known.

    >>> amount(1200, 60000), amount(1200, None), amount(0, None)
    ('1,200 of 60,000', '1,200', '')
    """
    return f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""


def percent(value: float | None, digits: int = 2) -> str:
    """A percentage, or a dash for what is not defined.

    >>> percent(81.234), percent(None)
    ('81.23', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def size(count: float) -> str:
    """A number of bytes for people.

    >>> size(1_234_567), size(34_567), size(0)
    ('1.2 MB', '35 kB', '0 kB')
    """
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
