"""Tables and figures of the paper as they are shown."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from sparc.data.benchmarks import find
from sparc.experiment import Result, Run, RunConfig
from sparc.experiment.folder import done_run
from sparc.experiment.result import triangle
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.counts import data_of
from sparc.reproduce.exhibit import Exhibit, FigureExhibit
from sparc.reproduce.plan import SCALES, RunSpec
from sparc.reproduce.show import draw_exhibit, exhibit_tables, has_points, heading
from sparc.reproduce.tables import Filled, fill

EVERY = pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=lambda exhibit: exhibit.id)
FIGURES = [exhibit for exhibit in EXHIBITS.values() if isinstance(exhibit, FigureExhibit)]


def run(config: RunConfig) -> Run:
    tasks, data = find(config.benchmark).tasks, data_of(config.benchmark)
    rows = [[70.0 + task - stage + config.seed for task in range(stage + 1)] for stage in range(tasks)]
    made = Result(
        config=json.loads(json.dumps(config.as_json())),
        class_names=[str(label) for label in range(data.classes)],
        sizes=[data.classes // tasks] * tasks,
        class_il=triangle(rows),
        task_il=triangle(rows),
        validation=None,
        task_confusion=[[10] * tasks] * tasks,
        parameters=1_039_659,
        parameters_by_owner={},
        passes={"forward": 1, "backward": 1},
        buffer_bytes=0,
        seconds={},
        state_sha256="",
        data={"train": data.train_pictures},
        environment={},
        diagnostics={"head norm before": [2.0] * tasks, "head norm after": [1.0] * tasks},
    )
    return done_run(Path(), made)


def filled_with_all(exhibit: Exhibit, scale: str = "paper") -> Filled:
    return fill(exhibit, [run(config) for config in exhibit.needed(SCALES[scale])], SCALES[scale])


def shown(filled: Filled, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    for table in exhibit_tables(filled):
        console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


@EVERY
def test_every_one_fits_a_terminal_with_nothing_cut_short(exhibit: Exhibit) -> None:
    for filled in (filled_with_all(exhibit), fill(exhibit, [], SCALES["quick"])):
        text = shown(filled)
        assert max(map(len, text.splitlines())) <= 100
        assert "…" not in text


def test_the_papers_line_stands_above_ours() -> None:
    lines = [line.split() for line in shown(filled_with_all(EXHIBITS["table-width-depth"])).splitlines()]
    line = next(number for number, texts in enumerate(lines) if texts[:2] == ["1/2", "4"])
    assert lines[line][-4:] == ["1.040", "49.03", "±", "0.05"]
    assert lines[line + 1] == ["ours,", "3", "seeds", "1.0397", "✓", "69.00", "±", "1.00"]


def test_a_row_that_is_not_there_yet_has_no_numbers_below_the_papers() -> None:
    assert RunSpec("L2P").missing
    lines = [line.split() for line in shown(filled_with_all(EXHIBITS["table-efficiency"])).splitlines()]
    line = next(number for number, texts in enumerate(lines) if texts[:1] == ["L2P"])
    assert lines[line + 1] == ["not", "there", "yet"]


def test_different_numbers_of_seeds_are_told_cell_by_cell() -> None:
    exhibit, scale = EXHIBITS["table-results"], SCALES["paper"]
    runs = [config for config in exhibit.needed(scale) if config.method == "sparc"]
    some = [run(config) for config in runs if config.seed == 0 or config.benchmark == "seq-cifar100-5"]
    text = shown(fill(exhibit, some, scale), width=130)
    assert "ours (seeds)" in text
    assert "69.00 ± 1.00 (3)" in text
    assert "65.50 (1)" in text


def test_the_scale_is_on_everything() -> None:
    for name, scale in SCALES.items():
        for exhibit in EXHIBITS.values():
            assert f"scale {name}: " in heading(fill(exhibit, [], scale))


@pytest.mark.parametrize("exhibit", FIGURES, ids=lambda exhibit: exhibit.id)
def test_every_figure_can_be_drawn_full_and_empty(exhibit: FigureExhibit, tmp_path: Path) -> None:
    for name, filled in (("full", filled_with_all(exhibit)), ("empty", fill(exhibit, [], SCALES["quick"]))):
        path = draw_exhibit(filled, tmp_path / f"{name}.png")
        with Image.open(path) as picture:
            assert picture.format == "PNG"
            assert picture.width > 500
            assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 20
        assert has_points(filled) is (name == "full" and bool(exhibit.needed(SCALES["paper"])) and joint_is(exhibit))


def joint_is(exhibit: FigureExhibit) -> bool:
    """Size against accuracy is relative to JOINT."""
    return exhibit.id != "figure-size" or not RunSpec("JOINT").missing
