"""How long work on data says how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called as (what is being done, units done, units in all if known) while a source downloads or decodes."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Say nothing."""
