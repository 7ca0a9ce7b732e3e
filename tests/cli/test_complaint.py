"""What is said of arguments that are not understood."""

import pytest

from sparc.cli.complaint import KINDS
from sparc.cli.help_text import options
from sparc.cli.main import main
from tests.cli.helps import HELPS, help_at


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run"], "missing: BENCHMARK"),
        (["run", "--epochz", "3"], "unknown flag “--epochz”: did you mean --epochs?"),
        (["run", "seq-digits", "--epochz=3"], "unknown flag “--epochz”: did you mean --epochs?"),
        (["run", "seq-digits", "---epochs", "3"], "unknown flag “---epochs”: did you mean --epochs?"),
        (["run", "seq-digits", "--batch_sizee", "3"], "unknown flag “--batch_sizee”: did you mean --batch-size?"),
        (["run", "seq-digits", "--benchmark", "x"], "unknown flag “--benchmark”"),
        (["run", "seq-digits", "--method", "sgd", "--alpha", "1"], "unknown flag “--alpha”"),
        (["run", "seq-digits", "--lr", "x"], "--lr takes a number, and not “x”"),
        (["run", "seq-digits", "--lr", "1", "--lr", "x"], "--lr takes a number, and not “x”"),
        (["run", "--epochs", "1.5", "seq-digits"], "--epochs takes a whole number, and not “1.5”"),
        (["run", "seq-digits", "--epochs", "-inf"], "--epochs takes a whole number, and not “-inf”"),
        (["run", "seq-digits", "--epochs=-x"], "--epochs takes a whole number, and not “-x”"),
        (["run", "seq-digits", "--batch_size=x"], "--batch-size takes a whole number, and not “x”"),
        (["run", "seq-digits", "--depth", "x"], "--depth takes a whole number, and not “x”"),
        (["run", "--depth", "x", "--", "--depth"], "--depth takes a whole number, and not “x”"),
        (["run", "seq-digits", "--sizes", "2", "x"], "--sizes takes whole numbers, and not “2 x”"),
        (["run", "seq-digits", "--milestones", "x"], "--milestones takes numbers, and not “x”"),
        (["run", "seq-digits", "--epochs"], "--epochs needs a whole number"),
        (["run", "seq-digits", "--out"], "--out needs a path"),
        (["run", "seq-digits", "--optimizer", "sgdd"], "unknown --optimizer “sgdd”: did you mean sgd?"),
        (["run", "seq-digits", "--optimizer", "x"], "unknown --optimizer “x”: there are adam, adamw, muon, sgd"),
        (["run", "seq-digits", "--optimizer"], "--optimizer needs one of adam, adamw, muon, sgd"),
        (["run", "seq-digits", "a b. C"], "“a b. C” is too much: leave it out"),
        (["run", "seq-digits", "a", "b"], "“a b” is too much: leave it out"),
        (["run", "seq-digits", "c, d.png"], "“c, d.png” is too much: leave it out"),
        (["run", "seq-digits", "a" * 160], f"“{'a' * 160}” is too much: leave it out"),
        (["run", "seq-digits", "--out", "-x"], "unknown flag “-x”: write --out=-x if it is a value"),
        (["learn", "x", "--task"], "unknown flag “--task”"),
        (
            ["run", "seq-digits", "--no-fresh"],
            "unknown flag “--no-fresh”: it is off unless --fresh is given, so leave it out",
        ),
        (["run", "seq-digits", "--batch_size", "-x"], "unknown flag “-x”: write --batch_size=-x if it is a value"),
        (["methods", "--costs=1"], "--costs takes no value"),
        (["predict"], "missing: MODEL"),
        (["predict", "m.sparc", "--ask", "x"], "--ask takes a number, and not “x”"),
        (
            ["predict", "m.sparc", "a.png", "--json", "b.png"],
            "“b.png” comes after a flag: put all of PATH … before the flags",
        ),
        (["learn"], "missing: FOLDER, --model PATH"),
    ],
)
def test_one_sentence_that_names_what_was_typed(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    method = " --method sgd" if "sgd" in arguments else ""
    assert capsys.readouterr().err == f"sparc: {sentence} (see sparc {arguments[0]}{method} --help)\n"


@pytest.mark.parametrize("asked", HELPS, ids=" ".join)
def test_whatever_a_flag_takes_has_a_name_in_plain_words(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    takes = options(help_at(100, [*asked, "--help"], capsys))
    assert "--help" in takes
    assert {flag: each for flag, each in takes.items() if each and each not in KINDS and "}" not in each[-1]} == {}


def test_help_is_a_word_as_any_other_after_two_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--", "--help"]) == 2
    assert "unknown benchmark “--help”" in capsys.readouterr().err
