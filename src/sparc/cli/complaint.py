"""What is wrong with what was typed, in one sentence; tyro's own are for programmers."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from sparc.cli.help_text import options
from sparc.discovery import near, unknown

KINDS = {
    "INT": "a whole number",
    "INT …": "whole numbers",
    "FLOAT": "a number",
    "FLOAT …": "numbers",
    "SHARE": "a number",
    "STR": "a word",
    "STR …": "words",
    "PATH": "a path",
}
"""Metavariables of flags, but those that list what can be chosen."""
_FLAG = re.compile(r"-+(?!(?:inf|infinity|nan)$)[a-z]", re.IGNORECASE)
_VALUE_ERROR = re.compile(r"(?:invalid choice .* for argument|Error parsing|Missing value for argument) '?(-[^ ':.]+)")


def complaint(error_text: str, arguments: Sequence[str], help_text: str) -> str:
    r"""One sentence on why tyro refused these arguments, from tyro's error text and the verb's help text.

    >>> complaint("", ["--epochz", "3"], "  --epochs INT   Passes.")
    'unknown flag “--epochz”: did you mean --epochs?'
    >>> complaint(" -----\n Error parsing --epochs: invalid\n -----", ["--epochs=x"], "  --epochs INT   Passes.")
    '--epochs takes a whole number, and not “x”'
    """
    metavars = options(help_text)
    flags = {name: metavar for name, metavar in metavars.items() if name.startswith("-")}
    for word in filter(_FLAG.match, _before_dashes(arguments)):
        typed, equals, _ = word.partition("=")
        if (flag := typed.replace("_", "-")) not in flags:
            meant = near(flag, flags)
            return f"unknown flag “{typed}”" + (f": did you mean {' or '.join(meant)}?" if meant else "")
        if equals and not flags[flag]:
            return f"{flag} takes no value"
    message = _message(error_text)
    if found := _VALUE_ERROR.match(message):
        return _value_error(found[1], flags, arguments) or message
    if message.startswith("Missing from "):
        return f"missing: {', '.join(_named(error_text, metavars))}"
    if found := re.match(r"Unrecognized options: (.+)", message):
        words = " ".join(found[1].split(", "))
        several = any(name.endswith("…") for name in metavars.keys() - flags.keys())
        return f"“{words}” {'stands behind a flag, apart from the others' if several else 'is more than it takes'}"
    return message


def _value_error(flag: str, flags: Mapping[str, str], arguments: Sequence[str]) -> str | None:
    """What is wrong with the value of a flag; nothing where that cannot be told from what it takes."""
    if flag not in flags:
        return None
    metavar = flags[flag]
    choices = metavar.strip("{}").split(",") if metavar.startswith("{") else []
    values = _values(flag, arguments)
    value = " ".join(values if metavar.endswith("…") else values[:1])
    if not value:
        return f"{flag} needs {'one of ' + ', '.join(choices) if choices else KINDS.get(metavar, metavar)}"
    if choices:
        return str(unknown(flag, value, choices))
    return f"{flag} takes {KINDS[metavar]}, and not “{value}”" if metavar in KINDS else None


def _before_dashes(arguments: Sequence[str]) -> list[str]:
    """Of which alone some are flags."""
    return list(takewhile(lambda word: word != "--", arguments))


def _values(flag: str, arguments: Sequence[str]) -> list[str]:
    """Values given to the last occurrence of this flag.

    >>> _values("--lr", ["--lr", "1", "--lr=-x", "--sizes", "2", "3"]), _values("--sizes", ["--sizes", "2", "-inf"])
    (['-x'], ['2', '-inf'])
    """
    values: list[str] = []
    taken = False
    for word in _before_dashes(arguments):
        if _FLAG.match(word):
            typed, equals, value = word.partition("=")
            taken = typed.replace("_", "-") == flag
            values = ([value] if equals else []) if taken else values
        elif taken:
            values.append(word)
    return values


def _named(error_text: str, metavars: Mapping[str, str]) -> list[str]:
    """Flags with what they take, and words, that stand on lines of their own."""
    known = {f"{name} {metavar}".strip() for name, metavar in metavars.items()}
    return [line.strip() for line in error_text.splitlines() if line.strip() in known]


def _message(error_text: str) -> str:
    """The first paragraph of tyro's error text, without its title and the help of flags."""
    _, *parts = re.split(r"^[\s-]*-{5,}\s*$", error_text, flags=re.MULTILINE)
    lines = (line for line in (parts or [error_text])[0].splitlines() if not line.startswith(" " * 6))  # flags' help
    return " ".join(" ".join(lines).split()).rstrip(".")
