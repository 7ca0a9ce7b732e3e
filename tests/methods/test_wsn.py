import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.masks.wsn import WSN, WsnSettings, largest, straight_through
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=2, batch_size=24, lr=1e-3, optimizer="adam")
SHAKEN = replace(RECIPE, optimizer="sgd", lr=0.05, momentum=0.9, weight_decay=0.05)
"""Moves what takes no gradient, too."""


def learner(**settings: object) -> WSN:
    return WSN(WsnSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def masks(method: WSN, task: int) -> list[Tensor]:
    return method.masks.of(task, method.weights())


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.floats(0.01, 1))
def test_a_mask_has_exactly_the_share_and_nothing_smaller(values: list[int], share: float) -> None:
    """Among few values, many of them equal."""
    found = torch.tensor(values).float()
    mask = largest(found, share)
    assert int(mask.sum()) == max(1, round(share * len(values)))
    assert mask.all() or found[mask].min() >= found[~mask].max()


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_every_task_uses_exactly_the_share_of_each_layer(stream: Stream, share: float) -> None:
    method = learner(share=share)
    trainer = Trainer(method, RECIPE, 0)
    for task in stream:
        trainer.learn(task)
        for mask, score in zip(masks(method, task.index), method.scores, strict=True):
            assert int(mask.sum()) == round(share * mask.numel())
            assert score[mask].abs().min() >= score[~mask].abs().max()


def test_the_gradient_to_scores_is_straight_through_by_hand() -> None:
    scores = torch.tensor([0.1, -0.8, 0.4, -0.2], requires_grad=True)
    weight = torch.tensor([2.0, 3.0, 5.0, 7.0], requires_grad=True)
    mask = straight_through(scores, 0.5)
    assert mask.tolist() == [0, 1, 1, 0]
    (mask * weight * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    # The loss's slope to each mask is input times weight, whether it is chosen or not; a negative score's is turned.
    torch.testing.assert_close(scores.grad, torch.tensor([2.0, -30.0, 500.0, -7000.0]))
    torch.testing.assert_close(weight.grad, torch.tensor([0.0, 10.0, 100.0, 0.0]))


def test_scores_and_chosen_weights_learn_together(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    method.train()
    method.loss(batch_of(stream[0], torch.arange(24))).backward()
    for weight, score in zip(method.weights(), method.scores, strict=True):
        chosen = largest(score.detach().abs(), 0.5)
        assert weight.grad is not None
        assert score.grad is not None
        assert not weight.grad[~chosen].any()
        assert weight.grad[chosen].any()
        assert score.grad[~chosen].any(), "what is not chosen may come to be"


@pytest.mark.parametrize("recipe", [RECIPE, SHAKEN])
def test_weights_that_older_tasks_use_do_not_change_by_a_byte(stream: Stream, recipe: Recipe) -> None:
    method = learner(share=0.3)
    trainer = Trainer(method, recipe, 0)
    trainer.learn(stream[0])
    for task in stream[1:]:
        before = [weight.detach().clone() for weight in method.weights()]
        used = [
            torch.stack(each).any(0) for each in zip(*(masks(method, old) for old in range(task.index)), strict=True)
        ]
        trainer.learn(task)
        for then, now, mask in zip(before, method.weights(), used, strict=True):
            assert then[mask].numpy().tobytes() == now.detach()[mask].numpy().tobytes()
        after = method.weights()
        if len(task.classes) > 1:  # one class teaches nothing
            assert any(not torch.equal(then, now) for then, now in zip(before, after, strict=True))
        overlaps = [(mask & new).any() for mask, new in zip(used, masks(method, task.index), strict=True)]
        assert all(overlaps), "they may be chosen again"


@pytest.mark.parametrize("backbone", ["resnet", "separable"])
def test_older_tasks_logits_are_bit_equal_whatever_comes(stream: Stream, augment: Augment, backbone: str) -> None:
    method = learner(backbone=backbone)
    trainer = Trainer(method, SHAKEN, 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now


def test_a_task_answers_the_same_before_and_after_it_ends(stream: Stream, augment: Augment) -> None:
    """By its scores, and by the mask that is kept of them."""
    method = learner()
    begin(method, stream[0])
    method.eval()
    images = augment.normalize(stream.test(0).images)
    before = method.task_logits(images, 0)
    method.end_task(stream[0])
    torch.testing.assert_close(method.task_logits(images, 0), before)
    with torch.no_grad():
        for score in method.scores:
            score.copy_(score.flip(0))
    torch.testing.assert_close(method.task_logits(images, 0), before)


def test_every_task_has_batch_norms_of_its_own(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    for task in stream[:2]:
        trainer.learn(task)
        for norm in method.norms.of(task.index):
            assert int(norm.num_batches_tracked) == 2 * math.ceil(len(task.train) / 24), "two epochs"  # type: ignore[arg-type]
            assert norm.running_mean.any()  # type: ignore[union-attr,operator]
            assert not torch.equal(norm.weight, torch.ones_like(norm.weight))  # type: ignore[arg-type]
    assert not any("running" in name for name in method.net.state_dict()), "the net has none beside them"


def test_masks_are_kept_a_bit_a_weight(stream: Stream) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    held = [value for name, value in method.state_dict().items() if name.startswith("masks.0.")]
    assert sum(value.nbytes for value in held) == sum(-(-weight.numel() // 8) for weight in method.weights())


@pytest.mark.parametrize("share", [0, 1.5, math.nan])
def test_bad_settings_are_refused_by_their_flag(share: float) -> None:
    with pytest.raises(InputError, match=f"--share {share:g}"):
        WsnSettings(share=share)
