"""What is wrong with what was typed, in one sentence; tyro's own are for programmers."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from sparc.cli.help_text import options
from sparc.discovery import near, unknown

_KINDS = {"INT": "a whole number", "FLOAT": "a number", "INT …": "whole numbers", "FLOAT …": "numbers"}
_FLAG = re.compile(r"--?[a-zA-Z][^=]*")
_OF_VALUE = re.compile(r"(?:invalid choice .* for argument|Error parsing|Missing value for argument) '?([^ ':]+)")


def complaint(tyros: str, arguments: Sequence[str], help_text: str) -> str:
    """Said of arguments that tyro could not take, from what it said of them and of all that can be given."""
    takes = options(help_text)
    for flag in _flags(arguments):
        if flag not in takes and flag != "-h":
            meant = near(flag, takes)
            return str(unknown("flag", flag, meant)) if meant else f"unknown flag “{flag}”"
    said = _first_sentence(tyros)
    if found := _OF_VALUE.match(said):
        return _of_value(found[1], takes, arguments) or said
    if found := re.match(r"Missing from sparc \w+: (.+)", said):
        return f"missing: {found[1]}"
    if found := re.match(r"Unrecognized options: (.+)", said):
        several = any(word.endswith("…") for word in takes if not word.startswith("-"))
        return f"“{found[1]}” {'stands behind a flag, apart from the others' if several else 'is a word too many'}"
    return said


def _of_value(flag: str, takes: Mapping[str, str], arguments: Sequence[str]) -> str | None:
    """What is wrong with the value of a flag; nothing where that cannot be told from what it takes."""
    if flag not in takes:  # a word, which tyro calls by the name of its field
        return f"missing: {flag.upper()}"
    expected = takes[flag]
    values = _values(flag, arguments)
    value = " ".join(values if expected.endswith("…") else values[:1])
    if not value:
        return f"{flag} needs {_KINDS.get(expected, expected)}"
    if expected.startswith("{"):
        return str(unknown(flag, value, expected.strip("{}").split(",")))
    return f"{flag} takes {_KINDS[expected]}, and not “{value}”" if expected in _KINDS else None


def _flags(arguments: Sequence[str]) -> list[str]:
    """As tyro understands them: a line below is as good as one between."""
    return [found[0].replace("_", "-") for word in arguments if (found := _FLAG.match(word))]


def _values(flag: str, arguments: Sequence[str]) -> list[str]:
    """What stands after the last flag of this name."""
    words = [part for word in arguments for part in (word.split("=", 1) if _FLAG.match(word) else [word])]
    last = max((index for index, word in enumerate(words) if word.replace("_", "-") == flag), default=len(words))
    return list(takewhile(lambda word: not _FLAG.match(word), words[last + 1 :]))


def _first_sentence(tyros: str) -> str:
    """Of what comes in paragraphs below a title."""
    _, said, *_ = re.split(r"^[\s-]*-{5,}\s*$", tyros, flags=re.MULTILINE)
    lines = (line for line in said.splitlines() if not line.startswith(" " * 8))  # which is a flag's help
    return " ".join(" ".join(lines).split()).partition(". ")[0].rstrip(".")
