"""What goes wrong, or ought to be known, in one line on standard error."""

import sys

from sparc.text import one_line


def warn(sentence: str) -> None:
    print(f"sparc: {one_line(sentence)}", file=sys.stderr, flush=True)
