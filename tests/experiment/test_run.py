import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sparc.errors import InputError
from sparc.experiment import RunConfig, StreamSettings, Workplace, read_result, run
from sparc.experiment.run import state_digest
from sparc.methods import METHODS
from sparc.methods.sparc.settings import SparcSettings
from sparc.train import seeded
from tests.examples import AUGMENT

QUICK = RunConfig.default("seq-digits", "sparc")
QUICK = replace(QUICK, settings=SparcSettings(width=1 / 8), recipe=replace(QUICK.recipe, epochs=1, batch_size=128))

TIMES = {"seconds"}


def measured(path: Path) -> dict[str, object]:
    return {name: value for name, value in json.loads(path.read_bytes()).items() if name not in TIMES}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(QUICK, Workplace(tmp_path_factory.mktemp("runs"))).folder


def test_the_result_says_all_that_was_measured(finished: Path) -> None:
    content = json.loads((finished / "result.json").read_bytes())
    for matrix in (content["class_il"], content["task_il"]):
        assert [[value is None for value in row] for row in matrix] == [
            [task > stage for task in range(5)] for stage in range(5)
        ]
    assert content["metrics"]["class_il"]["accuracy"] == pytest.approx(sum(content["class_il"][-1]) / 5)
    assert sum(content["task_probabilities"]) == pytest.approx(1)
    assert content["parameters"] == sum(content["parameters_by_owner"].values())
    assert content["config"]["recipe"]["epochs"] == 1
    assert content["data"]["train"] + content["data"]["test"] == 1797
    assert {"sparc", "python", "torch", "threads", "device"} <= content["environment"].keys()
    assert len(content["seconds"]["train"]) == 5


def test_what_is_written_can_be_read(finished: Path) -> None:
    result = read_result(finished / "result.json")
    assert json.loads(json.dumps(result.as_json())) == json.loads((finished / "result.json").read_bytes())


def test_the_log_has_a_line_an_epoch_and_a_line_a_task(finished: Path) -> None:
    lines = [json.loads(line) for line in (finished / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["epoch", "stage"] * 5
    assert all(line["step"] == line["steps"] for line in lines if line["event"] == "epoch")


def test_same_seed_same_bits(finished: Path, tmp_path: Path) -> None:
    again = run(QUICK, Workplace(tmp_path)).folder
    assert measured(again / "result.json") == measured(finished / "result.json")
    other = run(replace(QUICK, seed=1), Workplace(tmp_path)).folder
    assert measured(other / "result.json")["state_sha256"] != measured(again / "result.json")["state_sha256"]


def test_a_run_that_is_there_is_not_run_again_unless_asked(finished: Path) -> None:
    before = (finished / "result.json").stat().st_mtime_ns
    again = run(QUICK, Workplace(finished.parent))
    assert again.was_there
    assert again.folder == finished
    assert (finished / "result.json").stat().st_mtime_ns == before
    fresh = run(QUICK, Workplace(finished.parent, fresh=True))
    assert not fresh.was_there
    assert (finished / "result.json").stat().st_mtime_ns > before


def test_the_folder_is_named_by_what_is_run_not_by_how_it_is_spelled(finished: Path) -> None:
    spelled = replace(QUICK, stream=StreamSettings(sizes=(2, 2, 2, 2, 2)))
    assert run(spelled, Workplace(finished.parent)).was_there
    assert finished.name.startswith("seq-digits-sparc-seed0-")
    for change in ({"seed": 1}, {"stream": StreamSettings(order_seed=1)}, {"settings": SparcSettings(width=1 / 16)}):
        assert run(replace(QUICK, **change), Workplace(finished.parent)).folder != finished


def test_the_seed_sets_the_weights_too() -> None:
    """Two seeds that differ in their batches only would agree before the first step."""
    first, second = (
        METHODS.find("sparc")(QUICK.settings, 1, (8, 8), AUGMENT, seeded(seed, "method")) for seed in (0, 1)
    )
    assert state_digest(first) != state_digest(second)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 1}', b"\xff\xfe", b"null"])
def test_a_broken_result_is_refused_by_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(InputError, match=r"result\.json is not a result"):
        read_result(tmp_path / "result.json")


def test_a_newer_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"format": 2}')
    with pytest.raises(InputError, match="is of format 2"):
        read_result(tmp_path / "result.json")


@pytest.mark.parametrize(
    "change",
    [
        {"stream": StreamSettings(tasks=11)},
        {"stream": StreamSettings(tasks=0)},
        {"stream": StreamSettings(sizes=())},
    ],
)
def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        run(replace(QUICK, **change), Workplace(tmp_path / "runs"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--out .* cannot be written"):
        run(QUICK, Workplace(tmp_path / "file" / "runs"))


def test_a_folder_of_pictures_is_learned(picture_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = picture_folder(classes=4)
    config = replace(QUICK, benchmark=str(folder), stream=StreamSettings(sizes=(1, 3), validation=0.2))
    finished = run(config, Workplace(tmp_path / "runs"))
    assert finished.folder.name.startswith("folder-pictures-sparc-seed0-")
    assert finished.result.sizes == [1, 3]
    assert finished.result.class_names == ["class-0", "class-1", "class-2", "class-3"]
    assert finished.result.validation is not None
    # A picture more is another data set, and so another run.
    assert run(replace(config, benchmark=f"{folder}/."), Workplace(tmp_path / "runs")).was_there
    (folder / "class-0" / "new.png").write_bytes((folder / "class-0" / "0.png").read_bytes())
    assert run(config, Workplace(tmp_path / "runs")).folder != finished.folder


def test_an_unknown_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--device nonsense cannot be used"):
        run(QUICK, Workplace(tmp_path, device="nonsense"))


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"tasks": 2, "sizes": (5, 5)}, "--tasks and --sizes"),
        ({"image_size": 4}, "--image-size 4"),
        ({"order_seed": -1}, "--order-seed"),
    ],
)
def test_stream_settings_that_make_no_sense_are_refused(values: dict[str, int], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        StreamSettings(**values)
