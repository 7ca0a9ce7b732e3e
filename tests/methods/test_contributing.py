"""The example of a method in CONTRIBUTING, dropped into the tree, passes what every method has to pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.pages import ROOT, blocks

SUITES = ("test_contract.py", "test_contract_resumed.py", "test_defaults.py")


def test_the_example_passes_the_suites_over_every_method(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (example,) = (block for block in blocks("CONTRIBUTING.md", "python") if "(SingleNet):" in block)
    named = re.search(r"a whole method, `(src/sparc/methods/\S+\.py)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert named
    (tmp_path / named[1]).write_text(example)
    suites = [str(ROOT / "tests" / "methods" / suite) for suite in SUITES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not long", "-k", "calm", *suites],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) >= 15
