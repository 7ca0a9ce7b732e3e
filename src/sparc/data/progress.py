"""How long work on data says how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called as (what is being done, units done, units in all if known) while a source downloads or decodes."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Say nothing."""


def amount(done: int, total: int | None) -> str:
    """
    >>> amount(1200, 60000), amount(1200, None), amount(0, None)
    ('1,200 of 60,000', '1,200', '')
    """
    return f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
