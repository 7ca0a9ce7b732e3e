import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods import Batch, Method, Phase, Recipe
from sparc.methods.rehearsal.trire import TriRE, TriReSettings
from sparc.train import Trainer, seeded
from sparc.train.optimizer import new_optimizer
from tests.examples import AUGMENT
from tests.methods import test_contract_resumed as contract_resumed
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=5, batch_size=24, lr=2e-3, optimizer="adam")
"""Three to retain, and one each to revise and to rewind."""


def learner(seed: int = 0, **settings: float) -> TriRE:
    made = TriReSettings(**{"width": 1 / 8, "buffer_size": 20, **settings})  # type: ignore[arg-type]
    return TriRE(made, 1, (8, 8), AUGMENT, seeded(seed, "method"))


def in_second_task(stream: Stream, **settings: float) -> TriRE:
    method = learner(0, **settings)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    return method.train()


def twin_of(method: TriRE, **settings: float) -> TriRE:
    """Another with the same state, that of its generator with it."""
    twin = learner(1, **settings)
    twin.load_state_dict(method.state_dict())
    return twin.train()


def batches(task: Task, epochs: int = 2) -> Iterator[Batch]:
    for epoch in range(epochs):
        for indices in torch.arange(len(task.train)).split(24):
            yield replace(batch_of(task, indices), epoch=epoch, epochs=epochs)


def go_through(method: TriRE, phase: Phase, task: Task) -> None:
    """As the trainer does."""
    if phase.begin:
        phase.begin()
    optimizer = new_optimizer(phase, method)
    for batch in batches(task):
        loss = (phase.loss or method.loss)(batch)
        optimizer.zero_grad()
        loss.backward()
        method.before_step()
        optimizer.step()
        method.after_step()
    if phase.end:
        phase.end()


def values(method: TriRE) -> list[Tensor]:
    return [weight.detach().clone() for weight in method.weights()]


