"""The example of a data set in CONTRIBUTING.md is all it takes: one file, and no list that anybody edits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.pages import ROOT, blocks


def test_a_data_set_is_added_by_one_file(tmp_path: Path) -> None:
    (example,) = (block for block in blocks("CONTRIBUTING.md", "python") if "class Stripes" in block)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (tmp_path / "src" / "sparc" / "data" / "sources" / "stripes.py").write_text(example, encoding="utf-8")
    suite = ["tests/data/test_sources.py", str(tmp_path / "src" / "sparc" / "data" / "sources" / "__init__.py")]
    options = ["-vv", "-p", "no:cacheprovider", "--doctest-modules", "-k", "stripes or names"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *suite],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "test_without_files_and_network_it_loads_or_says_what_to_do[stripes] PASSED" in done.stdout
