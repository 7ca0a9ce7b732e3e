"""The model card: Markdown that no class name can break."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sparc.cli.card import main
from sparc.edit import forget
from sparc.errors import InputError
from sparc.model_file import Model, load, save
from sparc.report.model_card import card
from sparc.text import markdown, one_line
from tests.models import learned_task, untaught

NASTY = (
    "a|b",
    "*bold*",
    "<script>",
    "`code`",
    "two\nlines",
    r"back\|slash",
    "[x](y)",
    "&amp;",
    "猫",
    "_",
    "# h #",
    "~~",
)


def model(*tasks: tuple[str, tuple[str, ...], float]) -> Model:
    return untaught(
        *(
            replace(learned_task(name, *classes, share=share), pictures=(1234,) * len(classes))
            for name, classes, share in tasks
        )
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(model(("pets", ("cat", "dog"), 0.9), ("fish", ("eel", "cat"), 0.1)), tmp_path / "pets.sparc")
    return tmp_path / "pets.sparc"


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table, as a reader of Markdown sees them."""
    found: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and token.level > 3:
            assert token.children is not None
            assert {child.type for child in token.children} <= {"text", "text_special"}, "nothing but text"
            found[-1][-1].append("".join(child.content for child in token.children))
    return found


def test_the_card_tells_classes_dates_accuracies_and_sizes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path)]) == 0
    text = capsys.readouterr().out
    classes, accuracies, training = tables(text)
    assert classes[1:] == [
        ["pets", "cat", "1,234"],
        ["pets", "dog", "1,234"],
        ["fish", "eel", "1,234"],
        ["fish", "cat", "1,234"],
    ]
    assert accuracies[1] == ["pets", "2025-07-01 10:20", "3", "91.2", "61.5"]
    assert training[2][0] == "fish"
    assert training[2][-1] == "10.0%"
    assert "It knows 3 classes, learned in 2 tasks" in text
    assert "Learned more than once: cat in pets, fish." in text
    assert "ICML 2025" in text
    assert "sparc predict pets.sparc PICTURE" in text
    assert str(path.parent) not in text, "where the file lies is nobody's business"
    for limit in ("No old picture is kept", "Every working memory runs", "Telling tasks apart", "held-out pictures"):
        assert limit in text


def test_the_card_says_how_each_kind_was_made(path: Path) -> None:
    new = card(load(path), path)
    ways = ("Chorus", "starts as the newest", "one covariance for all", "its mirror image")
    assert all(way in new for way in ways)
    old = load(Path(__file__).parent.parent / "version-2.sparc")
    save(old, path)
    assert "With SPARC (Bhat" in card(old, path)
    assert not any(way in card(old, path) for way in ways)


def test_the_card_is_written_to_a_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path)]) == 0
    text = capsys.readouterr().out
    out = path.parent / "README.md"
    for _ in range(2):
        assert main([str(path), "--out", str(out)]) == 0
        assert out.read_text() == text
    assert sorted(each.name for each in out.parent.iterdir()) == ["README.md", "pets.sparc"]


def test_names_with_special_characters_break_nothing(path: Path) -> None:
    nasty = model(*((f"task {name}", (name,), 0.1) for name in NASTY))
    classes, accuracies, training = tables(card(nasty, path))
    assert [row[1] for row in classes[1:]] == [one_line(name) for name in NASTY]
    for table in (accuracies, training):
        assert [row[0] for row in table[1:]] == [f"task {one_line(name)}" for name in NASTY]


@given(st.text(min_size=1))
def test_any_text_stays_what_it_is(text: str) -> None:
    ((_, (cell, last)),) = tables(f"| a | b |\n|---|---|\n| x{markdown(text)}x | y |\n")
    assert cell == f"x{one_line(text)}x"
    assert last == "y"


def test_the_file_name_is_text_too(path: Path) -> None:
    odd = path.rename(path.with_name("my *best*`` model.sparc"))
    text = card(model(), odd)
    heading = MarkdownIt("commonmark").parse(text)[1]
    assert heading.children is not None
    assert "".join(child.content for child in heading.children) == "Model card: my *best*`` model"
    assert "sparc predict 'my *best*`` model.sparc' PICTURE" in text


def test_what_remains_of_forgotten_tasks_is_told(path: Path) -> None:
    whole = model(("pets", ("cat",), 0.9), ("fish", ("eel",), 0.1))
    assert "Tasks that were forgotten" not in card(whole, path)
    assert "Tasks that were forgotten make up 90.0% of this file's semantic memory" in card(
        forget(whole, ["cat"]), path
    )


def test_a_model_that_knows_nothing_has_a_card(path: Path) -> None:
    text = card(model(), path)
    assert "It knows no class yet" in text
    assert tables(text) == []


def test_what_cannot_be_written_or_read_is_refused(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match="is the model itself"):
        main([str(path), "--out", str(path)])
    with pytest.raises(InputError, match="is a folder"):
        main([str(path), "--out", str(path.parent)])
    assert path.read_bytes() == before
    path.write_bytes(before[:-10])
    with pytest.raises(InputError, match="was cut off"):
        main([str(path), "--out", str(path.parent / "README.md")])
    assert list(path.parent.iterdir()) == [path], "nothing was written"
