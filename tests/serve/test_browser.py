"""The page in a real browser: Debian's chromium, driven by Playwright."""

import base64
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparc.data.class_folders import class_folders, folder_to_test, split_of
from sparc.data.tree import Tree
from sparc.model_file import load
from sparc.predictor import answers
from tests.serve.conftest import Site, running

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
SECONDS = 600_000
"""In milliseconds: learning is of low priority, and the machine may be busy."""
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt install chromium, or set $CHROMIUM")
DROP = """
(zone, files) => {
  const transfer = new DataTransfer();
  for (const [name, content] of files) {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([bytes], name, { type: "image/png", lastModified: 1 }));
  }
  for (const kind of ["dragenter", "dragover", "drop"]) {
    zone.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """A page of the site; whatever goes wrong in it, or is asked of another host, fails the test."""
    wrong: list[str] = []
    contexts = []

    def visit(site: Site, where: str = "", strict: bool = True, **options: Any) -> Any:
        context = browser.new_context(accept_downloads=True, **options)
        context.set_default_timeout(SECONDS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if strict and said.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((site.url, "blob:", "data:")) else wrong.append(asked.url),
        )
        page.goto(site.url + where)
        page.wait_for_selector("html[data-ready]")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not wrong


def drop(zone: Any, paths: list[Path]) -> None:
    zone.evaluate(DROP, [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths])


def collect(page: Any, folder: Path, task: str) -> None:
    """Name the classes of a folder, and drop their pictures on them."""
    page.fill("#task", task)
    for number, kind in enumerate(sorted(folder.iterdir())):
        card = page.locator(".class").nth(number)
        card.locator(".class-name").fill(kind.name)
        drop(card.locator(".drop").element_handle(), sorted(kind.iterdir()))
        page.wait_for_function(
            "([card, count]) => card.querySelector('.count').textContent === count",
            arg=[card.element_handle(), "30 pictures"],
        )


def outcome(page: Any) -> str:
    page.wait_for_selector("#outcome:not([hidden])")
    text: str = page.inner_text("#outcome")
    return text


@pytest.mark.long
def test_two_tasks_are_taught_asked_and_downloaded(pictures: Path, tmp_path: Path, visit: Callable[..., Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "new.sparc"
    with running(path) as site:
        page = visit(site)
        assert "is not there yet" in page.inner_text("#summary")
        collect(page, pictures / "shapes", "shapes")
        page.locator(".thumbs button").first.press("Enter")
        assert page.inner_text("#collected") == "59 pictures of 2 classes"
        drop(page.locator(".drop").first.element_handle(), sorted((pictures / "shapes" / "round").iterdir())[:1])
        assert page.inner_text("#collected") == "60 pictures of 2 classes"
        page.click("summary")
        page.select_option("[name=start]", "nothing")
        page.click("#learn")
        said = outcome(page)
        assert "“shapes” is learned. The 60 pictures that were sent are deleted. They are taken off this page" in said
        assert page.locator(".thumbs li").count() == 0
        first = path.read_bytes()

        collect(page, pictures / "marks", "marks")
        page.wait_for_selector("[name=start]", state="hidden")
        page.select_option("[name=effort]", "thorough")
        page.click("#learn")
        page.wait_for_function("() => document.querySelector('#progress-note').textContent.includes('loss')")
        assert page.inner_text("#progress-title") == "Learning: marks"
        page.click("#stop")
        assert "Stopped: the model is as it was before." in outcome(page)
        assert path.read_bytes() == first
        assert page.locator(".thumbs li").count() > 0
        page.select_option("[name=effort]", "")
        page.click("#learn")
        assert "“marks” is learned." in outcome(page)

        page.locator("#tab-teach").press("ArrowRight")
        chosen = [next((pictures / "shapes" / "square").iterdir()), next((pictures / "marks" / "ring").iterdir())]
        drop(page.locator("#ask-drop").element_handle(), chosen)
        page.wait_for_function("() => document.querySelectorAll('.answer .bars').length === 2")
        assert page.locator(".answer h3").all_inner_texts() == ["ring", "square"]
        assert page.locator(".answer .hint").all_inner_texts() == ["Learned in “marks”", "Learned in “shapes”"]

        page.click("#tab-look")
        page.wait_for_function("() => document.querySelectorAll('#class-table tbody tr').length === 4")
        page.wait_for_selector("#figures svg")
        assert page.locator("#class-table tbody th").all_inner_texts() == ["round", "square", "cross", "ring"]
        page.click("button[aria-label='Rename ring']")
        page.fill("#rename-name", "hoop")
        page.keyboard.press("Enter")
        page.wait_for_selector("button[aria-label='Forget hoop']")
        page.click("button[aria-label='Forget round']")
        page.click("#forget .danger")
        page.wait_for_function("() => document.querySelectorAll('#class-table tbody tr').length === 3")
        assert "round of shapes: the outputs are gone" in page.inner_text("#look-note")
        with page.expect_download() as download:
            page.click("#download-onnx")
        assert download.value.suggested_filename == "new.onnx"
        session = runtime.InferenceSession(download.value.path(), providers=["CPUExecutionProvider"])
        page.close()
    model = load(path)
    assert model.info.classes == ("square", "cross", "hoop")
    images = model.info.shape.images(sorted((pictures / "marks" / "cross").iterdir()))
    (scores,) = session.run(["scores"], {"images": images.numpy()})
    assert abs(scores - answers(model, images).scores).max() < 1e-3


@pytest.fixture(scope="module")
def still(taught: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    path = tmp_path_factory.mktemp("still") / "demo.sparc"
    path.write_bytes(taught.read_bytes())
    with running(path) as site:
        yield site


def test_a_class_is_taught_asked_and_forgotten(own: Path, pictures: Path, visit: Callable[..., Any]) -> None:
    with running(own) as site:
        page = visit(site)
        page.fill("#task", "more")
        page.click("#learn")
        assert page.inner_text("#teach-problem").startswith("There is nothing to learn from")
        card = page.locator(".class").first
        drop(card.locator(".drop").element_handle(), sorted((pictures / "marks" / "ring").iterdir())[:9])
        page.click("#learn")
        assert page.inner_text("#teach-problem") == "A class has no name: give it one."
        card.locator(".class-name").fill("“hoop” <b>")
        page.click("#learn")
        assert "“more” is learned. The 9 pictures that were sent are deleted." in outcome(page)
        page.click("#tab-ask")
        page.select_option("#ask-task", "more")
        drop(page.locator("#ask-drop").element_handle(), [next((pictures / "marks" / "ring").iterdir())])
        page.wait_for_selector(".answer .bars")
        assert page.locator(".answer .bars .name").all_inner_texts() == ["“hoop” <b>"]
        page.click("#tab-look")
        page.click("button[aria-label='Forget task more']")
        page.click("#forget .danger")
        page.wait_for_function("() => document.querySelectorAll('#class-table tbody tr').length === 4")
        page.close()


BY_CLASS = """
async ([paths, options]) => {
  const { byClass } = await import("/common.js");
  const pictures = paths.map((path) => ({ file: path, folders: path.split("/").slice(0, -1) }));
  const { classes, left } = byClass(pictures, options);
  return [Object.fromEntries(classes), left];
}
"""
LAYOUTS = [
    ["cat/1.png", "dog/1.png"],
    ["train/cat/1.png", "train/cat/2.png", "Test/cat/3.png", "Test/dog/deep/4.png"],
    ["train/cat/1.png", "val/cat/2.png", "test/cat/3.png", "cat/4.png"],
    ["train/0.png", "train/cat/1.png", "train/dog/2.png"],
    ["train/cat/1.png", "dog/2.png"],
    ["validation/cat/1.png", "dog/2.png"],
    ["train/1.png", "test/1.png"],
]


def test_a_folder_that_is_split_is_taken_as_on_the_command_line(
    still: Site, tmp_path: Path, visit: Callable[..., Any]
) -> None:
    page = visit(still)
    for number, layout in enumerate(LAYOUTS):
        top = tmp_path / str(number)
        paths = [f"{number}/{path}" for path in layout]
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
        for options, tree in (({}, split_of(Tree(top))[0]), ({"toTest": True}, folder_to_test(Tree(top)))):
            within = tree.path.relative_to(tmp_path)
            expected = {name: [f"{within}/{file}" for file in files] for name, files in class_folders(tree).items()}
            assert page.evaluate(BY_CLASS, [paths, options])[0] == expected, layout
    without_top = page.evaluate(BY_CLASS, [["train/cat/1.png", "test/cat/2.png", "test/cat/3.png"], {}])
    assert without_top == [{"cat": ["train/cat/1.png"]}, 2]
    assert page.evaluate(BY_CLASS, [["cat/1.png", "dog/2.png", "3.png"], {}]) == [
        {"cat": ["cat/1.png"], "dog": ["dog/2.png"]},
        0,
    ]


def test_the_test_part_of_a_folder_is_not_taught_but_tested(
    still: Site, pictures: Path, tmp_path: Path, visit: Callable[..., Any]
) -> None:
    for part, chosen in (("train", slice(0, 5)), ("test", slice(5, 7))):
        for kind in ("cross", "ring"):
            (tmp_path / "marks" / part / kind).mkdir(parents=True)
            for path in sorted((pictures / "marks" / kind).iterdir())[chosen]:
                (tmp_path / "marks" / part / kind / path.name).write_bytes(path.read_bytes())
    page = visit(still, "#teach")
    page.locator("#folders").set_input_files(tmp_path / "marks")
    page.wait_for_selector("#teach-note:not(:empty)")
    assert page.inner_text("#teach-note").startswith("4 pictures of the test part are left out")
    assert page.inner_text("#collected") == "10 pictures of 2 classes"
    assert page.input_value("#task") == "marks"
    page.click("#tab-look")
    page.locator("#test-files").set_input_files(tmp_path / "marks")
    page.wait_for_selector("#tested .confusion")
    assert page.locator("#tested .facts li").first.inner_text().split() == ["pictures", "4"]


def test_the_camera_takes_pictures_and_is_answered(still: Site, visit: Callable[..., Any]) -> None:
    page = visit(still, "#teach")
    page.locator(".take").first.click()
    page.wait_for_function("() => document.querySelector('#camera-video').videoWidth > 0")
    page.click("#camera-take")
    page.wait_for_function("() => document.querySelector('#camera-note').textContent === '1 picture taken'")
    page.click("#camera-burst")
    page.wait_for_function("() => document.querySelectorAll('.thumbs li').length >= 3")
    page.click("#camera-close")
    page.wait_for_function("() => document.querySelector('#camera-video').srcObject === null")
    page.click("#tab-ask")
    page.click("#ask-live")
    page.wait_for_selector("#live-answer h3")
    page.wait_for_function("() => document.querySelector('#live-note').textContent.includes('answers a second')")
    page.click("#tab-look")
    page.wait_for_function("() => document.querySelector('#live-video').srcObject === null")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1200, "light")])
def test_it_fits_and_can_be_read(
    still: Site, pictures: Path, visit: Callable[..., Any], width: int, scheme: str
) -> None:
    page = visit(still, "#look", viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.locator("#test-files").set_input_files(pictures / "marks")
    page.wait_for_selector("#tested .confusion")
    for name in ("look", "ask", "teach"):
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        unnamed = page.evaluate(UNNAMED)
        assert unnamed == [], name
        assert page.evaluate(PALE) == [], name
    page.goto(f"{still.url}/api")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


UNNAMED = """
() => [...document.querySelectorAll("button, input:not([hidden]), select, img, video, [role=tabpanel], progress")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !each.ariaLabel && !each.alt && !each.innerText?.trim() && !each.labels?.length)
  .filter((each) => !each.getAttribute("aria-labelledby"))
  .map((each) => each.outerHTML)
"""
PALE = """
() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).map(Number);
    const linear = parts.slice(0, 3).map((part) => ((part / 255 + 0.055) / 1.055) ** 2.4);
    return [0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], parts[3] ?? 1];
  };
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const [value, alpha] = light(getComputedStyle(at).backgroundColor);
      if (alpha > 0.5) return value;
    }
    return 1;
  };
  const found = [];
  for (const each of document.querySelectorAll("body *")) {
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !each.checkVisibility() || each.closest(".unseen, .skip, svg, :disabled, noscript")) continue;
    const [ink] = light(getComputedStyle(each).color);
    const paper = behind(each);
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) found.push(`${each.outerHTML.slice(0, 80)}: ${contrast.toFixed(2)}`);
  }
  return found;
}
"""
"""Text that does not stand out from what it lies on as WCAG asks for."""


def test_a_server_that_is_gone_is_said_to_be(own: Path, visit: Callable[..., Any]) -> None:
    with running(own) as site:
        page = visit(site, strict=False)
    page.click("#tab-look")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "The server does not answer" in page.inner_text("#trouble")
