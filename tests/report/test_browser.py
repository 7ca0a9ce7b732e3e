"""The page in a real browser."""

import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparc.experiment.result import Result
from sparc.report.colours import DARK, LIGHT, contrast
from sparc.report.figures import all_figures
from sparc.report.page import page
from sparc.report.study import Study, studies
from sparc.report.svg import standalone
from tests.report.browser import CHROMIUM, SECONDS, Browser
from tests.report.runs import done, numbered

Make = Callable[..., Result]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(running: Browser) -> Iterator[Browser]:
    """That has not complained so far, must not in the test, and must have asked for nothing but the page itself."""
    running.complaints.clear()
    running.requests.clear()
    yield running
    assert running.complaints == []
    assert {url.partition(":")[0] for url in running.requests} <= {"file", "blob"}


def triangle(tasks: int, top: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(top - 3 * stage / tasks * (stage - task) for task in range(stage + 1)) for stage in range(tasks))


@pytest.fixture
def study(result: Make) -> Study:
    """Two methods with seeds, and one that must be told the task."""
    runs = [
        result(method, seed, triangle(5, top - seed)) for method, top in (("sparc", 90), ("sgd", 60)) for seed in (0, 1)
    ]
    runs.append(result("packnet", rows=triangle(5, 50), needs_task_id=True))
    return study_of(runs)


def study_of(runs: list[Result]) -> Study:
    (study,) = studies(numbered(runs))
    return study


