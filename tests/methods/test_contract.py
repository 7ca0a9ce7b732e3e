"""One suite over every registered method."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sparc.data.augment import Augment
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.experiment import Stopped
from sparc.experiment.run import state_digest
from sparc.methods import METHODS, Batch, Method, Recipe
from sparc.train import Checkpoints, Evaluation, Keeper, Position, Snapshot, Trainer, evaluate, seeded


@pytest.fixture(params=list(METHODS.classes))
def kind(request: pytest.FixtureRequest) -> type[Method]:
    return METHODS.find(request.param)


def new(kind: type[Method], seed: int = 0) -> Method:
    return kind(kind.Settings(width=1 / 4), 1, (8, 8), seeded(seed, "method"))


def recipe(kind: type[Method], epochs: int = 2) -> Recipe:
    return replace(kind.recipe, epochs=epochs, batch=16)


def test_it_learns_a_task_well_above_chance(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    Trainer(method, recipe(kind, epochs=8), augment, seed=0).learn(stream[0])
    score = evaluate(method, [stream[0].test], [stream.classes(0)], augment.normalize)
    assert score.class_il[0] > 80


def test_logits_cover_all_classes_seen_in_their_order(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    trainer = Trainer(method, recipe(kind, epochs=1), augment, seed=0)
    for task in stream:
        trainer.learn(task)
        logits = method.eval().logits(augment.normalize(task.test.images))
        assert logits.shape == (len(task.test), task.classes.stop)


def test_same_seed_same_bits(kind: type[Method], stream: Stream, augment: Augment) -> None:
    digests = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(digests))  # the global generator must play no part
        method = new(kind, seed)
        Trainer(method, recipe(kind, epochs=1), augment, seed).run(stream)
        digests.append(state_digest(method))
    assert digests[0] == digests[1] != digests[2]


def test_it_leaves_the_global_generator_alone(kind: type[Method], stream: Stream, augment: Augment) -> None:
    state = torch.get_rng_state()
    Trainer(new(kind), recipe(kind, epochs=1), augment, seed=0).run(stream)
    assert torch.equal(state, torch.get_rng_state())


def test_all_its_state_is_in_its_state_dict(kind: type[Method], stream: Stream, augment: Augment) -> None:
    """A fresh method that is handed the state after task 2 learns task 3 to the same bits."""
    original, resumed = new(kind, seed=0), new(kind, seed=1)
    first = Trainer(original, recipe(kind), augment, seed=0)
    first.learn(stream[0])
    first.learn(stream[1])
    resumed.load_state_dict(original.state_dict())
    assert state_digest(resumed) == state_digest(original)
    for method in (original, resumed):
        Trainer(method, recipe(kind), augment, seed=5).learn(stream[2])
    assert state_digest(resumed) == state_digest(original)


class Cut(Keeper):
    """Writes a checkpoint at every chance there is, and cuts the run off at one of them."""

    def __init__(self, checkpoints: Checkpoints, at: int | None) -> None:
        self.checkpoints = checkpoints
        self.at = at
        self.kept: list[Position] = []

    def due(self) -> bool:
        return True

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        taken = snapshot()
        self.kept.append(Position(**taken.about["position"]))
        if self.at is not None:
            self.checkpoints.write(taken)
            if len(self.kept) > self.at:
                raise Stopped


def test_a_run_that_is_cut_off_ends_with_the_same_bits(
    kind: type[Method], stream: Stream, augment: Augment, tmp_path: Path
) -> None:
    """In the middle and at the end of an epoch, at the end of a task, before and after it is tested, in every phase."""

    def trainer(seed: int, place: str, cut: int | None = None) -> Trainer:
        keeper = Cut(Checkpoints(tmp_path / place, "this run", {}), cut)
        return Trainer(new(kind, seed), recipe(kind), augment, seed, keeper=keeper)

    def ending(trainer: Trainer) -> tuple[str, list[tuple[Evaluation, Evaluation | None]]]:
        reports = trainer.run(stream)
        return state_digest(trainer.method), [(report.test, report.validation) for report in reports]

    whole = trainer(0, "whole")
    expected = ending(whole)
    assert isinstance(whole.keeper, Cut)
    kept = whole.keeper.kept
    first_of_its_kind = {
        (at.task, at.phase, at.learned, at.last is not None and at.epoch > at.last, at.step == 2): number
        for number, at in reversed(list(enumerate(kept)))
        if at.task >= 1  # where there is an older task to be remembered
    }
    assert len(first_of_its_kind) >= 6
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


def test_prediction_changes_nothing(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    Trainer(method, recipe(kind, epochs=1), augment, seed=0).learn(stream[0])
    before = state_digest(method)
    evaluate(method, [stream[0].test], [stream.classes(0)], augment.normalize)
    assert state_digest(method) == before


def test_it_is_handed_only_pictures_of_the_task_at_hand(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    current: list[Task] = []
    seen: list[int] = []
    loss = method.loss

    def watched(batch: Batch) -> torch.Tensor:
        assert set(batch.labels.tolist()) <= set(current[-1].classes)
        seen.append(len(batch.labels))
        return loss(batch)

    method.loss = watched  # type: ignore[method-assign]
    trainer = Trainer(method, recipe(kind, epochs=1), augment, seed=0)
    for task in stream:
        current.append(task)
        trainer.learn(task)
    assert sum(seen) == sum(stream.train_counts())


def test_declared_costs_are_what_it_holds(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    Trainer(method, recipe(kind, epochs=1), augment, seed=0).run(stream)
    costs = method.costs()
    assert costs.parameters == sum(parameter.numel() for parameter in method.parameters())
    assert costs.forward >= 1
    assert costs.backward >= 1
    assert sum(method.parameters_by_owner().values()) == costs.parameters


def test_bad_settings_are_refused(kind: type[Method]) -> None:
    for settings in ({"width": 0}, {"depth": 0}):
        with pytest.raises(InputError, match=r"--(width|depth) 0"):
            kind(kind.Settings(**settings), 1, (8, 8), seeded(0, "method"))


def test_it_says_what_it_is(kind: type[Method]) -> None:
    assert kind.title
    assert kind.paper
    module = __import__(kind.__module__, fromlist=["__doc__"])
    assert len(module.__doc__ or "") > 60, "the file's docstring says the idea and the paper"


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown method “sparq”: did you mean sparc"):
        METHODS.find("sparq")
