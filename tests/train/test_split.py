"""A batch in parts, against the same parts one after another."""

import copy
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

from sparc.data.stream import Stream
from sparc.methods import Recipe
from sparc.methods.bounds.sgd import SGD
from sparc.methods.sparc import sparc as module
from sparc.methods.sparc.chorus import Chorus
from sparc.methods.sparc.sparc import SPARC
from sparc.train import Checkpointer, Trainer
from sparc.train.split import Split
from tests.methods.contract import batch_of, new
from tests.train.kept import Kept

RECIPE = Recipe(epochs=2, batch_size=24, optimizer="adam", lr=0.01)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "WORTH_SPLITTING", 1)
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def begun(stream: Stream, kind: type[SPARC] = SPARC) -> SPARC:
    method = new(kind)
    assert isinstance(method, SPARC)
    method.begin_task(stream[0])
    method.set_trainable()
    method.train()
    return method


def learned(
    stream: Stream, kind: type[SPARC] = SPARC, checkpointer: Checkpointer | None = None, threads: int = 2
) -> SPARC:
    method = new(kind)
    assert isinstance(method, SPARC)
    trainer = Trainer(method, RECIPE, seed=0, checkpointer=checkpointer, threads=threads)
    for task in (0, 1):
        trainer.learn(stream[task])
    return method


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("threads", [2, 3])
def test_gradients_and_statistics_are_those_of_the_parts(stream: Stream, threads: int) -> None:
    method = begun(stream)
    batch = batch_of(stream[0], torch.arange(26), last=True)
    parts = [torch.arange(26)[piece] for piece in torch.tensor_split(torch.arange(26), threads)]
    alone = [copy.deepcopy(method) for _ in parts]
    losses = [each.loss(batch_of(stream[0], part, last=True)) for each, part in zip(alone, parts, strict=True)]
    weighed = [loss * len(part) / 26 for loss, part in zip(losses, parts, strict=True)]
    for loss in weighed:
        loss.backward()
    with Split(method, threads) as split:
        found = split.backward(batch, nullcontext)
    torch.testing.assert_close(found, torch.stack(weighed).sum().detach())
    for parameter, *others in zip(method.parameters(), *(each.parameters() for each in alone), strict=True):
        assert parameter.grad is not None
        gradients = [other.grad for other in others if other.grad is not None]
        torch.testing.assert_close(parameter.grad, torch.stack(gradients).sum(0))
    norm, norms = method.net.memories()[0].stem.norm, [each.net.memories()[0].stem.norm for each in alone]
    for name in ("running_mean", "running_var"):
        mean = torch.stack([getattr(each, name) for each in norms]).mean(0)
        torch.testing.assert_close(getattr(norm, name), mean)
        assert torch.equal(getattr(split.twins[0].net.memories()[0].stem.norm, name), getattr(norm, name))
    torch.testing.assert_close(method.maxima, torch.cat([each.maxima for each in alone]))


@pytest.mark.usefixtures("two_threads")
def test_twins_have_the_weights_of_the_moment(stream: Stream) -> None:
    method = begun(stream)
    with Split(method, 2) as split, torch.no_grad():
        method.net.memories()[0].stem.pointwise.add_(1)
    assert torch.equal(split.twins[0].net.memories()[0].stem.pointwise, method.net.memories()[0].stem.pointwise)


@pytest.mark.usefixtures("two_threads")
def test_a_batch_too_small_for_parts_is_not_split(stream: Stream) -> None:
    method = begun(stream)
    batch = batch_of(stream[0], torch.arange(15))
    expected = copy.deepcopy(method).loss(batch)
    with Split(method, 2) as split:
        torch.testing.assert_close(split.backward(batch, nullcontext), expected.detach())


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("kind", [SPARC, Chorus])
def test_as_many_threads_same_bits(stream: Stream, kind: type[SPARC]) -> None:
    first, second = (learned(stream, kind).state_dict() for _ in range(2))
    assert torch.get_num_threads() == 2
    assert all(torch.equal(first[name], second[name]) for name in first)
    alone = learned(stream, kind, threads=1).state_dict()
    assert any(not torch.equal(first[name], alone[name]) for name in first), "batch norms see halves"


@pytest.mark.usefixtures("two_threads")
def test_the_process_has_its_threads_back_whatever_happens(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(SPARC, "loss", fails)
    with pytest.raises(ZeroDivisionError):
        learned(stream)
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_it_goes_on_in_the_middle_to_the_bit(stream: Stream) -> None:
    kept = Kept()
    whole = learned(stream, checkpointer=kept).state_dict()
    middle = kept.snapshots[3]
    method = new(SPARC)
    trainer = Trainer(method, RECIPE, seed=0, threads=2)
    trainer.restore(middle)
    trainer.learn(stream[0])
    trainer.learn(stream[1])
    assert all(torch.equal(whole[name], part) for name, part in method.state_dict().items())


def test_others_and_small_ones_are_not_split(stream: Stream) -> None:
    assert not new(SGD).splits
    assert not begun(stream).splits, "8 × 8 pixels"
    large = SPARC(SPARC.Settings(width=0.25), 3, (32, 32), new(SPARC).augment, torch.Generator())  # type: ignore[arg-type]
    assert large.splits
