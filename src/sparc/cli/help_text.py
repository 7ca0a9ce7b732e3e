"""What `--help` shows, as tyro words it, set anew: texts in one column, and no default that says nothing."""

import re
import shutil
import textwrap
from collections.abc import Iterator

WIDEST = 100
COLUMN = 26
"""Where texts begin; below an option that is too long for that."""
_OPTION = re.compile(r"  (\S+(?: \S+)*)(?:  +(\S.*))?")
_MORE_TEXT = re.compile(r" {5,}(\S.*)")
_RULE = re.compile(r" -{5,}")
_RULE_BELOW_A_SENTENCE = re.compile(r"(?<=\n)  -{5,}(?=\n)")
_SAYS_NOTHING = re.compile(r" ?\(default: (?:None|False|True|)\)")
_DEFAULT = re.compile(r"\(default: (\S+)\)")
_SEVERAL = re.compile(r"{?\[(\w+) \[\1 \.\.\.\]\]}?")


def set_anew(help_text: str) -> str:
    r"""
    >>> print(set_anew("  --task {None}|STR   Only choose\n                      these. (default: None)"))
      --task STR              Only choose these.
    """
    width = min(shutil.get_terminal_size().columns, WIDEST)
    plain = _SEVERAL.sub(r"\1 …", "\n".join(map(str.rstrip, help_text.splitlines())).replace("{None}|", ""))
    entries = _entries(_RULE_BELOW_A_SENTENCE.sub("", plain))
    return "\n".join(line.rstrip() for entry in entries for line in _lines(*entry, width)).strip("\n")


def _entries(help_text: str) -> Iterator[tuple[str, str]]:
    """Each option with its text, whose lines are joined; and each other line, with nothing before it."""
    option, text = "", ""
    for line in help_text.splitlines():
        if option and (more := _MORE_TEXT.fullmatch(line)):
            text = f"{text} {more[1]}"
            continue
        if option:
            yield option, text
        found = _OPTION.fullmatch(line)
        option, text = (found[1], found[2] or "") if found else ("", "")
        if not option:
            yield "", line
    if option:
        yield option, text


def _lines(option: str, text: str, width: int) -> Iterator[str]:
    if not option:
        yield from [f" {'-' * (width - 2)}"] if _RULE.match(text) else textwrap.wrap(text, width) or [""]
        return
    whole = _DEFAULT.sub("(default:\N{NO-BREAK SPACE}\\1)", _SAYS_NOTHING.sub("", text.strip()))
    wrapped = textwrap.wrap(whole, width - COLUMN, break_on_hyphens=False)
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]
    beside = lines.pop(0) if lines and len(option) <= COLUMN - 4 else ""
    yield f"  {option:<{COLUMN - 2}}{beside}"
    yield from (" " * COLUMN + line for line in lines)
