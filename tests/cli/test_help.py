"""What `--help` shows, at any width."""

import re

import pytest

from sparc.methods import METHODS
from tests.cli.helps import HELPS, help_at


@pytest.mark.parametrize("asked", HELPS, ids=" ".join)
def test_help_has_the_same_words_at_any_width(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    usual = help_at(80, [*asked, "--help"], capsys)
    assert usual.startswith(f"usage: sparc {asked[0]} ")
    assert not re.search(r"None|False|True|default: *\)", usual), "nobody but a programmer knows what they mean"
    words = re.sub("-{5,}", "", usual).split()
    for columns in (20, 45, 140):
        shown = help_at(columns, [*asked, "--help"], capsys)
        assert re.sub("-{5,}", "", shown).split() == words
        assert columns < 80 or max(map(len, shown.splitlines())) <= 100
    assert max(map(len, usual.splitlines())) <= 80


def test_help_names_words_that_were_given_too(capsys: pytest.CaptureFixture[str]) -> None:
    with_a_benchmark = help_at(80, ["run", "seq-digits", "--help"], capsys)
    assert "[OPTIONS] BENCHMARK" in with_a_benchmark
    assert with_a_benchmark != help_at(80, ["run", "--help"], capsys), "defaults are the benchmark's"


def test_help_of_a_verb_can_be_asked_for_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert help_at(80, ["help", "predict"], capsys) == help_at(80, ["predict", "--help"], capsys)


@pytest.mark.parametrize("name", METHODS.classes)
def test_help_says_what_a_method_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(help_at(80, ["run", "--method", name, "--help"], capsys).split())
    method = METHODS.find(name)
    assert method.summary.endswith(".")
    assert f"{method.summary} ({method.paper})" in shown
