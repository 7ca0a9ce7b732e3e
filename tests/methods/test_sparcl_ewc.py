from dataclasses import replace

import pytest
import torch

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.masks.sparcl_ewc import CHOSEN_EVERY, SparclEWC, SparclEwcSettings
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=4, batch_size=24, lr=0.03)


def learner(**settings: object) -> SparclEWC:
    made = SparclEwcSettings(width=1 / 8, **settings)  # type: ignore[arg-type]
    return SparclEWC(made, 1, (8, 8), AUGMENT, seeded(0, "method"))


def dead_shares(method: SparclEWC) -> list[float]:
    return [1 - float(live.float().mean()) for live in method.live]


def test_the_residual_blocks_3x3_convolutions_are_sparse_from_the_start() -> None:
    method = learner()
    assert all(weight.shape[2:] == (3, 3) for weight in method.weights())
    assert len(method.weights()) == 8, "two a block, and two blocks in each of two layers"
    for number, parameter in enumerate(method.net.parameters()):
        share = float((parameter == 0).float().mean()) if parameter.ndim == 4 else 0
        assert share == (pytest.approx(0.75, abs=1e-3) if number in method.sparse else 0)


def test_the_mask_stays_between_its_bounds_and_dead_weights_stay_0(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learner()
    trainer = Trainer(method, replace(RECIPE, momentum=0.9, weight_decay=0.1), 0)
    found: list[float] = []
    after_step, move_mask = method.after_step, method.move_mask

    def stepped() -> None:
        after_step()
        for weight, live in zip(method.weights(), method.live, strict=True):
            assert not weight[~live].any()

    def moved(shrink_to: float, grow_to: float) -> None:
        before = [live.clone() for live in method.live]
        move_mask(shrink_to, grow_to)
        assert dead_shares(method) == pytest.approx([grow_to] * 8, abs=1e-3)
        for old, live in zip(before, method.live, strict=True):
            died = 1 - float(live[old].float().mean())
            assert died * 0.25 <= 0.02 + 1e-3, "no more than the bounds are apart"
        found.append(grow_to)

    monkeypatch.setattr(method, "after_step", stepped)
    monkeypatch.setattr(method, "move_mask", moved)
    for task in stream[:2]:
        trainer.learn(task)
    assert found == [0.74, 0.75, 0.75, 0.75] * 2


def test_weights_that_matter_least_die_and_as_many_come_to_life(stream: Stream) -> None:
    method = learner(turnover=0.25, sparsity=0.5, lam=3.0)
    begin(method, stream[0])
    weight, (live, *_) = method.weights()[0], method.live
    count = weight.numel()  # 576
    gradient, stiffness = torch.zeros_like(weight).flatten(), torch.zeros_like(weight).flatten()
    with torch.no_grad():
        live.fill_(False)
        live.view(-1)[: count // 2] = True
        weight.copy_((torch.arange(count).view_as(weight) + 1.0) * live)
    gradient[0], stiffness[1] = 1000.0, 100.0  # which save the two smallest
    parameters = list(method.net.parameters())
    method.gradients.set([gradient.view_as(weight), *[torch.empty(0)] * 7])
    method.anchor.set([parameter.detach().clone() for parameter in parameters])
    next(each for index, each in enumerate(method.anchor) if index == method.sparse[0]).view(-1)[1] -= 1
    springs = [torch.zeros_like(parameter) for parameter in parameters]
    springs[method.sparse[0]] = stiffness.view_as(weight)
    method.importance.set(springs)
    (pull, *_) = method.pulls()
    assert pull.flatten()[:3].tolist() == [0, 2 * 3 * 100 * 1, 0]
    before = weight.detach().flatten().clone()
    method.move_mask(0.75, 0.5)
    (now, *_) = (live.flatten() for live in method.live)
    assert int(now.sum()) == count // 2
    kept = torch.cat((torch.arange(2), torch.arange(count // 4 + 2, count // 2)))
    assert now[kept].all()
    after = weight.detach().flatten()
    assert torch.equal(after.nonzero().flatten(), kept), "what comes to life begins at 0"
    assert torch.equal(after[kept], before[kept])


def test_what_comes_to_life_is_drawn_by_the_method_s_own_generator(stream: Stream) -> None:
    methods = [learner(), learner(), learner()]
    methods[2].generator.manual_seed(5)
    for method in methods:
        method.net.generator = torch.Generator()
        method.begin_task(stream[0])
    one, same, other = (torch.cat([live.flatten() for live in method.live]) for method in methods)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_few_weights_step_those_with_the_largest_gradients(stream: Stream) -> None:
    method = learner(gradient_sparsity=0.9)
    begin(method, stream[0])
    method.train()
    for step in range(CHOSEN_EVERY + 1):
        before = [moving.clone() for moving in method.moving]
        method.zero_grad()
        method.loss(batch_of(stream[0], torch.arange(step % 4, 48, 3))).backward()
        gradients = [weight.grad.clone() for weight in method.weights() if weight.grad is not None]
        method.before_step()
        chosen = step % CHOSEN_EVERY == 0
        assert all(map(torch.equal, before, method.moving)) != chosen
        for weight, gradient, live, moving in zip(method.weights(), gradients, method.live, method.moving, strict=True):
            assert weight.grad is not None
            assert torch.equal(weight.grad, gradient * moving)
            assert int(moving.sum()) == round(0.1 * moving.numel())
            assert not moving[~live].any()
            if chosen:
                assert gradient[moving].abs().min() >= gradient[live & ~moving].abs().max()


def test_gradients_of_the_task_and_of_the_penalty_count_apart(stream: Stream) -> None:
    """Where they cancel out, a weight matters to both, and steps."""
    method = learner()
    Trainer(method, replace(RECIPE, epochs=1), 0).learn(stream[0])
    begin(method, stream[1])
    for weight in method.weights():
        weight.grad = torch.zeros_like(weight)
    (live, *_), number = method.live, method.sparse[0]
    chosen = live.flatten().nonzero().flatten()[7]
    anchor, importance = list(method.anchor)[number], list(method.importance)[number]
    importance.view(-1)[chosen] = 1.0
    anchor.view(-1)[chosen] += 1.0
    method.ends_stretch = True
    method.before_step()
    (moving, *_), (gradient, *_) = method.moving, method.gradients
    assert moving.flatten()[chosen]
    assert float(gradient.flatten()[chosen]) == pytest.approx(2 * 0.3), "the task's own is minus the penalty's"


def test_pictures_that_were_rarely_wrong_are_left_out(stream: Stream) -> None:
    method, task = learner(), stream[0]  # 48 pictures
    begin(method, task)
    method.mistakes = torch.arange(48) % 3  # 16 were never wrong, 16 once, 16 twice
    phases = method.phases(task, replace(RECIPE, epochs=10))
    pictures = []
    for phase in phases:
        if phase.begin is not None:
            phase.begin()
        assert phase.images is not None
        pictures.append(phase.images())
    assert [len(shown) for shown in pictures] == [48, 44, 41, 37, *[34] * 6]  # 48 − 3.6, 7.2, 10.8, 14.4
    hard = [index for wrong in (2, 1, 0) for index in range(48) if index % 3 == wrong]
    assert torch.equal(pictures[-1].images, task.train.images[hard[:34]])
    assert torch.equal(pictures[-1].labels, task.train.labels[hard[:34]])
    method.mistakes[:] = -torch.arange(48)
    assert phases[-1].begin is not None
    phases[-1].begin()
    assert sorted(method.order[:34].tolist()) == sorted(hard[:34]), "what was left out does not come back"


def test_mistakes_are_counted_for_the_pictures_that_were_shown(stream: Stream) -> None:
    method, task = learner(), stream[0]
    begin(method, task)
    method.eval()
    method.order = torch.arange(47, -1, -1)
    shown = replace(task, train=task.train.take(method.order))
    batch = batch_of(shown, torch.tensor([0, 5, 40]))
    wrong = method.net(batch.images).argmax(1) != batch.labels
    for times in (1, 2):
        method.loss(batch)
        expected = torch.zeros(48, dtype=torch.int64)
        expected[[47, 42, 7]] = times * wrong.long()
        assert torch.equal(method.mistakes, expected)
    assert wrong.any()


def test_live_weights_alone_are_held(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, replace(RECIPE, epochs=1), 0)
    trainer.learn(stream[0])
    begin(method, stream[1])
    with torch.no_grad():
        for parameter in method.net.parameters():
            parameter += 0.5
    live = dict(zip(method.sparse, method.live, strict=True))
    before = method.penalty().item()
    expected = 0.0
    for number, importance in enumerate(method.importance):
        if number in live:
            assert not importance[~live[number]].any()
            assert importance[live[number]].any()
        expected += 0.25 * float(importance.double().sum())
    assert before == pytest.approx(expected, rel=1e-3)
    method.move_mask(0.9, 0.5)
    for number, weight in zip(method.sparse, method.weights(), strict=True):
        dead = weight == 0
        assert not list(method.importance)[number][dead].any(), "one that dies loses its spring, also if it comes back"
    assert 0 < method.penalty().item() < before


def test_a_task_has_ten_stretches_with_the_rate_of_their_middle(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    recipe = SparclEWC.recipe
    phases = method.phases(stream[0], recipe)
    assert [phase.recipe.epochs for phase in phases] == [5] * 10
    assert [phase.recipe.lr for phase in phases] == pytest.approx([recipe.lr_at(5 * index + 2) for index in range(10)])
    assert {phase.recipe.schedule for phase in phases} == {"constant"}
    assert [phase.recipe.epochs for phase in method.phases(stream[0], replace(recipe, epochs=3))] == [1, 1, 1]
    assert [method.kept(10_000, share / 10) for share in range(6)] == [10_000, 9_250, 8_500, 7_750, 7_000, 7_000]
    assert method.kept(2, 1.0) == 2, "batch norm needs two"


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"sparsity": 1}, "--sparsity 1"),
        ({"sparsity": 0.2, "turnover": 0.3}, "--sparsity 0.2"),
        ({"turnover": -0.1}, "--turnover -0.1"),
        ({"gradient_sparsity": 1}, "--gradient-sparsity 1"),
        ({"removed": 1}, "--removed 1"),
        ({"lam": -1}, "--lam -1"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        SparclEwcSettings(**settings)  # type: ignore[arg-type]
