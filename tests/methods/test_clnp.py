import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.masks.clnp import CLNP, ClnpSettings
from sparc.reproduce.plan import find_method
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=4, batch_size=24, lr=3e-3, optimizer="adam")
SIZES = [8, 8, 16, 16, 128]


def learner(**settings: float) -> CLNP:
    return CLNP(ClnpSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", [RECIPE, replace(RECIPE, optimizer="sgd", momentum=0.9, weight_decay=0.05)])
def test_older_tasks_logits_are_bit_equal_whatever_comes(stream: Stream, augment: Augment, recipe: Recipe) -> None:
    method = learner(margin=20)
    trainer = Trainer(method, recipe, 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now


def test_the_loss_has_the_sizes_of_all_weights_and_of_the_current_head(stream: Stream) -> None:
    method = learner(l1=0.01)
    for task in stream[:2]:
        begin(method, task)
    batch = batch_of(stream[1], torch.arange(9))
    logits = method.task_logits(batch.images, 1)
    told = -logits.log_softmax(1)[torch.arange(9), batch.labels - 2].mean()
    sizes = sum(parameter.abs().sum() for parameter in (*method.net.parameters(), *method.heads[1].parameters()))
    torch.testing.assert_close(method.loss(batch), told + 0.01 * sizes)


def with_units(method: CLNP, monkeypatch: pytest.MonkeyPatch, accuracy: Callable[[list[int]], float]) -> list[Tensor]:
    """Activities made up, and an accuracy that follows from how many units the head and each layer read."""
    generator = seeded(1, "activity")
    activity = [torch.rand(size, generator=generator, dtype=torch.float64).sub(0.1).relu() for size in SIZES]
    monkeypatch.setattr(method, "activity", lambda pictures: activity)

    def measured(pictures: object, task: object) -> float:
        _, *weights = method.weights()
        return accuracy([int((weight.flatten(2) if weight.ndim == 4 else weight).any(0).sum()) for weight in weights])

    monkeypatch.setattr(method, "accuracy", measured)
    return activity


def test_units_below_the_largest_threshold_within_the_margin_are_free(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learner(margin=4, step=0.02)
    begin(method, stream[0])
    activity = with_units(method, monkeypatch, lambda read: 90 - (128 - read[-1]) / 10)
    before = [weight.detach().clone() for weight in method.weights()]
    found = method.needed(stream[0])
    assert all(map(torch.equal, before, method.weights())), "what was tried is undone"
    # Forty of the hidden units may go: the second way is the authors', a threshold after the other.
    thresholds = [step * 0.02 for step in range(100)]
    right = max(each for each in thresholds if int((activity[4] <= each).sum()) <= 40)
    assert right > 0.1
    assert all(torch.equal(units, each > right) for units, each in zip(found, activity, strict=True))


@pytest.mark.parametrize("falls", [True, False])
def test_silent_units_are_free_in_any_case_and_all_may_be(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, falls: bool
) -> None:
    method = learner()
    begin(method, stream[0])
    activity = with_units(method, monkeypatch, lambda read: float(read[-1]) if falls else 50.0)
    expected = [each > 0 if falls else torch.zeros_like(each > 0) for each in activity]
    assert all(map(torch.equal, method.needed(stream[0]), expected))


def test_older_tasks_units_stay_whatever_their_activity(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    method = learner()
    old = [torch.arange(size) < 3 for size in SIZES]
    method.stable.set(old)
    begin(method, stream[0])
    with_units(method, monkeypatch, lambda read: 50.0)
    assert all(map(torch.equal, method.needed(stream[0]), old)), "and none is needed beside them"


def test_frozen_units_read_no_free_ones_and_free_ones_start_anew(stream: Stream, augment: Augment) -> None:
    method = learner(margin=20)
    Trainer(method, RECIPE, 0).learn(stream[0])
    stable = list(method.stable)
    assert any(not units.all() for units in stable)
    channels, outputs = torch.tensor([True]), torch.tensor([True, True])
    read = [channels, *stable[:3], torch.tensor([bool(stable[3][column // 4]) for column in range(64)]), stable[4]]
    for weight, source, units in zip(method.weights(), read, (*stable, outputs), strict=True):
        assert not weight[units][:, ~source].any()
        assert (weight[~units] != 0).all()
    images = augment.normalize(stream.test(0).images)
    before = method.task_logits(images, 0)
    with torch.no_grad():
        for layer, units in zip(method.net.layers, stable, strict=True):
            weight, bias = layer.parameters()
            assert not bias[~units].any()
            weight[~units] = 3
            bias[~units] = 5
    assert torch.equal(method.task_logits(images, 0), before)


def test_the_papers_clip_is_it() -> None:
    assert find_method("CLIP") is CLNP


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"l1": -1}, "--l1 -1"),
        ({"margin": math.nan}, "--margin nan"),
        ({"step": 0}, "--step 0"),
        ({"width": 0}, "--width 0"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        ClnpSettings(**settings)  # type: ignore[arg-type]
