"""The pages that people read, and the examples on them."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS_PAGE = "results/README.md"
PAGES = ("README.md", "CONTRIBUTING.md", RESULTS_PAGE)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def commands(language: str, pages: Sequence[str] = PAGES) -> list[list[str]]:
    """A line that ends in a backslash goes on in the next."""
    text = "".join(block for page in pages for block in blocks(page, language)).replace("\\\n", "")
    return [shlex.split(line) for line in text.splitlines()]
