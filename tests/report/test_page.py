import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparc.experiment.result import Result
from sparc.report.drawing import Text, flattened
from sparc.report.figures import all_figures
from sparc.report.page import page
from sparc.report.study import Study, studies
from tests.report.runs import done

Make = Callable[..., Result]

VOID = {"meta", "br", "img", "link", "input"}
KNOWN = """
html head meta title style body header h1 h2 h3 h4 nav ul li a main section div table thead tbody tr th td button span
details summary dl dt dd figure figcaption svg desc text rect circle polygon polyline g p footer code script b
label input output
"""


class Reader(HTMLParser):
    """What a browser would make of it: elements, attributes, texts; every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.order: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.order.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, each, value in self.attributes if each == name]


def study(*results: Result) -> list[Study]:
    return studies(done({Path(f"run-{index}"): result for index, result in enumerate(results)}))


def check_harmless(text: str) -> Reader:
    seen = Reader(text)
    assert set(seen.tags) <= set(KNOWN.split())
    assert seen.tags["script"] == 1
    assert not [name for _, name, _ in seen.attributes if name.startswith("on")]
    assert {value[0] for value in seen.values("href")} <= {"#"}
    assert not seen.values("src")
    assert re.findall(r"https?://[^\s\"'<]*", text).count("http://www.w3.org/2000/svg") == len(
        re.findall("xmlns=", text)
    )
    return seen


def test_the_page_needs_nothing_but_itself(result: Make) -> None:
    text = page(study(result(), result("sgd")))
    assert set(re.findall(r"https?://[^\s\"'<]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|<link|<img|<iframe", text)
    assert 'name="viewport"' in text


def test_only_the_pages_own_script_may_run(result: Make) -> None:
    text = page(study(result()))
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text


def test_it_shows_what_was_run_and_what_came_out(result: Make) -> None:
    results = [result(epochs=3), result(seed=1, rows=((90,), (70, 80)), epochs=3), result("sgd", epochs=3)]
    seen = check_harmless(page(study(*results)))
    text = " ".join(seen.texts)
    for shown in (
        *("seq-digits, 2 tasks, 3 epochs a task, 1 to 2 seeds", "torch 2.13.0", "1 thread", "100 to learn, 20 to test"),
        *("72.50", "± 3.54", "SPARC", "SGD", "run-0", "seconds of training", "tasks learned", "parameters, in"),
    ):
        assert shown in text
    assert seen.tags["figure"] == 4 + 4 + 3 * 2 == seen.tags["figcaption"]


def test_what_parts_bring_is_shown_as_a_mean_over_seeds(result: Make) -> None:
    parts = [
        {"without it": {"class_il": value, "task_il": 90.0}, f"with {value} alone": {"class_il": 1.0, "task_il": 1.0}}
        for value in (10.0, 20.0)
    ]
    results = [result(seed=seed, change={"by_part": each}) for seed, each in enumerate(parts)]
    seen = check_harmless(page(study(*results)))
    text = " ".join(seen.texts)
    assert "all parts 70.00 ± 0.00" in text
    assert "without it 15.00 ± 7.07 90.00 ± 0.00" in text
    assert "with 10.0 alone" not in text, "what one seed alone has is no mean"
    assert "parts bring" not in page(study(result()))


def test_a_run_that_repeats_another_is_left_out_and_that_is_said(result: Make) -> None:
    assert "1 run that repeated another" in page(study(result(), result()))
    assert "left out" not in page(study(result(), result(seed=1)))


@pytest.mark.parametrize(
    ("methods", "settings", "fact"),
    [(1, 2, "m0, width 0; m0, width 1"), (6, 1, "6"), (3, 2, "3 with 6 settings"), (1, 6, "1 with 6 settings")],
)
def test_methods_are_named_if_few_and_else_counted(result: Make, methods: int, settings: int, fact: str) -> None:
    results = [result(f"m{method}", width=width) for method in range(methods) for width in range(settings)]
    assert f"<b>methods</b>{fact}</li>" in page(study(*results))


def test_many_methods_can_be_filtered_by_name_and_by_kind_where_there_are_several(result: Make) -> None:
    results = [result(f"m{method}") for method in range(6)]
    assert '<input type="search"' in page(study(*results))
    assert '<input type="search"' not in page(study(*results[:5]))
    assert '<input type="checkbox"' not in page(study(*results)), "results from before there were kinds"
    for number, each in enumerate(results):
        object.__setattr__(each, "kind", ("a", '"><script>')[number % 2])
    seen = check_harmless(page(study(*results)))
    assert seen.values("type").count("checkbox") == 2
    assert set(seen.values("data-kind")) == {"a", '"><script>'}


def test_each_method_is_found_by_its_rank_in_tables_charts_and_sections(result: Make) -> None:
    seen = check_harmless(page(study(result(), result("sgd", rows=((90,), (10, 20))))))
    for tag in ("tr", "g", "section"):
        assert {value for each, name, value in seen.attributes if (each, name) == (tag, "data-series")} == {"0", "1"}


def test_figures_say_how_many_seeds_and_epochs_are_behind_them(result: Make) -> None:
    text = page(study(result(epochs=30), result(seed=1, epochs=30), result("sgd", epochs=3)))
    assert "task after task, seq-digits, 2 tasks, 3 or 30 epochs a task, 1 to 2 seeds<" in text
    assert "3 to 30 epochs a task, 1 seed<" in page(study(*(result(epochs=epochs) for epochs in (3, 30, 10))))
    assert "SPARC, epochs 30: Class-IL accuracy, %, seq-digits, 2 tasks, 30 epochs a task, 2 seeds<" in text
    assert "SGD, epochs 3: Class-IL accuracy, %, seq-digits, 2 tasks, 3 epochs a task, 1 seed<" in text


def test_the_same_results_give_the_same_page(result: Make) -> None:
    assert page(study(result(), result("sgd"))) == page(study(result(), result("sgd")))


def test_headings_are_in_order_and_pictures_have_names(result: Make) -> None:
    one, several = study(result(), result("sgd")), study(result(), result(rows=((90,), (60, 80), (1, 2, 3))))
    for text in (page(one), page(several)):
        seen = check_harmless(text)
        levels = [int(tag[1]) for tag in seen.order if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        ids = seen.values("id")
        assert len(ids) == len(set(ids))
        for names in seen.values("aria-labelledby"):
            assert set(names.split()) <= set(ids)
        pictures = seen.tags["svg"] - seen.values("aria-hidden").count("true")
        assert pictures == seen.values("role").count("img") == seen.tags["desc"] == seen.tags["figure"]
        assert {value[1:] for value in seen.values("href")} <= set(ids)


def test_tables_can_be_sorted_by_machine_and_person(result: Make) -> None:
    text = page(study(result(), result("sgd", rows=((90,), (10, 20)))))
    titles = re.findall(r'<th scope="col"[^>]*aria-sort="none"[^>]*><button type="button">', text)
    assert len(titles) == 2 * 2 + 12 + 5
    assert '<td data-value="70" class="best share" style="--share:70.0%">70.00</td>' in text


def test_a_method_that_must_be_told_the_task_has_dashes_and_no_class_il_picture(result: Make) -> None:
    text = page(study(result(), result("packnet", needs_task_id=True), result("sgd")))
    line = next(line for line in text.splitlines() if line.startswith("<tr data-series=") and "PackNet" in line)
    assert line.count('<td data-value="">–</td>') == 6
    assert "must be told which task" in text
    assert "PackNet: Task-IL accuracy" in text
    assert "PackNet: Class-IL accuracy" not in text
    assert "PackNet: where test pictures land" not in text
    alone = page(study(result("packnet", needs_task_id=True)))
    assert "Class-IL accuracy, task after task" not in alone
    check_harmless(alone)


@pytest.mark.parametrize("tasks", [1, 20, 50])
def test_any_number_of_tasks(result: Make, tasks: int) -> None:
    rows = tuple(tuple(float(stage) for _ in range(stage + 1)) for stage in range(tasks))
    check_harmless(page(study(result(rows=rows), result("sgd", seed=4, rows=rows))))


def test_losses_are_shown_where_every_epoch_is_there(result: Make) -> None:
    runs = {Path("a"): result(), Path("b"): result(seed=1), Path("c"): result("sgd")}
    whole, cut = [(0.5, 2.0), (1.0, 0.1), (2.0, 0.01)], [(1.0, 0.1), (2.0, 0.01)]
    text = page(studies(done(runs, {Path("a"): whole, Path("b"): whole})))
    assert "mean loss of an epoch (log scale)" in text
    assert "Training loss" not in page(studies(done(runs, {Path("a"): whole, Path("b"): cut})))
    assert "Training loss" not in page(studies(done(runs)))


losses = st.lists(st.floats(-1e300, 1e300), min_size=4, max_size=4)


@settings(max_examples=30)
@given(losses | st.lists(st.floats(0, 1e300), min_size=4, max_size=4), losses)
def test_any_losses_can_be_drawn(result: Make, first: list[float], second: list[float]) -> None:
    runs = {Path("a"): result(), Path("b"): result(seed=1)}
    curves = {Path("a"): list(zip((0.5, 1, 1.5, 2), first, strict=True))}
    for each in (curves, {**curves, Path("b"): list(zip((0.5, 1, 1.5, 2), second, strict=True))}):
        text = page(studies(done(runs, each)))
        assert "Training loss" in text
        assert "nan" not in re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL)


diagnostics = st.dictionaries(st.text("ab<&\n€"), st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=2), max_size=30)


@settings(max_examples=30)
@given(diagnostics, diagnostics)
def test_any_diagnostics_can_be_drawn(result: Make, first: dict[str, object], second: dict[str, object]) -> None:
    known = {"tiny": [5e-324, 5e-324], "norm": [1.0, 1.0]}
    runs = {
        Path("a"): result(change={"diagnostics": {**known, **first}}),
        Path("b"): result(seed=1, change={"diagnostics": {**known, **second}}),
    }
    for some in (runs, {Path("a"): runs[Path("a")]}):
        text = page(studies(done(some)))
        assert "tiny, norm" in text
        assert "nan" not in re.sub(r"<script>.*</script>|<details.*</details>", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(("accuracy", "top"), [(0.0, 10), (17.2, 20), (40.0, 50), (99.9, 100), (100.0, 100)])
def test_an_axis_of_accuracies_reaches_a_little_beyond_the_best(result: Make, accuracy: float, top: int) -> None:
    (study,) = studies(done({Path("a"): result(rows=((accuracy,), (accuracy, accuracy)))}))
    stages = {figure.name: figure.drawing for figure in all_figures(study)}["stages-class-il"]
    marked = [
        float(shape.text) for shape in flattened(stages.shapes) if isinstance(shape, Text) and shape.anchor == "end"
    ]
    assert max(marked) == top


def test_a_deviation_may_reach_below_the_lowest_power_of_ten(result: Make) -> None:
    runs = {Path(name): result(seed=seed) for seed, name in enumerate("abc")}
    curves = {Path(name): [(1.0, 10.0), (2.0, loss)] for name, loss in zip("abc", (1e-3, 1e-3, 1.0), strict=True)}
    assert "(log scale)" in page(studies(done(runs, curves))).partition("Training loss")[2]


hostile = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "</script><script>alert(1)</script>",
        "</style><img src=x onerror=alert(1)>",
        '" onmouseover="alert(1)',
        "' onload='alert(1)",
        "</title></svg><iframe src=http://example.org>",
        "]]><!--",
        "-->",
        "a\nb\r\0\x1b[31m",
        "\ud800\u202e",
        "&lt;b&gt; &#60;b&#62;",
        "javascript:alert(1)",
        "${alert(1)} {{7*7}} var(--ink) /*LIGHT*/",
        "x" * 5000,
        "",
    ]
)
names = hostile | st.text()


@settings(max_examples=20)
@given(st.tuples(names, names, names, names, names), st.lists(names, min_size=4, max_size=4))
def test_hostile_names_are_only_text(result: Make, texts: tuple[str, ...], classes: list[str]) -> None:
    method, benchmark, key, value, version = texts
    change = {
        "class_names": classes,
        "environment": {"torch": version, version: version, "threads": value},
        "data": {"train": value, "image_size": [value, 3], "fingerprint": value},
        "state_sha256": value,
        "by_part": {value: {"class_il": 1.0, "task_il": 2.0}},
    }
    made = result(method, change=change, **{key or "k": value})
    made.config["benchmark"] = benchmark
    made.config["scale"] = value
    other = result("sgd", change=change)
    other.config["benchmark"] = benchmark
    text = page(studies(done({Path(f"runs/{key}"): made, Path("b"): other})))
    check_harmless(text)
    text.encode()


def test_a_name_is_shown_as_it_is(result: Make) -> None:
    text = page(study(result("<b>&amp;", change={"class_names": ["<i>", "b", "c", "d"]})))
    assert "&lt;b&gt;&amp;amp;" in text
    assert "&lt;i&gt;, b" in text


@pytest.mark.long
def test_a_damaged_result_is_refused_or_shown_and_no_traceback(
    tmp_path: Path, result: Make, fuzz: Callable[..., dict[str, float]], record_property: Callable[[str, object], None]
) -> None:
    rows = ((90.0,), (60.0, 80.0), (10.0, 20.0, 30.0))
    result(rows=rows, width=0.5, epochs=3).write(tmp_path / "result.json")
    report = fuzz("result", [tmp_path / "result.json"], 1000, seconds=120)
    assert 0 < report["refused"] < report["tried"]
    record_property("figures", f"damaged results: {report['tried']:.0f}, refused {report['refused']:.0f}")