@pytest.fixture
def written(study: Study, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(page([study]))
    return path


METHODS = "[...document.querySelectorAll('table.sortable')[0].tBodies[0].rows].map(row => row.cells[0].textContent)"
SORTED = "document.querySelector('table.sortable').tHead.rows[1].cells[2].getAttribute('aria-sort')"


def test_the_page_is_rendered_and_its_script_has_run(browser: Browser, written: Path) -> None:
    browser.open(written)
    assert browser.value("document.documentElement.classList.contains('js')")
    assert browser.value("document.querySelectorAll('figure svg').length") == 4 + 4 + 3 + 3 + 1
    heights = browser.value(
        "[...document.querySelectorAll('figure svg')].map(svg => svg.getBoundingClientRect().height)"
    )
    assert min(heights) > 100


def test_tables_are_sorted_by_click(browser: Browser, written: Path) -> None:
    browser.open(written)
    assert browser.value(METHODS) == ["SPARC", "SGD", "PackNet"]
    click = "document.querySelector('table.sortable').tHead.rows[1].cells[2].querySelector('button').click()"
    browser.value(click)
    assert browser.value(SORTED) == "descending"
    assert browser.value(METHODS) == ["SPARC", "SGD", "PackNet"]
    browser.value(click)
    assert browser.value(SORTED) == "ascending"
    assert browser.value(METHODS) == ["SGD", "SPARC", "PackNet"], "what has no number stays last"
    assert "Class-IL" in browser.value("document.getElementById('status').textContent")
    assert browser.value("document.querySelectorAll('[aria-sort=ascending], [aria-sort=descending]').length") == 1


def test_names_are_sorted_as_text_and_upwards_first(browser: Browser, written: Path) -> None:
    browser.open(written)
    browser.value("document.querySelector('table.sortable').tHead.rows[1].cells[0].querySelector('button').click()")
    assert browser.value(METHODS) == ["PackNet", "SGD", "SPARC"]


def test_tables_are_sorted_by_keyboard(browser: Browser, written: Path) -> None:
    browser.open(written)
    browser.value("document.querySelector('table.sortable').tHead.rows[1].cells[0].querySelector('button').focus()")
    browser.press("Tab", 9, "")
    browser.press("Tab", 9, "")
    browser.press("Enter", 13, "\r")
    browser.press("Enter", 13, "\r")
    assert browser.value(SORTED) == "ascending"
    assert browser.value(METHODS) == ["SGD", "SPARC", "PackNet"]


def test_each_figure_can_be_downloaded_and_carries_its_own_colours(
    browser: Browser, written: Path, study: Study, tmp_path: Path
) -> None:
    browser.open(written, dark=True)
    browser.keep_downloads(tmp_path / "downloads")
    figures = {figure.name: figure for figure in all_figures(study)}
    names = browser.value("[...document.querySelectorAll('.download')].map(button => button.dataset.name)")
    for number, name in enumerate(names):
        if number % 8 == 7:
            browser.open(written, dark=True)  # a page that nobody has clicked on may give ten files
        browser.value(f"document.querySelectorAll('.download')[{number}].click()")
        deadline = time.monotonic() + SECONDS
        while not (tmp_path / "downloads" / f"{name}.svg").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert {path.stem for path in (tmp_path / "downloads").iterdir()} == set(figures)
    for path in (tmp_path / "downloads").iterdir():
        ours, theirs = ET.fromstring(standalone(figures[path.stem].drawing)), ET.parse(path).getroot()
        assert "var(" not in path.read_text()
        assert [element.tag for element in theirs.iter()] == [element.tag for element in ours.iter()]
        for name in ("fill", "stroke"):
            assert [each.get(name) for each in theirs.iter()] == [each.get(name) for each in ours.iter()]


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_no_page_scrolls_sideways(browser: Browser, result: Make, tmp_path: Path, width: int) -> None:
    long = result("a-method-with-a-name-that-does-not-end-" * 3, rows=triangle(20, 90), **{"setting" * 20: "x" * 300})
    long.config["benchmark"] = "benchmark" * 30
    other = result("sgd", rows=triangle(20, 60))
    other.config["benchmark"] = "benchmark" * 30
    path = tmp_path / "long.html"
    path.write_text(page(studies(done({Path("folder" * 40): long, Path("b"): other, Path("c"): result()}))))
    browser.open(path, width, phone=width < 768)
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("window.innerWidth") == width


def test_a_laptop_shows_the_whole_table(browser: Browser, result: Make, tmp_path: Path) -> None:
    """With deviations and labels that are as long as usual."""
    runs = [
        result(f"{name}, weight alignment", seed, width=width)
        for name, width in (("one", 0.5), ("other", 0.25))
        for seed in (0, 1)
    ]
    path = tmp_path / "report.html"
    path.write_text(page([study_of(runs)]))
    for width in (1100, 1200, 1280):
        browser.open(path, width=width)
        assert browser.value(
            "document.querySelector('.scroll').scrollWidth <= document.querySelector('.scroll').clientWidth"
        )


def test_texts_in_figures_stay_within_them_in_real_letters(browser: Browser, written: Path) -> None:
    browser.open(written)
    outside = """[...document.querySelectorAll('figure svg text')].filter(text => {
        const box = text.getBoundingClientRect(), room = text.ownerSVGElement.getBoundingClientRect();
        return box.left < room.left || box.top < room.top || box.right > room.right || box.bottom > room.bottom;
    }).map(text => text.textContent)"""
    assert browser.value(outside) == []


@pytest.mark.parametrize(("dark", "palette"), [(False, LIGHT), (True, DARK)])
def test_figures_follow_light_and_dark(browser: Browser, written: Path, dark: bool, palette: dict[str, str]) -> None:
    browser.open(written, dark=dark)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == rgb(palette["paper"])
    assert browser.value("getComputedStyle(document.querySelector('figure svg text')).fill") == rgb(palette["ink"])
    line = "getComputedStyle(document.querySelector('figure svg polyline[stroke*=series-0]')).stroke"
    assert browser.value(line) == rgb(palette["series-0"])
    best = browser.value("getComputedStyle(document.querySelector('td.best')).color")
    assert contrast(hexadecimal(best), palette["paper"]) >= 4.5


@pytest.fixture
def crowded(result: Make, tmp_path: Path) -> Path:
    """A page of forty methods, "method 0" the best of them, of two kinds."""
    runs = [result(f"method {rank}", rows=triangle(5, 90 - rank)) for rank in range(40)]
    for rank, run in enumerate(runs):
        object.__setattr__(run, "kind", ("rehearsal", "isolation")[rank % 2])
    path = tmp_path / "crowded.html"
    path.write_text(page([study_of(runs)]))
    return path


STAGES = "document.querySelector('.figures svg')"
DRAWN = f"[...{STAGES}.querySelectorAll('g[data-series]:not(.entry):not([display])')].map(each => each.dataset.series)"
LEGEND = f"""[...{STAGES}.querySelectorAll('.entry:not([display]), .more:not([display])')]
    .map(each => [each, each.getBoundingClientRect()])
    .sort(([, one], [, other]) => Math.round(one.y - other.y) || one.x - other.x)
    .map(([each]) => each.textContent)"""
BRIGHT = """[...new Set([...document.querySelectorAll('.study > .figures g[data-series]:not(.faded)')]
    .map(each => each.dataset.series))]"""
SECTIONS = "[...document.querySelectorAll('section[data-series]')].filter(each => !each.hidden).length"


def shown_rows(table: int) -> str:
    rows = f"[...document.querySelectorAll('table.sortable, table.texts')[{table}].tBodies[0].rows]"
    return f"{rows}.filter(row => !row.hidden).map(row => row.cells[0].textContent)"


def point_at(browser: Browser, element: str) -> None:
    """With a real pointer, in the middle of what a script's expression finds."""
    browser.value(f"{element}.scrollIntoView({{block: 'center'}})")
    box = browser.value(f"{element}.getBoundingClientRect().toJSON()")
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", **at)


def type_text(browser: Browser, text: str) -> None:
    browser.value("document.querySelector('.filter [type=search]').focus()")
    browser.tell("Input.insertText", text=text)


def test_methods_are_filtered_by_name_in_tables_charts_and_sections(browser: Browser, crowded: Path) -> None:
    browser.open(crowded)
    assert len(browser.value(LEGEND)) == 19
    type_text(browser, "Method")
    assert browser.value(LEGEND)[-1] == "and 22 more"
    type_text(browser, " 3")
    ranks = [rank for rank in range(40) if "3" in str(rank)]
    wanted = [f"method {rank}" for rank in ranks]
    for table in range(3):
        assert browser.value(shown_rows(table)) == wanted
    assert browser.value(DRAWN) == list(map(str, ranks))
    assert browser.value(LEGEND) == wanted
    assert browser.value(SECTIONS) == len(wanted)
    assert browser.value("document.querySelector('.filter output').textContent") == "13 of 40 methods"
    type_text(browser, "99")
    assert browser.value(shown_rows(0)) == browser.value(DRAWN) == browser.value(LEGEND) == []
    assert browser.value("document.querySelector('.filter output').textContent") == "0 of 40 methods"


def test_methods_are_filtered_by_kind_with_the_keyboard(browser: Browser, crowded: Path) -> None:
    browser.open(crowded)
    type_text(browser, "1")
    browser.press("Tab", 9, "")
    browser.press(" ", 32, " ")
    assert browser.value("document.activeElement.value") == "isolation"
    assert browser.value(shown_rows(0)) == [f"method {rank}" for rank in (1, 11, 13, 15, 17, 19, 21, 31)]
    browser.press("Tab", 9, "")
    browser.press(" ", 32, " ")
    assert len(browser.value(shown_rows(0))) == 13, "of both kinds"


def test_a_page_of_few_methods_has_no_filter(browser: Browser, written: Path) -> None:
    browser.open(written)
    assert browser.value("document.querySelectorAll('.filter').length") == 0


def test_a_method_that_is_pointed_at_stands_out_in_all_charts(browser: Browser, crowded: Path) -> None:
    browser.open(crowded)
    assert len(browser.value(BRIGHT)) == 40
    point_at(browser, "document.querySelector('tr[data-series=\"25\"]').cells[3]")
    assert browser.value(BRIGHT) == ["25"]
    assert browser.value(LEGEND)[-1] == "method 25", "instead of how many more there are"
    point_at(browser, f"{STAGES}.querySelector('.entry[data-series=\"4\"] text')")
    assert browser.value(BRIGHT) == ["4"]
    assert browser.value(LEGEND)[-1] == "and 22 more"
    point_at(browser, "document.querySelector('h1')")
    assert len(browser.value(BRIGHT)) == 40


def test_methods_are_kept_standing_out_with_the_keyboard(browser: Browser, crowded: Path) -> None:
    browser.open(crowded)
    tables = "[...document.querySelectorAll('table.sortable')]"
    pressed = f"{tables}.map(table => table.querySelectorAll('[aria-pressed=true]').length)"
    browser.value("document.querySelector('tr[data-series=\"29\"] button').focus()")
    assert browser.value(BRIGHT) == ["29"]
    browser.press("Enter", 13, "\r")
    browser.press("Tab", 9, "")
    assert browser.value(BRIGHT) == ["29", "30"], "one is kept, the other has the focus"
    assert browser.value(pressed) == [1, 1], "in both tables"
    assert browser.value(LEGEND)[0] == "method 29"
    assert browser.value(LEGEND)[-1] == "method 30"
    browser.press("Escape", 27, "")
    assert browser.value(BRIGHT) == ["30"]
    assert browser.value(pressed) == [0, 0]


def test_a_figure_is_kept_as_it_is_filtered_and_without_what_stands_out(
    browser: Browser, crowded: Path, tmp_path: Path
) -> None:
    browser.open(crowded)
    browser.keep_downloads(tmp_path / "downloads")
    type_text(browser, "method 2")
    browser.value("document.querySelector('tr[data-series=\"2\"] button').click()")
    browser.value("document.querySelector('.download').click()")
    kept = tmp_path / "downloads" / "stages-class-il.svg"
    deadline = time.monotonic() + SECONDS
    while not kept.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    groups = [each for each in ET.parse(kept).getroot().iter() if each.get("data-series")]
    seen = {each.get("data-series") for each in groups if each.get("display") != "none"}
    assert seen == {str(rank) for rank in range(40) if "2" in str(rank)}
    assert "faded" not in kept.read_text()


def test_hostile_names_do_nothing(browser: Browser, result: Make, tmp_path: Path) -> None:
    attack = "</script></style></title></svg><img src=x onerror=alert(1)><script>document.title='owned'</script>"
    bad = result(
        attack, change={"class_names": [attack] * 4, "environment": {"torch": attack}}, **{attack: '" onload="x'}
    )
    bad.config["benchmark"] = attack
    path = tmp_path / "hostile.html"
    path.write_text(page(studies(done({tmp_path: bad}))))
    browser.open(path)
    assert browser.value("document.title").startswith("</script>")
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("document.querySelectorAll('script').length") == 1


def test_even_a_script_that_got_in_would_not_run(running: Browser, written: Path) -> None:
    written.write_text(written.read_text().replace("<main>", "<main><script>document.title = 'owned'</script>"))
    running.open(written)
    assert running.value("document.title") != "owned"
    assert any("Content Security Policy" in each for each in running.complaints)


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[start : start + 2], 16)) for start in (1, 3, 5))})"


def hexadecimal(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in colour.removeprefix("rgb(").removesuffix(")").split(", "))
