"""The one exception that speaks to the user."""


class InputError(ValueError):
    """What the user gave cannot be used; the message says what is wrong, where, and what to do, in one sentence."""
