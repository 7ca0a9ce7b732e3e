"""Every example on the pages that people read is executed; those that take hours are parsed."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from sparc.cli.main import VERBS
from sparc.cli.parse import parse
from sparc.cli.run import arguments_of
from sparc.cli.serve import Serve
from sparc.data.sources import Source
from sparc.data.stream import Stream
from sparc.methods import METHODS, Method
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.pages import PAGES, RESULTS_PAGE, ROOT, blocks, commands


@pytest.mark.parametrize("block", [block for page in PAGES for block in blocks(page, "sh") if "sparc " in block])
def test_commands_run_one_after_another(block: str, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for words in map(shlex.split, block.splitlines()):
        if words[0] == "sparc":
            command = [sys.executable, "-m", *words]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
            assert done.stdout or "--out" in words


# Those on the page of results are executed, by tests/test_results.py.
LONG = commands("sh long", [page for page in PAGES if page != RESULTS_PAGE])


@pytest.mark.parametrize("command", [words for words in LONG if words[0] == "sparc"], ids=" ".join)
def test_long_commands_parse(command: list[str]) -> None:
    assert command[1] in VERBS
    if command[1] == "serve":
        assert str(parse(Serve, "serve", "", command[2:]).model) == command[2]
    else:
        assert arguments_of(command[2:]).choice.benchmark == command[2]


@pytest.mark.parametrize("target", sorted({words[1] for words in commands("sh(?: long)?") if words[0] == "make"}))
def test_make_targets_are_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def defined(base: type, page: str) -> type:
    """The subclass of `base` that a page defines."""
    for source in blocks(page, "python"):
        if ">>>" not in source:
            module = ModuleType("example")
            exec(source, vars(module))
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, base) and value.__module__ == "example":
                    return value
    raise AssertionError(f"{page} defines no {base.__name__}")


def test_the_example_of_a_method_learns_the_example_of_a_data_set() -> None:
    source: Source = defined(Source, "CONTRIBUTING.md")()
    stream = Stream(source.load(), [2])
    kind: type[Method] = defined(Method, "CONTRIBUTING.md")
    method = kind(kind.Settings(width=0.125), 1, (8, 8), AUGMENT, seeded(0, "method"))
    recipe = replace(kind.recipe, epochs=5, batch_size=8)
    reports = Trainer(method, recipe, seed=0).run(stream)
    assert reports[-1].test.class_il == [100.0]
    assert kind.name not in METHODS.classes
