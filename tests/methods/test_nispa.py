import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.masks.nispa import NISPA, NispaSettings, most_active, per_link, stable_share
from sparc.methods.parts.stable_units import like
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batches, begin, take_steps

RECIPE = Recipe(epochs=4, batch_size=24, lr=2e-3, optimizer="adam")
SHAKEN = replace(RECIPE, optimizer="sgd", lr=0.05, momentum=0.9, weight_decay=0.05)
"""Moves what takes no gradient, too."""


def learner(**settings: object) -> NISPA:
    return NISPA(NispaSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def begun(stream: Stream, share: float = 0.5) -> NISPA:
    """In its first task, with candidates for so much of the activity."""
    method = learner()
    begin(method, stream[0])
    method.choose(share, stream[0].train)
    return method


def counts(method: NISPA) -> list[int]:
    return [int(links.sum()) for links in method.connected()]


def test_the_net_starts_with_a_tenth_of_its_connections_but_in_the_first_layer(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    # Filters 8, 8, 16 and 16, which read 1, 8, 8 and 16 maps; 128 hidden units read 4 pixels of each; 2 outputs.
    assert counts(method) == [8, 6, 13, 26, round(0.1 * 128 * 64), round(0.1 * 2 * 128)]
    for weight, links in zip(method.weights(), method.connected(), strict=True):
        assert torch.equal(per_link(weight != 0), links), "others are 0, also in the rest of their kernels"
        assert weight[~links].abs().sum() == 0


def test_sparsity_stays_the_same_through_drop_and_grow(stream: Stream) -> None:
    method = begun(stream)
    before = counts(method)
    dropped = method.drop()
    assert sum(dropped) > 0
    assert counts(method) == [count - gone for count, gone in zip(before, dropped, strict=True)]
    method.grow(dropped)
    assert counts(method) == before
    for weight, links in zip(method.weights(), method.connected(), strict=True):
        assert torch.equal(per_link(weight != 0), links), "new ones have weights, dropped ones have none"


def test_connections_from_plastic_to_stable_units_are_gone(stream: Stream) -> None:
    method = begun(stream)
    before = method.connected()
    method.grow(method.drop())
    sources, targets = ends(method, list(method.candidates))
    for index, links in enumerate(method.connected()):
        assert not links[targets[index]][:, ~sources[index]].any()
        new = links & ~before[index]
        if index < 5:
            assert not new[targets[index]].any(), "nothing new is read by stable units"
        else:
            assert not new[:, ~sources[index]].any(), "the head reads stable units alone"


def ends(method: NISPA, stable: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Whether what each column reads, and each row is, is stable; written out unit by unit."""
    pixels = [bool(stable[3][column // 4]) for column in range(64)]
    channels, outputs = torch.tensor([True]), torch.ones(method.heads.sizes[-1], dtype=torch.bool)
    return [channels, *stable[:3], torch.tensor(pixels), stable[4]], [*stable, outputs]


def test_the_most_active_units_are_chosen_up_to_the_share(stream: Stream) -> None:
    assert most_active(torch.tensor([0.0, 3.0, 1.0, 6.0]), 0.6).tolist() == [False, False, False, True]
    assert most_active(torch.tensor([0.0, 3.0, 1.0, 6.0]), 0.61).tolist() == [False, True, False, True]
    assert most_active(torch.tensor([0.0, 3.0, 1.0, 6.0]), 1.0).tolist() == [False, True, True, True]
    assert int(most_active(torch.zeros(4), 0.5).sum()) == 1, "also where nothing comes through"
    method = begun(stream, share=0.3)
    for units, activity in zip(method.candidates, method.activity(stream[0].train), strict=True):
        assert activity[units].sum() >= 0.3 * activity.sum()
        assert activity[units].sum() - activity[units].min() < 0.3 * activity.sum(), "and no more than needed"


def test_activity_is_the_mean_over_pictures_and_pixels(stream: Stream, augment: Augment) -> None:
    method = begun(stream)
    pictures = stream[0].train
    activations: list[Tensor] = []
    method.net.features(augment.normalize(pictures.images), activations)
    assert [each.shape[1:] for each in activations] == [(8, 8, 8), (8, 4, 4), (16, 4, 4), (16, 2, 2), (128,)]
    for each, found in zip(activations, method.activity(pictures), strict=True):
        expected = each.double().mean((0, 2, 3)) if each.ndim == 4 else each.double().mean(0)
        torch.testing.assert_close(found, expected.detach(), rtol=1e-5, atol=1e-7)


def test_what_stable_units_read_never_changes_by_a_byte(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, SHAKEN, 0)
    for task in stream:
        stable = [units.clone() for units in method.stable]
        before = [parameter.detach().clone() for parameter in method.net.parameters()]
        trainer.learn(task)
        if task.index:
            assert all(units.any() for units in stable)
            assert not all(units.all() for units in stable)
            twice = [units for units in stable for _ in range(2)]  # weights and biases
            for units, then, now in zip(twice, before, method.net.parameters(), strict=False):
                assert then[units].numpy().tobytes() == now[units].detach().numpy().tobytes()
                assert units.all() or then.ndim == 1 or not torch.equal(then[~units], now[~units])
        for old, units in zip(stable, method.stable, strict=True):
            assert units[old].all(), "what was stable still is"


@pytest.mark.parametrize("recipe", [RECIPE, SHAKEN, replace(RECIPE, optimizer="muon", lr=0.02)])
def test_older_tasks_logits_are_bit_equal_whatever_comes(stream: Stream, augment: Augment, recipe: Recipe) -> None:
    method = learner()
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


def test_what_is_not_connected_stays_zero_while_a_phase_goes_on(stream: Stream, augment: Augment) -> None:
    method = learner()
    begin(method, stream[0])
    (phase,) = method.phases(stream[0], SHAKEN)
    before = [weight.detach().clone() for weight in method.weights()]
    take_steps(method, phase, batches(stream[0], augment, 3))
    for then, weight, links in zip(before, method.weights(), method.connected(), strict=True):
        assert not weight.masked_select(like(~links, weight)).any()
        assert not torch.equal(then, weight)


def test_the_share_falls_by_the_authors_cosine() -> None:
    assert [stable_share(phase, 25) for phase in range(1, 25)] == pytest.approx(
        [(1 + math.cos(phase * math.pi / 30)) / 2 for phase in range(1, 25)]
    )
    assert stable_share(9, 10) < 0.15, "a shorter task takes larger steps"


@pytest.mark.parametrize(
    ("epochs", "phases"), [(125, [5] * 25), (12, [5] * 2), (9, [4] * 2), (3, [1] * 3), (2, [1] * 2), (1, [1])]
)
def test_phases_keep_to_the_epochs(stream: Stream, epochs: int, phases: list[int]) -> None:
    method = learner()
    begin(method, stream[0])
    recipe, found = replace(RECIPE, epochs=epochs), []
    for over in range(len(phases)):
        found.append(method.phases(stream[0], recipe)[over].recipe.epochs)
        method.accuracies = torch.full((over + 1,), 50.0)
    assert found == phases
    assert len(method.phases(stream[0], recipe)) == len(phases)


@pytest.mark.parametrize(
    ("accuracies", "over"),
    [([50, 60, 57.4], 3), ([60, 50, 57.4], 3), ([60, 50], None), ([50, 60, 57.5], None), ([50, 60, 57.6, 57.4], 4)],
)
def test_phases_end_when_accuracy_has_fallen(stream: Stream, accuracies: list[float], over: int | None) -> None:
    """By more than 2.5 below the best, which the second phase may."""
    method = learner()
    begin(method, stream[0])
    method.accuracies = torch.tensor(accuracies).double()
    assert len(method.phases(stream[0], replace(RECIPE, epochs=50))) == (over or len(accuracies) + 1)


def test_after_a_fall_the_phase_before_is_back(
    stream: Stream, augment: Augment, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learner()
    task, recipe = stream[0], replace(RECIPE, epochs=50)
    begin(method, task)
    accuracies = iter([50.0, 60.0, 57.0])
    monkeypatch.setattr(method, "accuracy", lambda pictures, task: next(accuracies))
    after: list[list[Tensor]] = []
    for number in range(3):
        phase = method.phases(task, recipe)[number]
        take_steps(method, phase, batches(task, augment, 2))
        after.append([value.clone() for value in method.whole()])
        assert phase.end is not None
        phase.end()
        method.set_trainable()
    assert not all(map(torch.equal, after[1], after[2]))
    assert all(map(torch.equal, method.whole(), after[1]))
    candidates = [units.clone() for units in method.candidates]
    assert len(method.phases(task, recipe)) == 3
    method.end_task(task)
    assert all(map(torch.equal, method.stable, candidates))


def test_the_rest_starts_anew_after_a_task(stream: Stream) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    fresh = learner()
    links = method.connected()[:5]
    for layer, new, units, mask in zip(method.net.layers, fresh.net.layers, method.stable, links, strict=True):
        (weight, bias), (first, _) = layer.parameters(), new.parameters()
        weight, first = weight.detach(), first.detach()
        assert bias[units].any()
        assert not bias[~units].any()
        plastic = like(mask & ~units[:, None], weight).expand_as(weight)
        if plastic.sum() > 100:
            assert float(weight[plastic].std()) == pytest.approx(float(first[first != 0].std()), rel=0.2)


def test_a_tenth_is_held_out_unless_the_stream_holds_out_some(stream: Stream, splits: Splits) -> None:
    method = learner()
    learned_from, judged_by = method.split(stream[1])
    assert (len(learned_from), len(judged_by)) == (3 * 22, 3 * 2)
    assert pictures(learned_from) | pictures(judged_by) == pictures(stream[1].train)
    assert not pictures(learned_from) & pictures(judged_by)
    assert pictures(method.split(stream[1])[1]) == pictures(judged_by)
    (phase,) = method.phases(stream[1], RECIPE)
    assert phase.images is not None
    assert pictures(phase.images()) == pictures(learned_from)
    own = Stream(splits, [2, 3, 1], validation=0.25)[1]
    assert not pictures(own.validation) & (pictures(method.split(own)[0]) | pictures(method.split(own)[1]))


def test_one_picture_a_class_is_learned_and_judged_by(stream: Stream) -> None:
    method = learner()
    task: Task = replace(stream[0], train=stream[0].train.take(torch.tensor([0, 24])))
    learned_from, judged_by = method.split(task)
    assert len(learned_from) == len(judged_by) == 2
    Trainer(method, RECIPE, 0).learn(task)
    assert all(parameter.isfinite().all() for parameter in method.parameters())


def pictures(images: ImageSet) -> set[bytes]:
    return {image.numpy().tobytes() for image in images.images}


def test_where_there_is_no_room_connections_are_lost(stream: Stream) -> None:
    method = begun(stream)
    *hidden, last = method.candidates
    method.candidates.set([*(torch.ones_like(units) for units in hidden), torch.zeros_like(last)])
    before = counts(method)
    method.grow(method.drop())
    assert counts(method) == [*before[:5], 0], "the head has nobody to read"


def test_connections_are_kept_a_bit_each(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    assert method.parameters_by_owner()["connections"] == (8 + 8 * 8 + 16 * 8 + 16 * 16 + 128 * 64 + 2 * 128) // 8


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"sparsity": 1}, "--sparsity 1"),
        ({"sparsity": math.nan}, "--sparsity nan"),
        ({"phase_epochs": 0}, "--phase-epochs 0"),
        ({"margin": -1}, "--margin -1"),
        ({"width": 0}, "--width 0"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        NispaSettings(**settings)  # type: ignore[arg-type]