def gradients(method: TriRE, loss: Tensor) -> dict[str, Tensor]:
    names, parameters = zip(*method.net.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def new_loss(method: TriRE, batch: Batch) -> Tensor:
    """Over the second task's classes alone, which are 2 to 4."""
    return cross_entropy(method.net(batch.images)[:, 2:5], batch.labels - 2)


def old_loss(method: TriRE, reg_weight: float) -> Tensor:
    first, _, _ = method.replay()
    second, labels, _ = method.replay()
    distilled = mse_loss(method.net(first), method.average(first))
    return reg_weight * distilled + cross_entropy(method.net(second), labels)


@pytest.mark.parametrize(
    ("epochs", "shares", "expected"),
    [
        (50, (0.6, 0.2), {"retain": 30, "revise": 10, "rewind": 10}),
        (5, (0.6, 0.2), {"retain": 3, "revise": 1, "rewind": 1}),
        (3, (0.6, 0.2), {"retain": 2, "rewind": 1}),
        (2, (0.6, 0.2), {"retain": 1, "revise": 1}),
        (1, (0.6, 0.2), {"retain": 1}),
        (2, (0.1, 0.1), {"retain": 1, "rewind": 1}),
        (4, (1.0, 0.0), {"retain": 4}),
    ],
)
def test_epochs_are_shared_out(
    epochs: int, shares: tuple[float, float], expected: dict[str, int], stream: Stream
) -> None:
    method = learner(retain_share=shares[0], revise_share=shares[1])
    phases = method.phases(stream[0], replace(RECIPE, epochs=epochs))
    assert {phase.name: phase.recipe.epochs for phase in phases} == expected
    for phase in phases:
        assert phase.recipe.lr == pytest.approx(1e-4 if phase.name == "revise" else 2e-3)


def test_the_last_task_revises_instead_of_rewinding_if_it_is_known_to_be_the_last(stream: Stream) -> None:
    recipe = replace(RECIPE, epochs=50)
    known = learner().phases(stream[2], recipe)
    assert [(phase.name, phase.recipe.epochs) for phase in known] == [("retain", 30), ("revise", 20)]
    assert len(learner().phases(replace(stream[2], tasks=None), recipe)) == 3


@pytest.mark.parametrize("phase", ["retain", "revise"])
def test_which_weights_take_which_gradient(phase: str, stream: Stream) -> None:
    """New pictures' goes to what is free, or was just given to the task, old ones' to what the first task owns."""
    settings = {"drop": 0, "reg_weight": 0.7}
    method = in_second_task(stream, **settings)
    if phase == "revise":
        go_through(method, method.phases(stream[1], RECIPE)[0], stream[1])
    twin = twin_of(method, **settings)
    batch = batch_of(stream[1], torch.arange(30))
    retain, revise, _ = method.phases(stream[1], RECIPE)
    loss = ((retain if phase == "retain" else revise).loss or method.loss)(batch)
    method.zero_grad()
    loss.backward()
    method.before_step()

    new, old = new_loss(twin, batch), old_loss(twin, 0.7)
    torch.testing.assert_close(loss, new + old)
    from_new, from_old = gradients(twin, new), gradients(twin, old)
    owners = {id(weight): owner for weight, owner in zip(method.weights(), method.owners, strict=True)}
    learns = 0 if phase == "retain" else 2
    for name, parameter in method.net.named_parameters():
        owner = owners.get(id(parameter))
        if owner is None:
            expected = from_new[name] + from_old[name]
        else:
            expected = torch.where(owner == learns, from_new[name], 0) + torch.where(owner == 1, from_old[name], 0)
            assert phase == "retain" or not expected[owner == 0].any(), "what is free waits"
        torch.testing.assert_close(parameter.grad, expected, msg=name)
    assert sum(int((owner == 1).sum()) for owner in owners.values()) > 50
    assert sum(int((owner == learns).sum()) for owner in owners.values()) > 50


def test_rewinding_trains_what_is_free_on_new_pictures_alone(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    method = in_second_task(stream)
    retain, _, rewind = method.phases(stream[1], RECIPE)
    go_through(method, retain, stream[1])
    twin = twin_of(method)
    batch = batch_of(stream[1], torch.arange(30))
    monkeypatch.setattr(method.buffer, "sample", None)
    assert rewind.loss is not None
    loss = rewind.loss(batch)
    method.zero_grad()
    loss.backward()
    method.before_step()
    expected = gradients(twin, new_loss(twin, batch))
    owners = {id(weight): owner for weight, owner in zip(method.weights(), method.owners, strict=True)}
    for name, parameter in method.net.named_parameters():
        owner = owners.get(id(parameter), torch.zeros_like(parameter))
        torch.testing.assert_close(parameter.grad, torch.where(owner == 0, expected[name], 0))


def test_what_takes_no_gradient_stays_to_the_byte(stream: Stream) -> None:
    """Through a whole phase of each kind, with the authors' optimizer."""
    method = in_second_task(stream)
    retain, revise, rewind = method.phases(stream[1], RECIPE)
    go_through(method, retain, stream[1])

    before = values(method)
    go_through(method, revise, stream[1])
    for weight, old, owner in zip(method.weights(), before, method.owners, strict=True):
        assert torch.equal(weight[owner == 0], old[owner == 0]), "neither the task's nor an earlier one's"
        for number in (1, 2):
            mine = owner == number
            assert not mine.any() or not torch.equal(weight[mine], old[mine])

    before = values(method)
    go_through(method, rewind, stream[1])
    for weight, old, owner in zip(method.weights(), before, method.owners, strict=True):
        assert torch.equal(weight[owner > 0], old[owner > 0])
        assert not torch.equal(weight[owner == 0], old[owner == 0])


def test_free_weights_are_rewound_to_what_was_saved_and_no_others(stream: Stream) -> None:
    method = in_second_task(stream)
    retain, _, rewind = method.phases(stream[1], RECIPE)
    go_through(method, retain, stream[1])
    saved, late = [each.clone() for each in method.saved], values(method)
    assert rewind.begin is not None
    rewind.begin()
    for weight, early, end, owner in zip(method.weights(), saved, late, method.owners, strict=True):
        free = owner == 0
        assert torch.equal(weight[free], early[free])
        assert torch.equal(weight[~free], end[~free])
        assert not torch.equal(early[free], end[free])


@pytest.mark.parametrize(("share", "epoch"), [(0.7, 7), (0.9, 9), (0.0, 0), (0.75, 7), (1.0, None)])
def test_weights_are_saved_once_after_a_share_of_retaining(share: float, epoch: int | None, stream: Stream) -> None:
    method = learner(rewind_at=share)
    begin(method, stream[0])
    found: list[list[Tensor]] = []
    for batch in batches(stream[0], epochs=10):
        found.append(values(method))
        method.loss(batch)
        with torch.no_grad():
            for weight in method.weights():
                weight.add_(1)
    assert method.has_saved == (epoch is not None)
    if epoch is not None:
        for saved, expected in zip(method.saved, found[2 * epoch], strict=True):  # two batches an epoch
            assert torch.equal(saved, expected)


def test_weights_are_saved_also_where_retaining_is_stopped_early(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    batch = next(batches(stream[0]))
    method.loss(replace(batch, epoch=4, epochs=30))
    assert not method.has_saved
    method.loss(replace(batch, epoch=5, epochs=6))  # what early stopping makes of it
    assert method.has_saved


def test_a_task_is_given_the_most_important_weights_of_its_most_active_filters(stream: Stream) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    first = [owner.clone() for owner in method.owners]
    begin(method.train(), stream[1])
    retain, *_ = method.phases(stream[1], RECIPE)
    go_through(method, replace(retain, end=None), stream[1])
    importance = [w.abs() + g.abs() for w, g in zip(values(method), method.gradients, strict=True)]
    assert all(gradient.any() for gradient in method.gradients)
    assert retain.end is not None
    retain.end()
    for (_, winners), size, owner, before in zip(method.net.contested(), importance, method.owners, first, strict=True):
        rows = winners.counts.argsort(descending=True, stable=True)[:4]  # 30 % of 16
        count = len(size[rows].flatten())
        bound = size[rows].flatten().sort().values[round(0.8 * count)]
        chosen = torch.zeros_like(owner, dtype=torch.bool)
        chosen[rows] = size[rows] >= bound
        assert int(chosen.sum()) == count - round(0.8 * count)
        assert torch.equal(owner, torch.where(chosen & (before == 0), 2, before)), "what the first task has it keeps"
    assert not any(len(gradient) for gradient in method.gradients)


def test_gradients_of_the_last_step_count_as_much_as_weights(stream: Stream) -> None:
    method = learner(filter_share=1, weight_share=0.5)
    begin(method, stream[0])
    generator = seeded(0, "gradients")
    method.gradients.set([10 * torch.randn(weight.shape, generator=generator) for weight in method.weights()])
    sizes = [gradient.abs() for gradient in method.gradients]
    method.choose(1)
    weights = [weight.abs() for weight in method.weights()]
    for weight, size, owner in zip(weights, sizes, method.owners, strict=True):
        assert ((weight + size)[owner == 1].min()) >= ((weight + size)[owner == 0].max())
        assert int((owner == 1).sum()) == owner.numel() / 2


def test_only_the_last_epoch_of_retaining_keeps_gradients(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    first, last = (replace(next(batches(stream[0])), epoch=epoch) for epoch in (0, 1))
    for batch, kept in ((first, False), (last, True)):
        method.zero_grad()
        method.loss(batch).backward()
        method.before_step()
        assert any(len(gradient) for gradient in method.gradients) == kept
    for weight, gradient in zip(method.weights(), method.gradients, strict=True):
        assert weight.grad is not None
        assert torch.equal(gradient, weight.grad)


def test_dropping_fades_out_while_a_task_retains(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    method = learner(drop=2)
    begin(method, stream[0])
    seen: list[float] = []
    first_sight = method.net.first_sight

    def watched(images: Tensor, drop: float) -> Tensor:
        seen.append(drop)
        return first_sight(images, drop)

    monkeypatch.setattr(method.net, "first_sight", watched)
    for batch in batches(stream[0], epochs=4):
        method.loss(batch)
    assert seen == [2, 2, 1.5, 1.5, 1, 1, 0.5, 0.5]


def test_a_task_counts_its_own_pictures_and_drops_by_earlier_tasks_counts(stream: Stream) -> None:
    method = learner()
    begin(method.train(), stream[0])
    retain, revise, rewind = method.phases(stream[0], RECIPE)
    go_through(method, retain, stream[0])
    counts = [layer.counts.clone() for layer in method.net.layers()]
    assert 0 < max(int(count.max()) for count in counts) <= 2 * len(stream[0].train), "no replayed picture among them"
    go_through(method, revise, stream[0])
    go_through(method, rewind, stream[0])
    method.end_task(stream[0])
    for layer, count in zip(method.net.layers(), counts, strict=True):
        assert torch.equal(layer.earlier, count)
        assert not layer.counts.any()


def test_the_net_answers_over_classes_seen(stream: Stream) -> None:
    method = in_second_task(stream).eval()
    images = AUGMENT.normalize(stream.test(0).images)
    assert method.net.classes == 6
    assert torch.equal(method.logits(images), method.net(images)[:, :5])
    assert not torch.equal(method.logits(images), method.average.net(images)[:, :5])


def test_a_net_of_one_layer_has_nothing_to_share_out_and_learns(stream: Stream) -> None:
    method = learner(depth=1)
    Trainer(method, RECIPE, 0).learn(stream[0])
    assert not method.weights()


@pytest.fixture
def three_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract's recipe has too few epochs to rewind in."""
    recipe = replace(TriRE.recipe, epochs=5, batch_size=24)

    def longer(kind: type[Method], epochs: int = 2) -> Recipe:
        return recipe

    monkeypatch.setattr(contract_resumed, "recipe", longer)


@pytest.mark.usefixtures("three_phases")
def test_a_state_from_the_middle_of_any_of_the_three_phases_goes_on_to_the_same_bits(stream: Stream) -> None:
    contract_resumed.test_a_state_from_the_middle_of_any_phase_goes_on_to_the_same_bits(TriRE, stream, AUGMENT)


@pytest.mark.long
@pytest.mark.usefixtures("three_phases")
def test_a_run_that_is_cut_off_in_any_of_the_three_phases_ends_with_the_same_bits(
    stream: Stream, tmp_path: Path
) -> None:
    """At the end of retaining too, when weights are still to be chosen."""
    contract_resumed.test_a_run_that_is_cut_off_ends_with_the_same_bits(TriRE, stream, AUGMENT, tmp_path)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"retain_share": 1.2}, "--retain-share 1.2"),
        ({"revise_share": -0.1}, "--revise-share -0.1"),
        ({"retain_share": 0.7, "revise_share": 0.4}, "--retain-share 0.7 and --revise-share 0.4 are more than a whole"),
        ({"revise_lr": 0}, "--revise-lr 0"),
        ({"rewind_at": 2}, "--rewind-at 2"),
        ({"active_share": -1}, "--active-share -1"),
        ({"filter_share": 30}, "--filter-share 30"),
        ({"weight_share": math.nan}, "--weight-share nan"),
        ({"reg_weight": -1}, "--reg-weight -1"),
        ({"rate": 1.1}, "--rate 1.1"),
        ({"alpha": math.nan}, "--alpha nan"),
        ({"drop": math.inf}, "--drop inf"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        TriReSettings(**settings)  # type: ignore[arg-type]


def test_there_is_no_choice_of_backbone() -> None:
    with pytest.raises(TypeError, match="backbone"):
        TriReSettings(backbone="separable")
