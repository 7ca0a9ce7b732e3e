"""GCR: gradients are matched by few pictures, which are replayed by their weights."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import nnls  # type: ignore[import-untyped]
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.parts.contrastive import supervised_contrastive
from sparc.methods.rehearsal import gcr
from sparc.methods.rehearsal.gcr import GCR, GcrSettings, equal_shares, matching_pursuit
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, recipe

RECIPE = recipe(GCR, epochs=1)


def learner(**settings: float) -> GCR:
    small = GcrSettings(width=1 / 8, **{"buffer_size": 12, **settings})  # type: ignore[arg-type]
    return GCR(small, 1, (8, 8), AUGMENT, seeded(0, "method"))


@pytest.fixture
def learned(stream: Stream) -> Callable[..., GCR]:
    """After the first task."""

    def learn(**settings: float) -> GCR:
        method = learner(**settings)
        Trainer(method, RECIPE, seed=0).learn(stream[0])
        return method

    return learn


def vectors(count: int, length: int, seed: int = 0) -> Tensor:
    return torch.randn(count, length, dtype=torch.float64, generator=seeded(seed, "vectors"))


def test_all_vectors_are_found_with_their_own_weights() -> None:
    """Where there is room for all, as non-negative least squares has it."""
    some, weights = vectors(6, 9), torch.arange(1.0, 7, dtype=torch.float64)
    chosen, found = matching_pursuit(some @ some.T, weights, count=6, ridge=0)
    expected, error = nnls(some.T.numpy(), (weights @ some).numpy())
    assert error < 1e-9
    assert sorted(chosen.tolist()) == list(range(6))
    np.testing.assert_allclose(found, expected[chosen])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ridge", [0, 0.1])
def test_weights_of_those_chosen_are_the_least_squares_solution(seed: int, ridge: float) -> None:
    some, weights = vectors(30, 5, seed), torch.rand(30, dtype=torch.float64, generator=seeded(seed, "weights"))
    chosen, found = matching_pursuit(some @ some.T, weights, count=4, ridge=ridge)
    wanted = weights @ some
    pull = math.sqrt(ridge * float(some.square().sum(1).mean()))
    rows = np.vstack((some[chosen].T.numpy(), pull * np.eye(len(chosen))))
    expected, _ = nnls(rows, np.concatenate((wanted.numpy(), np.zeros(len(chosen)))))
    assert 2 <= len(chosen) == len(set(chosen.tolist())) <= 4
    assert found.min() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (some @ wanted).argmax() in chosen, "the first of them"
    assert (wanted - found @ some[chosen]).norm() < 0.7 * wanted.norm()


def test_what_points_the_other_way_is_left_out() -> None:
    some = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    chosen, found = matching_pursuit(some @ some.T, torch.tensor([3.0, 1.0]), count=2, ridge=1e-6)
    assert chosen.tolist() == [0]
    torch.testing.assert_close(found, torch.tensor([2.0]), rtol=1e-4, atol=0)


def test_shares_are_equal_as_far_as_there_are_pictures() -> None:
    assert equal_shares([24, 24, 24], 20) == [7, 7, 6]
    assert equal_shares([2, 24, 24], 20) == [2, 9, 9]
    assert equal_shares([1, 1], 20) == [1, 1]
    assert equal_shares([5, 5, 5], 2) == [1, 1, 0]


def test_gradients_are_those_of_the_replayed_losses_at_the_last_layer(
    learned: Callable[..., GCR], stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learned(alpha=0.3, beta=0.7)
    method.begin_task(stream[1])
    method.buffer.logits += torch.rand(12, 6, generator=seeded(0, "drift"))  # as if the net had changed since
    method.buffer.weights[0] = 5
    images, labels, stored, weights = (
        each[method.buffer.labels == 1]
        for each in (method.buffer.images, method.buffer.labels, method.buffer.logits, method.buffer.weights)
    )
    seen: list[tuple[Tensor, Tensor, int, float]] = []

    def watched(*given: Any) -> tuple[Tensor, Tensor]:
        seen.append(given)
        return matching_pursuit(*given)

    monkeypatch.setattr(gcr, "matching_pursuit", watched)
    method.end_task(stream[1])
    rows = []
    for image, label, kept in zip(images, labels, stored, strict=True):
        logits = method.net(AUGMENT.normalize(image[None]))
        loss = 0.7 * cross_entropy(logits, label[None]) + 0.3 * mse_loss(logits, kept[None])
        gradients = torch.autograd.grad(loss, list(method.net.head.parameters()))
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]))
    products, given, count, _ = seen[1]
    expected = torch.stack(rows).double()
    torch.testing.assert_close(products, expected @ expected.T, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(given, weights.double())
    assert count == 3, "of 12, for the second of five classes"


def test_the_weighted_gradient_of_what_is_kept_is_near_that_of_all(learned: Callable[..., GCR], stream: Stream) -> None:
    """Nearer than that of as many pictures that are drawn."""
    method = learned(buffer_size=8)
    pictures, buffer = stream[0].train, method.buffer

    def gradient(images: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        each = cross_entropy(method.net(AUGMENT.normalize(images)), labels, reduction="none")
        return torch.autograd.grad((weights * each).sum(), method.net.head.weight)[0]

    whole = gradient(pictures.images, pictures.labels, torch.ones(48))
    apart = (gradient(buffer.images, buffer.labels, buffer.weights) - whole).norm()
    assert buffer.weights.sum() == pytest.approx(48, rel=0.05), "what they stand for"
    for seed in range(10):
        drawn = torch.cat([24 * label + torch.randperm(24, generator=seeded(seed, "drawn"))[:4] for label in (0, 1)])
        unmatched = gradient(pictures.images[drawn], pictures.labels[drawn], torch.full((8,), 6.0))
        assert (unmatched - whole).norm() > apart


def test_replay_is_weighted(learned: Callable[..., GCR], stream: Stream) -> None:
    method = learned(replay_batch=12, alpha=0.3, beta=0.7, gamma=0)
    method.begin_task(stream[1])
    method.eval()
    buffer = method.buffer
    buffer.weights = torch.arange(1.0, 13)
    buffer.logits += torch.rand(12, 6, generator=seeded(0, "drift"))
    shares = buffer.weights / buffer.weights.sum()
    said = method.net(AUGMENT.normalize(buffer.images))
    batch = batch_of(stream[1], torch.arange(9))
    expected = (
        cross_entropy(method.net(batch.images), batch.labels)
        + 0.3 * (shares * (said - buffer.logits).square().mean(1)).sum()
        + 0.7 * (shares * cross_entropy(said, buffer.labels, reduction="none")).sum()
    )
    torch.testing.assert_close(method.loss(batch), expected)


def test_replayed_pictures_are_contrasted_in_two_views(learned: Callable[..., GCR], stream: Stream) -> None:
    method = learned(replay_batch=12).eval()
    losses = []
    for gamma in (0, 0.4):
        method.settings = replace(method.settings, gamma=gamma)
        losses.append(method.loss(batch_of(stream[1], torch.arange(9))))
    images, labels = AUGMENT.normalize(method.buffer.images).repeat(2, 1, 1, 1), method.buffer.labels.repeat(2)
    torch.testing.assert_close(losses[1] - losses[0], 0.4 * supervised_contrastive(method.net(images), labels, 0.07))


def test_what_was_chosen_stays_until_the_task_is_over(learned: Callable[..., GCR], stream: Stream) -> None:
    method = learned()
    before = {name: value.clone() for name, value in method.buffer.state_dict().items()}
    end_task = method.end_task
    kept: list[bool] = []

    def watched(task: object) -> None:
        after = method.buffer.state_dict()
        kept.append(all(torch.equal(value, after[name]) for name, value in before.items()))
        end_task(stream[1])

    method.end_task = watched  # type: ignore[method-assign]
    Trainer(method, RECIPE, seed=0).learn(stream[1])
    assert kept == [True]
    assert torch.bincount(method.buffer.labels).tolist() == [3, 3, 2, 2, 2]
    old = [image.tolist() for image in before["images"]]
    assert [image.tolist() in old for image in method.buffer.images] == [True] * 6 + [False] * 6
    assert method.buffer.weights.min() > 0


def test_a_reservoir_stands_in_while_the_first_task_is_learned(stream: Stream) -> None:
    method = learner()
    method.begin_task(stream[0])
    for indices in torch.arange(48).split(24):
        method.loss(batch_of(stream[0], indices))
    assert (len(method.buffer), int(method.buffer.seen)) == (12, 48)
    assert method.buffer.weights.tolist() == [1] * 12
    assert len(method.buffer.labels.unique()) == 2


def test_the_logits_kept_are_those_at_the_end_of_the_task(learned: Callable[..., GCR]) -> None:
    method = learned().eval()
    torch.testing.assert_close(method.buffer.logits, method.net(AUGMENT.normalize(method.buffer.images)))


def test_where_there_is_nothing_to_match_pictures_are_drawn(learned: Callable[..., GCR]) -> None:
    method = learned(alpha=0, beta=0)
    assert torch.bincount(method.buffer.labels).tolist() == [6, 6]
    assert method.buffer.weights.tolist() == [1] * 12


def test_a_head_that_grows_leaves_out_what_was_not_known(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, seed=0)
    for task in stream[:2]:
        trainer.learn(replace(task, all_classes=None))
    unknown = method.buffer.logits.isnan()
    assert unknown.sum(1).tolist() == [3] * 6 + [0] * 6
    method.begin_task(replace(stream[2], all_classes=None))
    assert method.loss(batch_of(stream[2], torch.arange(9))).isfinite()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"gamma": -1}, "--gamma -1"),
        ({"temperature": 0}, "--temperature 0"),
        ({"ridge": 0}, "--ridge 0 must be a positive number"),
        ({"beta": math.nan}, "--beta nan"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GcrSettings(**settings)  # type: ignore[arg-type]
