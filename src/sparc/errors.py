"""The one exception that speaks to the user, and checks that raise it."""

import math
from typing import Literal, get_args, get_origin, get_type_hints


class InputError(ValueError):
    """What the user gave cannot be used; the message says what is wrong, where, and what to do, in one sentence."""


class UnreadableError(InputError):
    """One file cannot be used, whatever becomes of those beside it."""

    def __init__(self, where: object, what: str) -> None:
        super().__init__(f"{where} {what}")
        self.reason = f"it {what}"
        """For whoever shows it beside the path."""


def reason(error: Exception) -> str:
    """What is wrong with a file, from what reading it raised.

    >>> reason(KeyError("format")), reason(ValueError("too long"))
    ("it has no 'format'", 'too long')
    """
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def check_positive(flag: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{flag} {value:g} must be a positive number")


def check_share(flag: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{flag} {value:g} must lie between 0 and 1")


def check_not_negative(flag: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"{flag} {value:g} must be a number that is not negative")


def check_choices(settings: object) -> None:
    """Refuse what is none of the values that a field's type names."""
    for name, kind in get_type_hints(type(settings)).items():
        if get_origin(kind) is Literal and (value := getattr(settings, name)) not in get_args(kind):
            flag = name.replace("_", "-")
            raise InputError(f"--{flag} {value} is not known: choose {', '.join(get_args(kind))}")
