from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.projection.bmkp import BMKP, BmkpSettings
from sparc.nn.functions import pixel_rows
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.05)


def learner(**settings: float) -> BMKP:
    return BMKP(BmkpSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_older_tasks_logits_are_bit_equal_while_the_bases_grow(stream: Stream, augment: Augment, decay: float) -> None:
    method = learner(first_energy=0.7, energy=0.97)
    trainer = Trainer(method, replace(RECIPE, weight_decay=decay, momentum=0.9), 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    bases: list[Tensor] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now
        for before, basis in zip(bases, method.bases, strict=False):
            assert torch.equal(basis[: len(before)], before)
        if task.index == 1:
            assert any(len(basis) > len(before) for before, basis in zip(bases, method.bases, strict=True))
        bases = [basis.clone() for basis in method.bases]


def test_the_penalty_by_hand(stream: Stream) -> None:
    method = learner(lam=0.5)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    expected = torch.tensor(0.0)
    for conv, basis in zip(method.convs().values(), method.bases, strict=True):
        filters = conv.weight.flatten(1)
        rest = filters - basis.T @ (basis @ filters)
        both = torch.cat((basis, rest.T))
        products = both.T @ both
        expected = expected + products.trace() / products.sum()
    torch.testing.assert_close(method.penalty(), expected, rtol=1e-4, atol=0)
    batch = batch_of(stream[1], torch.arange(12))
    method.eval()
    free, retrain = method.phases(stream[1], RECIPE)
    assert free.loss is not None
    plain = cross_entropy(method.heads.of(1)(method.net.features(batch.images)), batch.labels - 2)
    torch.testing.assert_close(free.loss(batch), plain + 0.5 * method.penalty())
    assert retrain.loss is None
    torch.testing.assert_close(method.loss(batch), plain)


def test_the_first_task_has_nothing_to_keep_to(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    method.eval()
    batch = batch_of(stream[0], torch.arange(12))
    assert method.free_loss(batch) == method.loss(batch)


def test_filters_are_projected_on_bases_that_hold_enough_of_what_comes_out(stream: Stream, augment: Augment) -> None:
    method = learner(first_energy=0.8, energy=0.9)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    stem, (before, *_) = next(iter(method.convs().values())), method.bases
    outputs = pixel_rows(stem(augment.normalize(stream[1].train.images))).detach()
    filters = stem.weight.detach().clone()
    method.project(stream[1])
    basis = next(iter(method.bases))
    lacking = torch.linalg.svdvals(outputs - outputs @ before.T @ before).square()
    total, added = outputs.square().sum(), len(basis) - len(before)
    shares = [float(1 - lacking[count:].sum() / total) for count in range(len(lacking))]
    assert shares[added] >= 0.9 - 1e-5
    assert added == 0 or shares[added - 1] < 0.9
    assert float((outputs @ basis.T).square().sum() / total) == pytest.approx(shares[added], abs=1e-5)
    torch.testing.assert_close(stem.weight.flatten(1), basis.T @ basis @ filters.flatten(1))


def test_training_within_the_spans_is_training_the_coefficients(stream: Stream) -> None:
    method = learner(first_energy=0.8)
    begin(method, stream[0])
    method.project(stream[0])
    convs, head = method.convs(), method.heads.of(0)
    coefficients = [
        (basis @ conv.weight.flatten(1)).detach().requires_grad_()
        for conv, basis in zip(convs.values(), method.bases, strict=True)
    ]
    by_hand = torch.optim.SGD(coefficients, lr=0.1, momentum=0.9)
    optimizer = torch.optim.SGD([conv.weight for conv in convs.values()], lr=0.1, momentum=0.9)

    def composed() -> dict[str, Tensor]:
        parts = zip(convs.items(), method.bases, coefficients, strict=True)
        return {f"{name}.weight": (basis.T @ each).view_as(conv.weight) for (name, conv), basis, each in parts}

    for first in (0, 20):
        batch = batch_of(stream[0], torch.arange(first, first + 20))
        weights = {**composed(), "head.weight": head.weight, "head.bias": head.bias}
        cross_entropy(functional_call(method.net, weights, (batch.images,)), batch.labels).backward()
        by_hand.step()
        by_hand.zero_grad()
        method.zero_grad()
        method.loss(batch).backward()
        method.before_step()
        optimizer.step()
    for conv, expected in zip(convs.values(), composed().values(), strict=True):
        torch.testing.assert_close(conv.weight, expected, atol=1e-5, rtol=1e-4)


def test_what_is_kept_answers_as_the_working_memory_does(stream: Stream, augment: Augment) -> None:
    method = learner(first_energy=0.8)
    Trainer(method, RECIPE, 0).learn(stream[0])
    method.eval()
    images = augment.normalize(stream.test(0).images)
    torch.testing.assert_close(method.task_logits(images, 0), method.one_pass(images), atol=1e-5, rtol=1e-4)
    kept = list(method.memory.of(0))
    for conv, basis, coefficients in zip(method.convs().values(), method.bases, kept, strict=False):
        assert coefficients.shape == (len(basis), conv.weight[0].numel())
        assert len(basis) <= conv.out_channels
    assert sum(len(basis) for basis in method.bases) < sum(conv.out_channels for conv in method.convs().values())
    owners = method.parameters_by_owner()
    assert owners["bases"] == sum(basis.numel() for basis in method.bases)
    assert owners["memory"] == sum(each.numel() for each in kept)


def test_a_task_begins_with_batch_norms_of_its_own(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    trainer.learn(stream[0])
    begin(method, stream[1])
    for norm in method.norms().values():
        assert (norm.weight == 1).all()
        assert not norm.bias.any()
        assert norm.running_mean is not None
        assert not norm.running_mean.any()
    assert method.recalled(0)["stem.1.running_mean"].any()


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"lam": -1}, "--lam -1"),
        ({"energy": 0}, "--energy 0"),
        ({"first_energy": 1.5}, "--first-energy 1.5"),
        ({"samples": 0}, "--samples 0"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        BmkpSettings(**settings)  # type: ignore[arg-type]
