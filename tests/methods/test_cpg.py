from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from sparc.data.augment import Augment
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.masks.cpg import CPG, SCORE_LR, START, CpgSettings
from sparc.nn.resnet import ResNet
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=1, batch_size=24, lr=0.03, momentum=0.9, weight_decay=0.05)


def learner(**settings: object) -> CPG:
    return CPG(CpgSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def says(right: bool, task: Task) -> Callable[..., Tensor]:
    """What takes the place of a method's answers."""
    classes = len(task.classes)
    return lambda answer, images: torch.eye(classes)[
        (task.train.labels[: len(images)] - task.classes.start + (not right)) % classes
    ]


def test_older_tasks_logits_are_bit_equal_whatever_comes(
    stream: Stream, augment: Augment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the net grows, as it does here in the second task."""
    method = learner(goal=1.0, pruning_step=0.5)
    trainer = Trainer(method, RECIPE, 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        monkeypatch.setattr(method, "must_grow", lambda index=task.index: index == 1 and not method.grown)
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now
    assert method.grown == 1


def test_each_task_has_weights_of_its_own_and_picks_among_older_ones(stream: Stream) -> None:
    method = learner(margin=100.0)
    trainer = Trainer(method, RECIPE, 0)
    for task in stream:
        trainer.learn(task)
    weights = method.weights()
    first, second, third = (method.masks.of(task, weights) for task in range(3))
    shares = torch.stack([torch.stack([mask.float().mean() for mask in masks]) for masks in (first, second)])
    assert shares[0].tolist() == pytest.approx([0.05] * len(weights), abs=1 / 72), "pruned as far as can be"
    own = [mask & ~old for mask, old in zip(second, first, strict=True)]
    assert torch.stack([mask.float().mean() for mask in own]).mean() == pytest.approx(0.95 * 0.05, abs=2e-3)
    free = [~(a | b | c) for a, b, c in zip(first, second, third, strict=True)]
    assert all(not weight[mask].any() for weight, mask in zip(weights, free, strict=True)), "what nobody owns is 0"


def test_scores_learn_from_what_the_weight_they_let_through_does_to_the_loss(stream: Stream) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    method.eval()
    batch = batch_of(stream[1], torch.arange(16))
    method.loss(batch).backward()

    # A second way: a mask of ones in front of the first layer's weights.
    (old, *_), (weight, *_) = method.masks.any(method.weights()), method.weights()
    mask = torch.ones_like(weight, requires_grad=True)
    head = method.heads.of(1)
    parts = {"stem.0.weight": mask * weight.detach(), "head.weight": head.weight, "head.bias": head.bias}
    logits = functional_call(method.net, parts, (batch.images,))
    batch.cross_entropy(logits, batch.labels - 2).backward()
    assert mask.grad is not None
    slope = mask.grad[old]

    method.before_step()
    (score, *_) = method.scores
    assert old.any()
    assert score[~old].isneginf().all(), "nobody's weights cannot be picked"
    # Adam's first step is of one length, down the slope.
    steep = slope.abs() > 1e-6
    assert steep.float().mean() > 0.5
    torch.testing.assert_close(score[old][steep], START - SCORE_LR * slope.sign()[steep], rtol=0, atol=1e-5)


def test_the_task_s_own_weights_take_the_gradient_alone(stream: Stream) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    method.loss(batch_of(stream[1], torch.arange(16))).backward()
    method.before_step()
    for weight, old in zip(method.weights(), method.masks.any(method.weights()), strict=True):
        assert weight.grad is not None
        assert not weight.grad[old].any()
        assert weight.grad[~old].any()


def test_a_weight_whose_score_is_low_is_not_used(stream: Stream, augment: Augment) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    method.eval()
    images = augment.normalize(stream.test(1).images)
    (score, *_), (weight, *_) = method.scores, method.weights()
    old = ~score.isneginf()
    score[old] = 0.005  # the threshold, which has to be passed
    low = method.one_pass(images)
    score[old] = 0.0051
    high = method.one_pass(images)
    assert not torch.equal(low, high)
    with torch.no_grad():
        weight[old] = 0
    assert torch.equal(method.one_pass(images), low)


def test_the_scores_rate_falls_and_pruning_leaves_them_alone(stream: Stream) -> None:
    method = learner()

    def rates() -> list[float]:
        found = []
        for epoch in range(10):
            method.loss(replace(batch_of(stream[1], torch.arange(4)), epoch=epoch, epochs=10))
            found.append(method.score_lr)
        return found

    begin(method, stream[0])
    assert rates() == [0] * 10, "there is nothing to pick in the first task"
    method.end_task(stream[0])
    begin(method, stream[1])
    assert rates() == pytest.approx([5e-4] * 5 + [1e-4] * 2 + [0] * 3)
    method.accuracies = torch.tensor([100.0])
    assert rates() == [0] * 10


def test_the_smallest_weights_are_given_up_step_by_step(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    weight, (mine, *_) = method.weights()[0], method.mine
    with torch.no_grad():
        weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))  # 72 weights
    before = weight.detach().clone()
    for share, left in ((0.25, 54), (0.5, 36), (0.95, 4)):
        method.prune(share)
        assert int(mine.sum()) == left
        assert before[~mine].abs().max() < before[mine].abs().min()
        assert not weight[~mine].any()
        assert torch.equal(weight[mine], before[mine])


def test_what_has_gone_too_far_is_taken_back(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    method, task = learner(held_out=0), stream[0]
    begin(method, task)
    monkeypatch.setattr(method, "predict_batched", says(True, task))
    method.judge(task)
    method.prune(0.1)
    method.judge(task)
    reached = [tensor.detach().clone() for tensor in method.trained()]
    with torch.no_grad():
        method.prune(0.2)
        for tensor in (*method.norms[-1].parameters(), *method.norms[-1].buffers(), method.heads.of(-1).weight):
            tensor += 1
    monkeypatch.setattr(method, "predict_batched", says(False, task))
    method.judge(task)
    assert method.accuracies.tolist() == [100, 100, 0]
    assert all(map(torch.equal, method.trained(), reached))
    assert [phase.name for phase in method.phases(task, RECIPE)] == ["train", "prune 10%", "prune 20%"], "no further"


@pytest.mark.parametrize(
    ("settings", "grown", "accuracies", "names"),
    [
        ({}, 0, [], ["train"]),
        ({}, 0, [70], ["train", "prune 10%"]),
        ({}, 0, [70, 69], ["train", "prune 10%", "prune 20%"]),
        ({}, 0, [70, 68.9], ["train", "prune 10%"]),
        ({"margin": 2}, 0, [70, 68.9], ["train", "prune 10%", "prune 20%"]),
        ({}, 0, [70] * 11, ["train", *(f"prune {share}%" for share in (10, 20, 30, 40, 50, 60, 70, 80, 90, 95))]),
        ({"pruning_step": 0.5}, 0, [70] * 3, ["train", "prune 50%", "prune 95%"]),
        ({"pruning_step": 0.95}, 0, [70] * 2, ["train", "prune 95%"]),
        ({"goal": 60}, 0, [70, 60], ["train", "prune 10%", "prune 20%"]),
        ({"goal": 60}, 0, [70, 59.9], ["train", "prune 10%"]),
        ({"goal": 80}, 0, [70], ["train", "grow"]),
        ({"goal": 80}, 1, [70], ["train", "grow"]),
        ({"goal": 80}, 1, [70, 90], ["train", "grow", "prune 10%"]),
        ({"goal": 80}, 1, [70, 90, 79], ["train", "grow", "prune 10%"]),
        ({"goal": 80}, 1, [70, 75, 74], ["train", "grow", "prune 10%", "prune 20%"]),
        ({"goal": 80}, 1, [70, 75, 73.9], ["train", "grow", "prune 10%"]),
    ],
)
def test_phases_follow_from_what_has_been_reached(
    stream: Stream, settings: dict[str, float], grown: int, accuracies: list[float], names: list[str]
) -> None:
    method = learner(**settings)
    begin(method, stream[0])
    for _ in range(grown):
        method.grow()
    method.accuracies = torch.tensor(accuracies)
    phases = method.phases(stream[0], Recipe(epochs=10, lr=0.1, milestones=(0.5,)))
    assert [phase.name for phase in phases] == names
    for phase in phases:
        pruning = phase.name.startswith("prune")
        assert (phase.recipe.epochs, phase.recipe.lr) == pytest.approx((2, 0.01) if pruning else (10, 0.1))
        assert bool(phase.recipe.milestones) != pruning


def test_a_net_that_has_grown_once_stays_so(stream: Stream) -> None:
    method = learner(goal=80.0)
    begin(method, stream[0])
    method.grow()
    method.end_task(stream[0])
    begin(method, stream[1])
    method.accuracies = torch.tensor([70.0])
    assert [phase.name for phase in method.phases(stream[1], RECIPE)] == ["train"], "no room, and nothing to prune"


def test_the_net_grows_by_half_and_has_one_width_where_no_goal_is_given(stream: Stream) -> None:
    method = learner(goal=80.0)
    begin(method, stream[0])
    for width in (1 / 8, 3 / 16):
        expected = [weight.numel() for weight in ResNet(1, (8, 8), width).parameters() if weight.ndim == 4]
        assert [int(mine.sum()) for mine in method.mine] == expected
        method.grown.zero_()
        method.grow()
    assert [weight.numel() for weight in method.weights()] == expected
    assert all(mine.all() for mine in method.mine)
    assert [weight.numel() for weight in learner().weights()] < expected


def test_filters_beyond_the_width_play_no_part(stream: Stream, augment: Augment) -> None:
    """The net answers as one of the smaller width does that is cut out of it."""
    method = learner(goal=1.0)
    Trainer(method, RECIPE, 0).learn(stream[0])
    small = ResNet(1, (8, 8), 1 / 8).eval()
    small.add_classes(2)
    norms = iter(cast(nn.ModuleList, method.norms[0]))
    masks = iter(method.masks.of(0, method.weights()))
    weights = iter(method.weights())
    with torch.no_grad():
        for module in small.modules():
            if isinstance(module, nn.Conv2d):
                filters, channels = module.weight.shape[:2]
                module.weight.copy_((next(weights) * next(masks))[:filters, :channels])
            elif isinstance(module, nn.BatchNorm2d):
                for name, value in next(norms).state_dict().items():
                    module.state_dict()[name].copy_(value[: module.num_features] if value.ndim else value)
        head = method.heads.of(0)
        small.head.weight.copy_(head.weight[:, : small.head.in_features])
        small.head.bias.copy_(head.bias)
        images = augment.normalize(stream.test(0).images)
        torch.testing.assert_close(method.eval().task_logits(images, 0), small(images))


def test_pictures_that_tell_the_accuracy_are_not_learned_from(stream: Stream) -> None:
    learned_from, asked = learner().split(stream[1])
    assert (learned_from.counts()[2:5], asked.counts()[2:5]) == ([22] * 3, [2] * 3)
    (phase,) = learner().phases(stream[1], RECIPE)
    assert phase.images is not None
    assert torch.equal(phase.images().images, learned_from.images)
    one_each = replace(stream[1], train=stream[1].train.take(torch.tensor([0, 24, 48])))
    assert [len(part) for part in learner().split(one_each)] == [3, 3]
    both = replace(stream[2], train=stream[2].train.take(torch.arange(2)))
    assert [len(part) for part in learner().split(both)] == [2, 2], "batch norm needs two to learn from"


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"goal": 0}, "--goal 0"),
        ({"goal": 101}, "--goal 101"),
        ({"margin": -1}, "--margin -1"),
        ({"held_out": 1}, "--held-out 1"),
        ({"pruning_step": 0}, "--pruning-step 0"),
        ({"pruning_step": 1}, "--pruning-step 1"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        CpgSettings(**settings)  # type: ignore[arg-type]
