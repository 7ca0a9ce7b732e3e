import csv
import io
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sparc.experiment.result import Result
from sparc.report.comparison import COLUMNS
from sparc.report.study import Study, studies
from sparc.report.table_formats import as_csv, as_latex, as_markdown, latex
from sparc.text import markdown
from tests.report.runs import numbered

Make = Callable[..., Result]


def study(*results: Result) -> list[Study]:
    return studies(numbered(results))


def test_a_line_a_run_with_all_numbers(result: Make) -> None:
    text = as_csv(study(result(epochs=3), result(seed=1, epochs=3), result("packnet", needs_task_id=True)))
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [(line["label"], line["seed"], line["folder"]) for line in lines] == [
        *(("SPARC", "0", "run 0"), ("SPARC", "1", "run 1"), ("PackNet", "0", "run 2"))
    ]
    assert lines[0]["class_il_accuracy"] == "70.0"
    assert lines[0]["epochs"] == "3"
    assert lines[2]["class_il_accuracy"] == lines[2]["class_il_forgetting"] == ""
    assert lines[2]["task_il_accuracy"] == "100.0"
    assert len(lines[0]) == 7 + len(COLUMNS)


def test_what_is_not_defined_is_empty(result: Make) -> None:
    (line,) = csv.DictReader(io.StringIO(as_csv(study(result(rows=((90,),))))))
    assert line["class_il_forgetting"] == ""
    assert "nan" not in as_csv(study(result(rows=((90,),))))


def test_no_cell_is_taken_for_a_formula(result: Make) -> None:
    (line,) = csv.DictReader(io.StringIO(as_csv(study(result("=cmd|' /C calc'!A0")))))
    assert line["method"].startswith("'=")


@given(st.text(), st.text())
def test_any_name_stays_in_its_cell(result: Make, method: str, benchmark: str) -> None:
    made = result(method)
    made.config["benchmark"] = benchmark
    text = as_csv(study(made))
    header, line = list(csv.reader(io.StringIO(text)))
    assert len(header) == len(line)
    assert text.count("\n") == 2


def test_latex_has_the_best_in_bold_and_dashes_where_nothing_is_defined(result: Make) -> None:
    low = ((90,), (10, 20))
    text = as_latex(study(result(), result("sgd", rows=low), result("packnet", needs_task_id=True)))
    lines = {line.split(" & ")[0]: line for line in text.splitlines()}
    assert r"\textbf{70.00}" in lines["SPARC"]
    assert r"\textbf" not in lines["PackNet"]
    assert lines["PackNet"].count(" -- ") == 6
    assert {line.count(" & ") for name, line in lines.items() if name in ("Method", "SPARC", "SGD", "PackNet")} == {12}
    assert r"\usepackage{booktabs}" in text
    for word in ("toprule", "midrule", "bottomrule"):
        assert text.count(f"\\{word}") == 1


def test_deviations_stand_beside_means(result: Make) -> None:
    text = as_latex(study(result(), result(seed=1, rows=((90,), (70, 80)))))
    assert r"72.50 $\pm$ 3.54" in text


@given(st.text(min_size=1))
def test_any_name_is_only_text_to_latex(name: str) -> None:
    ours = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]"
    left = re.sub(ours, "", latex(name))
    assert not set(left) & set("\\&%$#_{}~^<>\n\r")


def test_markdown_has_the_best_in_bold_and_dashes_where_nothing_is_defined(result: Make) -> None:
    low = ((90,), (10, 20))
    text = as_markdown(
        study(
            result(),
            result(seed=1, rows=((90,), (70, 80))),
            result("sgd", rows=low),
            result("packnet", needs_task_id=True),
        )
    )
    about, _, header, rule, *rows = text.splitlines()
    assert about == "Accuracies in percent, mean ± deviation of a sample; seq-digits, 2 tasks, 1 to 2 seeds"
    assert header.startswith("| Method | Class-IL A_T ↑ | Task-IL A_T ↑ |")
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| SPARC", "**72.50** ± 3.54"],
        ["| SGD", "15.00"],
        ["| PackNet", "–"],
    ]
    assert {line.count("|") for line in (header, rule, *rows)} == {14}


@given(st.text())
def test_any_name_stays_in_its_cell_of_markdown(result: Make, method: str) -> None:
    made = result(method)
    *_, row = as_markdown(study(made)).split("\n")[:-1]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 14


@given(st.text() | st.sampled_from(["[a](b) <i> `c`", "**b** ~~s~~ &amp;", "![i](j)", "a|b\\", "a\n\n- b"]))
def test_any_name_is_only_text_to_markdown(name: str) -> None:
    _, inline, _ = MarkdownIt("commonmark").parse(f"x {markdown(name)} x")
    assert {part.type for part in inline.children or ()} <= {"text", "text_special"}
