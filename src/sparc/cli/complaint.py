"""What is wrong with what was typed, in one sentence; tyro's own are for programmers."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sparc.cli.help_text import options
from sparc.cli.parse import before_dashes
from sparc.discovery import did_you_mean, unknown

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
"""What each metavariable is called in a sentence; choices, such as {adam,sgd}, name themselves."""
_FLAG = re.compile(r"-+(?!(?:inf|infinity|nan)$)[a-z]", re.IGNORECASE)  # -inf and -nan are numbers
_VALUE_ERROR = re.compile(r"(?:invalid choice .* for argument|Error parsing|Missing value for argument) '?(-[^ ':.]+)")


def complaint(error_text: str, arguments: Sequence[str], surplus: Sequence[str], help_text: str) -> str:
    r"""One sentence on why tyro refused these arguments, from tyro's error text and the verb's help text.

    Those of them that are `surplus` it had no use for.

    >>> complaint("", ["--epochz", "3"], [], "  --epochs INT   Passes.")
    'unknown flag “--epochz”: did you mean --epochs?'
    >>> complaint(" -----\n Error parsing --epochs: invalid\n -----", ["--epochs=x"], [], "  --epochs INT   Passes.")
    '--epochs takes a whole number, and not “x”'
    """
    metavars = options(help_text)
    flags = {name: metavar for name, metavar in metavars.items() if name.startswith("-")}
    for before, word in pairwise(["", *before_dashes(arguments)]):
        if not _FLAG.match(word):
            continue
        typed, equals, _ = word.partition("=")
        if (flag := typed.replace("_", "-")) not in flags:
            as_value = f"write {before}={word} if it is a value" if flags.get(before.replace("_", "-")) else ""
            advice = _usual(flag, flags) or did_you_mean(flag, flags) or as_value
            return f"unknown flag “{typed}”" + (f": {advice}" if advice else "")
        if equals and not flags[flag]:
            return f"{flag} takes no value"
    message = _message(error_text)
    if found := _VALUE_ERROR.match(message):
        return _value_error(found[1], flags[found[1]], arguments)
    if message.startswith("Missing from "):
        return f"missing: {', '.join(_named(error_text, metavars))}"
    if surplus:
        several = [name for name in metavars if name.endswith("…") and name not in flags]
        where = (
            f"comes after a flag: put all of {several[0]} before the flags" if several else "is too much: leave it out"
        )
        return f"“{' '.join(surplus)}” {where}"
    return message


def _usual(flag: str, flags: Mapping[str, str]) -> str:
    """What to do about a flag that says what is so without it.

    >>> _usual("--no-fresh", {"--fresh": ""}), _usual("--weigh", {"--no-weigh": ""})
    ('it is off unless --fresh is given, so leave it out', 'it is on unless --no-weigh is given, so leave it out')
    """
    is_negative = flag.startswith("--no-")
    opposite = f"--{flag[5:]}" if is_negative else f"--no-{flag[2:]}"
    if flags.get(opposite) != "":
        return ""
    return f"it is {'off' if is_negative else 'on'} unless {opposite} is given, so leave it out"


def _value_error(flag: str, metavar: str, arguments: Sequence[str]) -> str:
    """What is wrong with the value of a flag."""
    choices = metavar.strip("{}").split(",") if metavar.startswith("{") else []
    values = _values(flag, arguments)
    value = " ".join(values if metavar.endswith("…") else values[:1])
    if not value:
        return f"{flag} needs {'one of ' + ', '.join(choices) if choices else KINDS[metavar]}"
    if choices:
        return str(unknown(flag, value, choices))
    return f"{flag} takes {KINDS[metavar]}, and not “{value}”"


def _values(flag: str, arguments: Sequence[str]) -> list[str]:
    """Values given to the last occurrence of this flag.

    >>> _values("--lr", ["--lr", "1", "--lr=-x", "--sizes", "2", "3"]), _values("--sizes", ["--sizes", "2", "-inf"])
    (['-x'], ['2', '-inf'])
    """
    values: list[str] = []
    taken = False
    for word in before_dashes(arguments):
        if _FLAG.match(word):
            typed, equals, value = word.partition("=")
            taken = typed.replace("_", "-") == flag
            values = ([value] if equals else []) if taken else values
        elif taken:
            values.append(word)
    return values


def _named(error_text: str, metavars: Mapping[str, str]) -> list[str]:
    """The missing flags and words that tyro lists, one a line, such as `--model PATH`."""
    known = {f"{name} {metavar}".strip() for name, metavar in metavars.items()}
    return [line.strip() for line in error_text.splitlines() if line.strip() in known]


def _message(error_text: str) -> str:
    """The first paragraph of tyro's error text, without its title and the help of flags."""
    _, *parts = re.split(r"^[\s-]*-{5,}\s*$", error_text, flags=re.MULTILINE)
    lines = (line for line in (parts or [error_text])[0].splitlines() if not line.startswith(" " * 6))
    return " ".join(" ".join(lines).split()).rstrip(".")
