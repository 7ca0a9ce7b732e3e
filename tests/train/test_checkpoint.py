import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods import Batch, Phase, Recipe
from sparc.methods.bounds.sgd import SGD
from sparc.methods.parts.single import SingleNetSettings
from sparc.train import Checkpointer, Checkpoints, Snapshot, Trainer, newest_content, seeded
from tests.examples import AUGMENT
from tests.train.kept import Kept

RECIPE = Recipe(epochs=2, batch_size=16, momentum=0.9, schedule="cosine", lr=0.1)


class Restless(SGD):
    """Two phases, the second with a beginning of its own; draws from every generator that there is."""

    name = "restless"

    def __init__(self, settings: SingleNetSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.begun: Tensor
        self.register_buffer("begun", torch.zeros(1))

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        head = list(self.net.head.parameters())
        return [Phase(recipe), Phase(replace(recipe, lr=0.01), "head", head, begin=self.begin, loss=self.noisy)]

    def begin(self) -> None:
        self.begun += 1
        torch.nn.init.zeros_(self.net.head.bias)

    def noisy(self, batch: Batch) -> Tensor:
        noise = random.random() + np.random.rand() + torch.rand(1).item() + np.random.normal() + random.gauss()
        return self.loss(batch) * noise


def trainer(augment: Augment, checkpointer: Checkpointer | None = None) -> Trainer:
    method = Restless(SingleNetSettings(width=1 / 16), 1, (8, 8), AUGMENT, seeded(0, "method"))
    return Trainer(method, RECIPE, 0, checkpointer=checkpointer)


def test_every_step_of_every_phase_can_be_gone_on_from(stream: Stream, augment: Augment) -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    checkpointer = Kept()
    whole = trainer(augment, checkpointer)
    expected = whole.run(stream)
    assert whole.method.begun.item() == len(stream)
    weights = whole.method.state_dict()
    assert [snapshot.step for snapshot in checkpointer.snapshots] == sorted(
        snapshot.step for snapshot in checkpointer.snapshots
    )
    for snapshot in checkpointer.snapshots[::7]:
        resumed = trainer(augment)
        resumed.restore(snapshot)
        reports = resumed.run(stream)
        assert [report.test for report in reports] == [report.test for report in expected]
        for name, value in resumed.method.state_dict().items():
            assert torch.equal(value, weights[name]), (name, snapshot.about["position"])


@pytest.fixture
def snapshot(stream: Stream, augment: Augment) -> Snapshot:
    checkpointer = Kept()
    trainer(augment, checkpointer).learn(stream[0])
    return checkpointer.snapshots[3]


def test_what_is_written_can_be_read(snapshot: Snapshot, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "run", {"torch": "2"})
    checkpoints.write(snapshot)
    again = checkpoints.newest()
    assert again is not None
    assert again.step == snapshot.step
    assert again.about == snapshot.about
    assert again.tensors.keys() == snapshot.tensors.keys()
    assert all(torch.equal(value, snapshot.tensors[name]) for name, value in again.tensors.items())
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"state.json", "state.safetensors"}, "no pickle"


def test_the_last_two_are_kept(snapshot: Snapshot, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "run", {})
    for step in (8, 9, 10, 11):
        checkpoints.write(replace(snapshot, step=step))
        assert (tmp_path / f"step-{step - 1}").exists() or step == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-10", "step-11"]
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.step == 11


@pytest.mark.parametrize("file", ["state.json", "state.safetensors"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone", "rubbish"])
def test_a_damaged_one_gives_way_to_the_one_before(snapshot: Snapshot, tmp_path: Path, file: str, damage: str) -> None:
    said: list[str] = []
    checkpoints = Checkpoints(tmp_path, "run", {}, said.append)
    for step in (1, 2):
        checkpoints.write(replace(snapshot, step=step))
    path = tmp_path / "step-2" / file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
        damaged = {"flip": flipped, "cut": content[:middle], "empty": b"", "rubbish": b'{"content": [1]}' * 9}
        path.write_bytes(damaged[damage])
    before = checkpoints.newest()
    assert before is not None
    assert before.step == 1
    assert len(said) == 1
    assert "step-2 is damaged" in said[0]
    assert not (tmp_path / "step-2").exists()


def test_one_that_the_disk_does_not_give_is_passed_by_and_left_alone(snapshot: Snapshot, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = Checkpoints(tmp_path, "run", {}, said.append)
    for step in (1, 2):
        checkpoints.write(replace(snapshot, step=step))
    file = tmp_path / "step-2" / "state.safetensors"
    file.unlink()
    file.mkdir()  # reading it is an error of the system's
    before = checkpoints.newest()
    assert before is not None
    assert before.step == 1
    assert said == [f"checkpoint {file.parent} cannot be read (Is a directory): the one before it is looked at"]
    assert file.exists()
    checkpoints.write(replace(snapshot, step=2))
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.step == 2


def test_one_that_lacks_something_is_damaged(snapshot: Snapshot, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = Checkpoints(tmp_path, "run", {}, said.append)
    checkpoints.write(replace(snapshot, step=1))
    content = {"format": 2, "run": "run"}
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    (tmp_path / "step-1" / "state.json").write_text(json.dumps({"sha256": digest, "content": content}))
    assert checkpoints.newest() is None
    assert "state.json lacks about, environment, state.safetensors, step" in said[0]
    assert said[0].endswith("the run starts over")


def test_where_all_are_damaged_there_is_none(snapshot: Snapshot, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "run", {})
    checkpoints.write(snapshot)
    for file in tmp_path.rglob("state.json"):
        file.write_text("[]")
    assert newest_content(tmp_path) is None
    assert checkpoints.newest() is None
    assert checkpoints.newest() is None


def test_one_of_another_run_or_format_is_refused(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Checkpoints(tmp_path, "run", {}).write(snapshot)
    with pytest.raises(InputError, match="is of another run"):
        Checkpoints(tmp_path, "another", {}).newest()
    monkeypatch.setattr("sparc.train.checkpoint.FORMAT", 3)
    with pytest.raises(InputError, match="is of format 2, not 3"):
        Checkpoints(tmp_path, "run", {}).newest()


def test_another_environment_is_told(snapshot: Snapshot, tmp_path: Path) -> None:
    said: list[str] = []
    Checkpoints(tmp_path, "run", {"torch": "2.13.0", "threads": 1}).write(snapshot)
    Checkpoints(tmp_path, "run", {"torch": "2.13.0", "threads": 2}, said.append).newest()
    assert said == ["going on with threads 2 instead of 1: the last bits may come out otherwise"]


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "nothing", "run", {}).newest() is None
    assert newest_content(tmp_path / "nothing") is None
