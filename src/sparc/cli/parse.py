"""Flags from dataclasses, for every verb alike."""

import contextlib
import io
import sys
from typing import Any

import tyro

from sparc.errors import InputError


def parse(form: Any, verb: str, description: str | None, arguments: list[str]) -> Any:
    """An instance of the form, filled in from the flags."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(form, prog=f"sparc {verb}", description=description, args=arguments)
    except SystemExit as end:
        # tyro draws a box around a value that the form refuses; ours is a sentence already.
        cause: BaseException | None = end
        while cause is not None:
            if isinstance(cause, InputError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        sys.stderr.write(said.getvalue())
        raise


def no_flags() -> None:
    """The form of a verb that takes none."""
