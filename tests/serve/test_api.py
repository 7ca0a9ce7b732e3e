"""The API says what the command line says, of the same model and the same pictures."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from sparc.cli.main import main
from sparc.model_file import bytes_after, load
from tests.serve.conftest import TASKS, Site, form_of, picture, png, running


def test_pictures_are_named_as_on_the_command_line(
    site: Site, pictures: Path, taught: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [next((pictures / task / kind).iterdir()) for task, kinds in TASKS.items() for kind in kinds]
    main(["predict", str(taught), *map(str, paths), "--top", "5", "--json", "--no-cache"])
    expected = json.loads(capsys.readouterr().out)
    answer = site.post("/predict", files=[("picture", (path.name, path.read_bytes())) for path in paths]).json()
    assert answer["model"] == "demo.sparc"
    for path, found, there in zip(paths, answer["pictures"], expected, strict=True):
        assert found["name"] == path.name
        assert found["none_of_these"] == there["none_of_these"]
        assert found["tasks"] == [path.parent.parent.name]
        assert [each["class"] for each in found["predictions"]] == [each["class"] for each in there["predictions"]]
        for one, other in zip(found["predictions"], there["predictions"], strict=True):
            assert one["probability"] == pytest.approx(other["probability"], abs=1e-5)


def test_one_picture_may_be_all_of_a_request(site: Site, pictures: Path) -> None:
    content = (pictures / "shapes" / "round" / "0.png").read_bytes()
    answer = site.post("/predict?top=1&task=shapes", content=content, headers={"Content-Type": "image/png"})
    assert [each["class"] for each in answer.json()["pictures"][0]["predictions"]] == ["round"]


def test_what_is_like_no_class_is_none_of_these(site: Site) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    from PIL import Image

    content = png(Image.fromarray(noise))
    assert site.post("/predict", content=content).json()["pictures"][0]["none_of_these"]
    assert not site.post("/predict?always=1", content=content).json()["pictures"][0]["none_of_these"]


def test_a_picture_that_cannot_be_read_spoils_no_other(site: Site, pictures: Path) -> None:
    good = (pictures / "marks" / "ring" / "0.png").read_bytes()
    answer = site.post("/predict", files=[("p", ("a.png", b"nonsense")), ("p", ("b.png", good))])
    broken, whole = answer.json()["pictures"]
    assert broken == {
        "name": "a.png",
        "error": "it cannot be decoded (it is no picture of a known kind): repair or remove it",
    }
    assert whole["predictions"][0]["class"] == "ring"
    foreign = site.post("/predict", files=[("p", ("a.heic", b"nonsense"))]).json()
    assert "make a JPEG or a PNG of it" in foreign["error"]
    alone = site.post("/predict", content=b"nonsense")
    assert (alone.status_code, alone.json()["error"]) == (400, broken["error"])


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("top=0", "top 0 names nothing: give at least 1"),
        ("task=shape", "unknown task “shape”: did you mean shapes?"),
        ("reject=2", "2 is no share of known pictures that pass: choose above 0 and below 1"),
        ("reject=nan", "nan is no share of known pictures that pass: choose above 0 and below 1"),
        ("reject=0.9&always=1", "reject and always say opposite things: give one of them"),
        ("tpo=1", "“tpo” is not known here: there are always, reject, task, top"),
    ],
)
def test_questions_that_make_no_sense(site: Site, pictures: Path, query: str, sentence: str) -> None:
    content = (pictures / "marks" / "ring" / "0.png").read_bytes()
    answer = site.post(f"/predict?{query}", content=content)
    assert (answer.status_code, answer.json()) == (400, {"error": sentence})


def test_requests_that_wait_are_answered_together_and_as_alone(site: Site, pictures: Path) -> None:
    contents = [path.read_bytes() for path in sorted(pictures.glob("*/*/*.png"))[::3]]
    alone = [site.post("/predict", content=content).json() for content in contents]
    batcher = site.server.asking.batcher
    batches, asked = batcher.batches, batcher.pictures
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda content: site.post("/predict", content=content).json(), contents))
    for one, other in zip(alone, together, strict=True):
        assert one["pictures"][0]["tasks"] == other["pictures"][0]["tasks"]
        for a, b in zip(one["pictures"][0]["predictions"], other["pictures"][0]["predictions"], strict=True):
            assert a["class"] == b["class"]
            assert a["probability"] == pytest.approx(b["probability"], abs=1e-4)
    assert batcher.pictures - asked == len(contents)
    assert batcher.batches - batches < len(contents)


def test_what_it_knows(site: Site, taught: Path) -> None:
    found = site.get("/model").json()
    assert [each["name"] for each in found["tasks"]] == list(TASKS)
    assert {each["name"]: each["tasks"] for each in found["classes"]} == {
        kind: [task] for task, kinds in TASKS.items() for kind in kinds
    }
    assert [each["pictures"] for each in found["classes"]] == [30] * 4
    assert all(each["most_like"] != each["name"] for each in found["classes"])
    assert found["bytes"] == taught.stat().st_size
    assert str(taught.parent) not in json.dumps(found)


def test_figures_show_how_large_it_was(site: Site, taught: Path) -> None:
    growth, accuracy = site.get("/figures").json()["figures"]
    assert growth.startswith("<svg")
    assert "among all then" in accuracy
    info = load(taught).info
    # The rest of the file is its description.
    assert 0 < taught.stat().st_size - bytes_after(info, 2) < 60_000
    assert bytes_after(info, 1) < bytes_after(info, 2)


def test_a_labelled_folder_is_tested_as_on_the_command_line(
    site: Site, pictures: Path, taught: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["test", str(taught), str(pictures / "marks"), "--json", "--no-cache"])
    expected = json.loads(capsys.readouterr().out)
    answer = site.post("/test", files=form_of(pictures / "marks")).json()
    expected.pop("unknown_accepted")
    assert answer == expected
    wrong = site.post("/test", files=[("crosses", ("1.png", b"x"))])
    assert (wrong.status_code, wrong.json()["error"]) == (
        400,
        "“crosses” is named after no class of demo.sparc: did you mean cross? (or move it elsewhere)",
    )


def test_downloads(site: Site, taught: Path, pictures: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = site.get("/download/model")
    assert model.content == taught.read_bytes()
    assert model.headers["content-disposition"] == 'attachment; filename="demo.sparc"'
    assert site.get("/download/card").text.startswith("# Model card: demo")
    session = runtime.InferenceSession(site.get("/download/onnx").content, providers=["CPUExecutionProvider"])
    path = pictures / "shapes" / "square" / "3.png"
    images = load(taught).info.shape.images([path])
    (probabilities,) = session.run(["probabilities"], {"images": images.numpy()})
    found = site.post("/predict?top=4", content=path.read_bytes()).json()["pictures"][0]["predictions"]
    classes = load(taught).info.classes
    for each in found:
        assert each["probability"] == pytest.approx(probabilities[0, classes.index(each["class"])], abs=1e-4)


def test_every_path_is_documented_and_there(site: Site) -> None:
    specification = site.get("/openapi.json").json()
    documented = {(method.upper(), path) for path, methods in specification["paths"].items() for method in methods}
    pages = {"/api", "/openapi.json"}
    routes = {
        (method, route.path)
        for route in site.server.routes()
        for method in route.methods - {"HEAD"}
        if route.path not in pages and "." not in route.path and route.path != "/"
    }
    assert documented == routes
    page = site.get("/api").text
    for _, path in documented:
        assert path in page
    assert f"{site.url}/predict" in page


def test_pages_ask_no_other_host(site: Site) -> None:
    for path in ("/", "/api", "/page.css", "/page.js", "/teach.js", "/ask.js", "/look.js", "/camera.js", "/common.js"):
        answer = site.get(path)
        assert answer.status_code == 200, path
        others = answer.text.replace(site.url, "").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in others, path
        assert "https://" not in others, path
        assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_what_is_not_there_is_said_to_be(site: Site) -> None:
    missing = site.get("/nothing")
    assert (missing.status_code, missing.json()["error"]) == (
        404,
        "there is nothing at this address: see /api for what there is",
    )
    assert site.get("/predict").status_code == 405


def test_edits(own: Path, serve: Callable[..., Site]) -> None:
    site = serve(own)
    renamed = site.post("/rename", json={"old": "round", "new": "disc"})
    assert renamed.json()["message"].startswith("round is called disc now.")
    assert load(own).info.classes[0] == "disc"
    assert site.get("/model").json()["classes"][0]["name"] == "disc"
    clash = site.post("/rename", json={"old": "disc", "new": "ring"})
    assert (clash.status_code, clash.json()["error"]) == (
        400,
        "the model has a class “ring” already: take another name",
    )
    assert site.post("/rename", json={"old": "marks", "new": "signs", "kind": "task"}).status_code == 200
    forgotten = site.post("/forget", json={"classes": ["disc"]})
    assert "disc of shapes: the outputs are gone" in forgotten.json()["message"]
    assert site.post("/forget", json={"task": "signs"}).status_code == 200
    assert load(own).info.classes == ("square",)
    assert site.post("/forget", json={"classes": ["square"]}).status_code == 200
    nothing = site.post("/predict", content=png(picture("ring", np.random.default_rng(0))))
    assert (nothing.status_code, nothing.json()["error"]) == (409, "demo.sparc knows no class: teach it some first")


@pytest.mark.parametrize(
    ("path", "given", "sentence"),
    [
        ("/forget", {}, "say what to forget: either names of classes, or a task, and not both"),
        ("/forget", {"classes": ["ring"], "task": "marks"}, "say what to forget: either names of classes, or a task"),
        ("/forget", {"classes": ["rings"]}, "unknown class “rings”: did you mean ring?"),
        ("/forget", {"classes": "ring"}, "“classes” is a list of names"),
        ("/rename", {"old": "ring"}, "“new” is missing, or no text"),
        ("/rename", {"old": "ring", "new": " "}, "“ ” is no name for a task or a class"),
        ("/rename", {"old": "ring", "new": "x", "kind": "thing"}, "“kind” is class or task"),
        ("/rename", {"older": "ring"}, "“older” is not known here: there are kind, new, old"),
    ],
)
def test_edits_that_make_no_sense(site: Site, path: str, given: dict[str, object], sentence: str) -> None:
    answer = site.post(path, json=given)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(sentence)


def test_who_else_replaces_the_file_is_noticed(own: Path, taught: Path, serve: Callable[..., Site]) -> None:
    site = serve(own)
    assert main(["rename", str(own), "ring", "hoop"]) == 0
    assert "hoop" in [each["name"] for each in site.get("/model").json()["classes"]]
    own.write_bytes(taught.read_bytes()[:1000])
    found = site.get("/model").json()
    assert "is not a model, or was cut off" in found["trouble"]
    assert "hoop" in [each["name"] for each in found["classes"]]
    content = png(picture("ring", np.random.default_rng(0)))
    assert site.post("/predict", content=content).json()["pictures"][0]["predictions"][0]["class"] == "hoop"
    own.unlink()
    assert not site.get("/model").json()["exists"]
    own.write_bytes(taught.read_bytes())
    assert site.get("/model").json()["trouble"] == ""


def test_tasks_are_learned_as_on_the_command_line(pictures: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "demo.sparc"
    path.parent.mkdir()
    content = (pictures / "shapes" / "round" / "0.png").read_bytes()
    with running(path) as site:
        assert site.get("/model").json() == {
            "name": "demo.sparc", "exists": False, "trouble": "", "classes": [], "tasks": []
        }  # fmt: skip
        begun = site.learn(pictures / "shapes", task="shapes", start="nothing")
        assert (begun.status_code, begun.json()["state"]) == (202, "starting")
        busy = site.learn(pictures / "marks", task="marks")
        assert (busy.status_code, busy.json()["error"]) == (
            409,
            "a task is being learned: wait until it has ended, or stop it",
        )
        ended = site.until("learned")
        assert ended["message"] == "“shapes” is learned. The 60 pictures that were sent are deleted."
        assert ended["learned"]["classes"] == ["round", "square"]
        again = site.learn(pictures / "marks", task="shapes")
        assert again.json()["error"] == "the model has a task “shapes” already: give this one another name"
        for name, value in (("fit", "pad"), ("start", "lite0"), ("flip", "no")):
            there = {"fit": "crop", "start": "nothing", "flip": "yes"}[name]
            refused = site.learn(pictures / "marks", **{name: value}).json()["error"]
            assert refused == f"{name} of demo.sparc is {there} for good: leave it out, or make another model"
        assert len(site.get("/model").json()["classes"]) == 2
        assert site.post("/predict", content=content).json()["pictures"][0]["predictions"][0]["class"] == "round"
    assert [entry.name for entry in path.parent.iterdir()] == ["demo.sparc"]
    expected = tmp_path / "expected.sparc"
    main(["learn", str(pictures / "shapes"), "--model", str(expected), "--start", "nothing", "--json"])
    one, other = (safetensors.torch.load(file.read_bytes()) for file in (path, expected))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
