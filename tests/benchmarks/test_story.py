"""The story of classes taught month by month, with pictures that take no time."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
from torch import Generator, Tensor

from benchmarks.story import __main__ as command
from benchmarks.story.learners import LEARNERS, Learner, Sparc, hog
from benchmarks.story.measure import STORIES, Story, drawn, measured, strangers
from sparc.data.imageset import ImageSet, Splits
from sparc.data.sources.stored import StoredSource
from sparc.errors import InputError
from tests.pages import ROOT, commands

CLASSES, PER_CLASS, TESTED = 15, 6, 3
SHORT = Story("5 classes in tasks of 2, 2 and 1", (2, 2, 1), ("made-up",), (4,))
CHEAP = ["pixels", "hog", "patches"]
PAGE = "docs/story.md"


def pictures(per_class: int, seed: int) -> ImageSet:
    """Each class has stripes in a direction of its own, in noise."""
    labels = torch.arange(CLASSES).repeat_interleave(per_class)
    angles = labels[:, None, None] * (math.pi / CLASSES)
    rows, columns = torch.arange(16.0)[:, None], torch.arange(16.0)
    stripes = (columns * angles.cos() + rows * angles.sin()).sin()[:, None]
    noise = torch.rand(len(labels), 3, 16, 16, generator=Generator().manual_seed(seed))
    images = (100 + 90 * stripes + 50 * noise).byte()
    return ImageSet(images, labels, tuple(f"class {label}" for label in range(CLASSES)))


SOURCE = Splits(pictures(PER_CLASS, seed=1), pictures(TESTED, seed=2))


@pytest.mark.parametrize("name", CHEAP)
def test_a_learner_knows_the_classes_of_all_tasks(name):
    figures = measured(LEARNERS[name](seed=0), SHORT, drawn(SOURCE, SHORT, pictures=4, draw=0))
    assert figures.accuracy > 90
    assert figures.seconds > 0
    assert figures.milliseconds > 0


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in CHEAP])
def test_a_classifier_takes_what_it_is_given(name, monkeypatch):
    learner = LEARNERS[name]
    assert issubclass(learner, Sparc)
    # Nothing is trained on a start.
    shorter = {"width": 0.125, "patches": 0, "epochs": 1} if learner.options["start"] == "nothing" else {}
    monkeypatch.setattr(learner, "options", {**learner.options, **shorter})
    figures = measured(learner(seed=0), SHORT, drawn(SOURCE, SHORT, pictures=4, draw=0))
    assert 0 <= figures.accuracy <= 100


class Recorder(Learner):
    def __init__(self) -> None:
        super().__init__(seed=0)
        self.tasks: list[list[int]] = []

    def teach(self, pictures: ImageSet) -> None:
        self.tasks.append(pictures.labels.unique().tolist())

    def predict(self, images: Tensor) -> Tensor:
        return torch.zeros(len(images), dtype=torch.int64)


class Sceptic(Recorder):
    """Knows what is brighter than usual."""

    def knows(self, images: Tensor) -> Tensor:
        return images.float().mean((1, 2, 3)) > 120


def test_who_passes_as_known():
    splits = drawn(SOURCE, SHORT, pictures=4, draw=0)
    others = strangers(SOURCE, splits, draw=0)
    assert len(others) == (CLASSES - 5) * TESTED
    assert not as_set(splits.test) & {image.numpy().tobytes() for image in others}
    figures = measured(Sceptic(), SHORT, splits, torch.full((4, 3, 16, 16), 200, dtype=torch.uint8))
    assert figures.unknown == 100
    assert figures.known is not None
    assert measured(Recorder(), SHORT, splits, others).known is None


class RecorderAtOnce(Recorder):
    at_once = True


@pytest.mark.parametrize(
    ("recorder", "tasks"), [(Recorder(), [[0, 1], [2, 3], [4]]), (RecorderAtOnce(), [[*range(5)]])]
)
def test_tasks_come_one_after_another_or_at_once(recorder, tasks):
    figures = measured(recorder, SHORT, drawn(SOURCE, SHORT, pictures=4, draw=0))
    assert recorder.tasks == tasks
    assert figures.accuracy == 20


def as_set(images: ImageSet) -> set[bytes]:
    return {image.numpy().tobytes() for image in images.images}


def test_a_draw_is_of_some_classes_and_pictures():
    one, same, other = (drawn(SOURCE, SHORT, 4, draw) for draw in (0, 0, 1))
    assert torch.equal(one.train.images, same.train.images)
    assert one.train.class_names != other.train.class_names
    assert one.train.counts() == [4] * 5
    assert one.test.counts() == [TESTED] * 5
    for part, whole in zip(one, SOURCE, strict=True):
        assert as_set(part) <= as_set(whole)
        for image, label in zip(part.images, part.labels.tolist(), strict=True):
            (found,) = torch.nonzero((whole.images == image).flatten(1).all(1)).flatten().tolist()
            assert whole.class_names[whole.labels[found]] == part.class_names[label]


def test_fewer_pictures_are_among_more_of_the_same_classes():
    few, many = (drawn(SOURCE, SHORT, count, draw=0) for count in (2, 4))
    assert few.train.class_names == many.train.class_names
    assert as_set(few.train) < as_set(many.train)
    assert torch.equal(few.test.images, many.test.images)


@pytest.mark.parametrize(("count", "tested"), [(2, TESTED), (4, 2)])
def test_held_out_pictures_are_neither_learned_from_nor_of_the_test_part(count, tested):
    train, test = drawn(SOURCE, SHORT, count, draw=0, held_out=True)
    assert test.counts() == [tested] * 5
    assert as_set(test) <= as_set(SOURCE.train) - as_set(train)
    assert as_set(train) == as_set(drawn(SOURCE, SHORT, count, draw=0).train)


@pytest.mark.parametrize(
    ("story", "count", "held_out"), [("hundred", 4, False), ("months", 7, False), ("months", 6, True)]
)
def test_what_a_source_has_not_got_is_said(story, count, held_out):
    with pytest.raises(InputError, match="choose"):
        drawn(SOURCE, STORIES[story], count, draw=0, held_out=held_out)


def test_hog_sees_directions_and_neither_contrast_nor_brightness():
    images = torch.full((2, 3, 16, 16), 100.0)
    images[0, :, :, 3:9] = 200
    images[1, :, 3:9] = 200
    upright, level = hog(images).view(2, 9, 4).sum(2)
    assert upright.nonzero().tolist() == [[0]]
    assert level.nonzero().tolist() == [[4]]
    assert torch.allclose(hog(images), hog(250 - images / 2))


def told(monkeypatch, capsys, *arguments: str, load=lambda: SOURCE) -> str:
    monkeypatch.setattr(command, "find", lambda name: SimpleNamespace(title=name.upper(), load=load))
    command.main(["--rows", "pixels", "hog", "--source", "made-up", "--pictures", "4", "2", *arguments])
    return capsys.readouterr().out


def test_what_is_in_the_file_is_not_measured_again(monkeypatch, capsys, tmp_path):
    out = str(tmp_path / "story.json")
    first = told(monkeypatch, capsys, "--out", out, "--draws", "2")
    written = json.loads((tmp_path / "story.json").read_text())
    assert len(written) == 2 * 2 * 2
    again = told(monkeypatch, capsys, "--out", out, "--draws", "2", load=lambda: pytest.fail("it loads pictures"))
    assert again == first
    told(monkeypatch, capsys, "--out", out, "--draws", "2", "--held-out")
    assert json.loads((tmp_path / "story.json").read_text())[: len(written)] == written


def test_tables(monkeypatch, capsys, tmp_path):
    out = str(tmp_path / "story.json")
    shown = told(monkeypatch, capsys, "--out", out)
    assert "MADE-UP, 14 classes in tasks of 5, 5, 3 and 1" in shown
    lines = told(monkeypatch, capsys, "--out", out, "--markdown").splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert [len(line) for line in table] == [6 - (line == 0) for line in range(4)]
    assert table[2][:2] == ["nearest class mean on pixels", "100.0 ± 0.0"]


def test_what_cannot_be_is_said_in_a_sentence(monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit):
        told(monkeypatch, capsys, "--out", str(tmp_path / "story.json"), "--draws", "0")
    assert "--draws" in capsys.readouterr().err


@pytest.mark.parametrize("words", commands("sh long", [PAGE]), ids=" ".join)
def test_the_page_has_the_tables_of_its_commands(words, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(StoredSource, "load", lambda *_: pytest.fail("figures are missing"))
    assert words[:3] == ["python", "-m", "benchmarks.story"]
    command.main(words[3:])
    page = (ROOT / PAGE).read_text()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert lines
    assert all(line in page for line in lines)
