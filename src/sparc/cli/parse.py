"""Flags from dataclasses, for every verb alike."""

import contextlib
import io
import re
import sys
from typing import Any

import tyro

from sparc.errors import InputError

_WORDS = {
    r"Error parsing (\S+): no type matching \S*INT could be .* from \[(.*?)\].*": r"\1 takes a whole number, not \2",
    r"Error parsing (\S+): no type matching \S*FLOAT could be .* from \[(.*?)\].*": r"\1 takes a number, not \2",
    r"Missing value for argument '(.*)'.*": r"\1 needs a value",
    r"Unrecognized options: ([^,]+).*": r"\1 is not known here",
    r"Error parsing (\S+): invalid literal for int.. with base 10: (.*)": r"\1 takes a whole number, not \2",
    r"Error parsing (\S+): could not convert string to float: (.*)": r"\1 takes a number, not \2",
}


def parse(form: Any, verb: str, description: str | None, arguments: list[str], further: str = "") -> Any:
    """An instance of the form, filled in from the flags; what is wrong with them is said in one sentence.

    `further` words, beside the verb, decide what help there is.
    """
    help_text, complaint = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(help_text), contextlib.redirect_stderr(complaint):
            return tyro.cli(
                form,
                prog=f"sparc {verb}",
                description=description,
                args=arguments,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as end:
        cause: BaseException | None = end
        while cause is not None:
            if isinstance(cause, InputError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        if end.code:
            raise InputError(f"{_sentence(complaint.getvalue())}: see sparc {verb}{further} --help") from None
        sys.stdout.write(_readable(help_text.getvalue()))
        raise


def no_flags() -> None:
    """The form of a verb that takes none."""


def _sentence(complaint: str) -> str:
    """What tyro says below its title, in our words."""
    if missing := re.search(r"Missing from .*\n\s*(\S.*)", complaint):
        return f"{missing[1].strip()} is missing"
    _, said, *rest = (
        re.sub(r"\s+", " ", part).strip() for part in re.split(r"^[\s-]*-{5,}\s*$", complaint, flags=re.M)
    )
    for theirs, ours in _WORDS.items():
        said = re.sub(theirs, ours, said)
    said = said.rstrip(".")
    meant = re.search(r"Perhaps you meant: (--[\w-]+)", " ".join(rest))
    return said + (f", perhaps you meant {meant[1]}" if meant else "")


def _readable(text: str) -> str:
    """Help without tyro's words for a flag that may be left out, columns kept straight."""
    lines = []
    for line in text.splitlines():
        plain = re.sub(r"\{None\}\|(\S+)(?=  )", r"\1       ", line).replace("{None}|", "")
        plain = plain.replace("{[INT [INT ...]]}", "INT …")
        plain = re.sub(r" ?\(default: (None|False)\)", "", plain).rstrip()
        if plain or not line.strip():
            lines.append(f"{plain}\n")
    return "".join(lines)
