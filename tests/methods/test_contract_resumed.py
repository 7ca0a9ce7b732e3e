"""Every registered method goes on from its state to the same bits."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load, save
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.experiment import Stopped
from sparc.experiment.run import state_digest
from sparc.methods import METHODS, Method
from sparc.train import Checkpointer, Checkpoints, Evaluation, Snapshot, Trainer, TrainState
from tests.methods.contract import batches, begin, new, new_optimizer, recipe, take_steps

CUT_OFF = ("sparc", "packnet")
"""Methods whose runs are cut off by the trainer in every way; the others' too, among the long tests."""


def through_a_file(method: Method) -> dict[str, Tensor]:
    """Its state as it comes back out of a checkpoint, which keeps values and no strides."""
    return load(save({name: value.contiguous() for name, value in method.state_dict().items()}))


def test_all_its_state_is_in_its_state_dict(kind: type[Method], stream: Stream, augment: Augment) -> None:
    """A fresh method that is handed the state after task 2 learns task 3 to the same bits."""
    original, resumed = new(kind, seed=0), new(kind, seed=1)
    first = Trainer(original, recipe(kind, epochs=1), seed=0)
    first.learn(stream[0])
    first.learn(stream[1])
    resumed.load_state_dict(through_a_file(original))
    assert state_digest(resumed) == state_digest(original)
    for method in (original, resumed):
        Trainer(method, recipe(kind, epochs=1), seed=5).learn(stream[2])
    assert state_digest(resumed) == state_digest(original)


class Cut(Checkpointer):
    """Writes a checkpoint at every chance there is, and cuts the run off at one of them."""

    def __init__(self, checkpoints: Checkpoints, at: int | None) -> None:
        self.checkpoints = checkpoints
        self.at = at
        self.kept: list[TrainState] = []

    def due(self) -> bool:
        return True

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        taken = snapshot()
        self.kept.append(TrainState(**taken.about["position"]))
        if self.at is not None:
            self.checkpoints.write(taken)
            if len(self.kept) > self.at:
                raise Stopped


@pytest.mark.parametrize(
    "kind",
    [pytest.param(name, marks=() if name in CUT_OFF else pytest.mark.long) for name in METHODS.classes],
    indirect=True,
)
def test_a_run_that_is_cut_off_ends_with_the_same_bits(
    kind: type[Method], stream: Stream, augment: Augment, tmp_path: Path
) -> None:
    """In the middle and at the end of an epoch, at the end of a task, before and after it is tested, in every phase."""

    def trainer(seed: int, place: str, cut: int | None = None) -> Trainer:
        checkpointer = Cut(Checkpoints(tmp_path / place, "this run", {}), cut)
        return Trainer(new(kind, seed), recipe(kind), seed, checkpointer=checkpointer)

    def ending(trainer: Trainer) -> tuple[str, list[tuple[Evaluation, Evaluation | None]]]:
        reports = trainer.run(stream)
        return state_digest(trainer.method), [(report.test, report.validation) for report in reports]

    whole = trainer(0, "whole")
    expected = ending(whole)
    assert isinstance(whole.checkpointer, Cut)
    kept = whole.checkpointer.kept
    tasks = {1} if whole.method.phases(stream[1], recipe(kind)) else {0, 1}
    first_of_its_kind = {
        (at.phase, at.learned, at.last is not None and at.epoch > at.last, at.step > 0): number
        for number, at in reversed(list(enumerate(kept)))
        if at.task in tasks  # where there is an older task to be remembered, and another to come
    }
    assert len(first_of_its_kind) >= 4
    for number in first_of_its_kind.values():
        cut = trainer(0, f"cut-{number}", number)
        with pytest.raises(Stopped):
            cut.run(stream)
        resumed = trainer(1, f"cut-{number}")  # another seed: whatever is not in the checkpoint comes out otherwise
        snapshot = Checkpoints(tmp_path / f"cut-{number}", "this run", {}).newest()
        assert snapshot is not None
        resumed.restore(snapshot)
        assert resumed.at.total_steps == kept[number].total_steps
        assert ending(resumed) == expected, kept[number]


def test_a_state_from_the_middle_of_any_phase_goes_on_to_the_same_bits(
    kind: type[Method], stream: Stream, augment: Augment
) -> None:
    """What a run that was cut off does: state into a fresh method, the phases asked for again, none of them begun."""
    start = new(kind)
    Trainer(start, recipe(kind, epochs=1), seed=0).learn(stream[0])
    task = stream[1]
    begin(start, task)
    before = state_digest(start)
    count = len(start.phases(task, recipe(kind)))
    assert state_digest(start) == before, "asking for the phases changes nothing"
    for middle in range(count):
        original, resumed = new(kind, seed=1), new(kind, seed=2)
        original.load_state_dict(start.state_dict())
        phases = original.phases(task, recipe(kind))
        optimizer = new_optimizer(original, phases[0])
        for phase in phases[:middle]:
            optimizer = take_steps(original, phase, batches(task, augment, 3))
        optimizer = take_steps(original, phases[middle], batches(task, augment, 3))

        resumed.load_state_dict(through_a_file(original))
        again = new_optimizer(resumed, resumed.phases(task, recipe(kind))[middle])
        again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for method, going_on in ((original, optimizer), (resumed, again)):
            remaining = method.phases(task, recipe(kind))[middle:]
            take_steps(method, remaining[0], batches(task, augment, 4), going_on)
            for phase in remaining[1:]:
                take_steps(method, phase, batches(task, augment, 2))
            method.end_task(task)
        assert state_digest(resumed) == state_digest(original), f"in phase {phases[middle].name}"
