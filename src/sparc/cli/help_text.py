"""What `--help` shows: tyro's own text, wrapped anew in one column, without defaults that say nothing."""

import re
import textwrap
from collections.abc import Iterator

WIDEST = 100
"""Columns, however many the terminal has."""
NARROW = 60
"""Columns below which texts stand under their options."""
_COLUMN = 26
"""Where texts begin beside their options."""
_OPTION = re.compile(r"  (\S+(?: \S+)*)(?:  +(\S.*))?")
_MORE_TEXT = re.compile(r" {5,}(\S.*)")
_RULE = re.compile(r" -{5,}")
_RULE_BELOW_A_SENTENCE = re.compile(r"(?<=\n)  -{5,}(?=\n)")
_SAYS_NOTHING = re.compile(r" ?\(default: (?:None|False|True|)\)")
_DEFAULT = re.compile(r"\(default: [^)]+\)")
_SEVERAL = re.compile(r"{?\[(\w+) \[\1 \.\.\.\]\]}?")


def rewrapped(help_text: str, width: int) -> str:
    r"""What tyro says in one column, at another width.

    >>> print(rewrapped("  --task {None}|STR   Only choose\n                      these. (default: None)", 80))
      --task STR              Only choose these.
    """
    width = min(width, WIDEST)
    return "\n".join(line.rstrip() for entry in _entries(help_text) for line in _lines(*entry, width)).strip("\n")


def options(help_text: str) -> dict[str, str]:
    r"""Each flag that tyro's text has, with what it takes (INT, {newest,alike}, PATH … or nothing), and each word.

    >>> options("  --sizes {None}|{[INT [INT ...]]}   Classes of tasks.\n  PATH …   Pictures.")
    {'--sizes': 'INT …', 'PATH …': ''}
    """
    named = (option.removeprefix("-h, ") for option, _ in _entries(help_text) if option)
    split = (each.partition(" ") if each.startswith("-") else (each, "", "") for each in named)
    return {flag: takes for flag, _, takes in split}


def _entries(help_text: str) -> Iterator[tuple[str, str]]:
    """Each option with its text, whose lines are joined; and each line of other text, without an option."""
    plain = _SEVERAL.sub(r"\1 …", "\n".join(map(str.rstrip, help_text.splitlines())).replace("{None}|", ""))
    option, text = "", ""
    for line in (*_RULE_BELOW_A_SENTENCE.sub("", plain).splitlines(), ""):  # so that the last option is told too
        if option and (more := _MORE_TEXT.fullmatch(line)):
            text = f"{text} {more[1]}"
            continue
        if option:
            yield (option, text) if text else ("", f"  {option}")
        found = _OPTION.fullmatch(line)
        option, text = (found[1], found[2] or "") if found else ("", "")
        if not option:
            yield "", line


def _lines(option: str, text: str, width: int) -> Iterator[str]:
    if not option:
        indent = " " * (len(text) - len(text.lstrip()))
        yield from [f" {'-' * (width - 2)}"] if _RULE.match(text) else _wrapped(text, width, indent)
        return
    column = _COLUMN if width >= NARROW else 6
    whole = _DEFAULT.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), _SAYS_NOTHING.sub("", text))
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in _wrapped(whole, width, " " * column)]
    if len(option) <= column - 4:
        lines[0] = f"  {option:<{column - 2}}{lines[0][column:]}"
    else:
        lines.insert(0, f"  {option}")
    yield from lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """At least one line."""
    room = max(width - len(indent), 20)
    lines = textwrap.wrap(text.strip(), room, break_on_hyphens=False, break_long_words=False)
    return [indent + line for line in lines or [""]]
