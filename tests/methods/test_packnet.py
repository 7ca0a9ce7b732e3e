from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.experiment import RunConfig, Workplace, run
from sparc.methods import Recipe
from sparc.methods.masks.packnet import PackNet, PackNetSettings
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.03)


def learner(**settings: object) -> PackNet:
    return PackNet(PackNetSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def shares(method: PackNet, task: int) -> list[float]:
    """Of each layer's weights, how much belongs to the task."""
    return [float((owner == task + 1).float().mean()) for owner in method.owners]


@pytest.mark.parametrize("backbone", ["resnet", "separable"])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_older_tasks_logits_are_bit_equal_whatever_comes(
    stream: Stream, augment: Augment, backbone: str, decay: float
) -> None:
    method = learner(backbone=backbone)
    trainer = Trainer(method, replace(RECIPE, weight_decay=decay, momentum=0.9), 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now


def test_every_weight_has_one_owner_and_tasks_share_alike(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    for task in stream:
        before = [owner.clone() for owner in method.owners]
        trainer.learn(task)
        for then, owner in zip(before, method.owners, strict=True):
            assert torch.equal(owner[then > 0], then[then > 0]), "what belonged to a task still does"
    for task in stream:
        # Layers have 72 weights and more: a third, but for one weight.
        assert shares(method, task.index) == pytest.approx([1 / 3] * len(method.owners), abs=1 / 72)
    assert not any((owner == 0).any() for owner in method.owners), "the last task gives nothing up"


def test_half_is_given_up_where_nobody_knows_how_many_tasks_come(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    for task in stream[:2]:
        trainer.learn(replace(task, tasks=None))
    for task, share in enumerate((1 / 2, 1 / 4)):
        assert shares(method, task) == pytest.approx([share] * len(method.owners), abs=1 / 72)
    assert method.share_given_up(replace(stream[2], tasks=None)) == 0.5
    assert [method.share_given_up(task) for task in stream] == pytest.approx([2 / 3, 1 / 2, 0])
    assert learner(prune=0.25).share_given_up(stream[2]) == 0.25


def test_of_many_tasks_the_first_keep_more_than_their_share(stream: Stream) -> None:
    task, method = replace(stream[0], tasks=20), learner()
    given_up = [method.share_given_up(replace(task, index=index)) for index in (0, 15, 16, 18, 19)]
    assert given_up == pytest.approx([0.75, 0.75, 0.75, 1 / 2, 0])


def test_the_smallest_weights_are_given_up(stream: Stream) -> None:
    method = learner()
    method.begin_task(stream[0])
    weight, (owner, *_) = method.weights()[0], method.owners
    with torch.no_grad():
        weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))  # 72 weights
    before = weight.detach().clone()
    method.prune(0.25)
    given_up = owner == 0
    assert int(given_up.sum()) == 18
    assert before[given_up].abs().max() < before[~given_up].abs().min()
    assert not weight[given_up].any()
    assert torch.equal(weight[~given_up], before[~given_up])


def test_what_is_given_up_stays_zero_until_a_later_task_trains_it(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, replace(RECIPE, momentum=0.9), 0)
    trainer.learn(stream[0])
    weights = method.weights()
    free = [owner == 0 for owner in method.owners]
    assert all(bool(mask.any()) and not weight[mask].any() for weight, mask in zip(weights, free, strict=True))
    trainer.learn(stream[1])
    for weight, mask, owner in zip(weights, free, method.owners, strict=True):
        assert weight[mask & (owner == 2)].any()
        assert not weight[mask & (owner == 0)].any()


def test_a_task_is_trained_pruned_and_trained_on(stream: Stream) -> None:
    method = learner(retrain=0.4)
    method.begin_task(stream[0])
    train, retrain = method.phases(stream[0], replace(RECIPE, epochs=10))
    assert (train.name, train.recipe.epochs, train.begin) == ("train", 10, None)
    assert (retrain.name, retrain.recipe.epochs) == ("retrain", 4)
    assert retrain.recipe.lr == pytest.approx(train.recipe.lr / 10)
    assert retrain.begin is not None
    retrain.begin()
    assert shares(method, 0) == pytest.approx([1 / 3] * len(method.owners), abs=1 / 72)
    assert [phase.name for phase in method.phases(stream[2], RECIPE)] == ["train"], "nobody comes after the last"


def test_batch_norm_learns_in_the_first_task_only(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)

    def norms() -> dict[str, Tensor]:
        packed = method.named_weights()
        return {name: value.clone() for name, value in method.net.state_dict().items() if name not in packed}

    before = norms()
    trainer.learn(stream[0])
    learned = norms()
    assert any(not torch.equal(before[name], value) for name, value in learned.items())
    trainer.learn(stream[1])
    assert all(torch.equal(learned[name], value) for name, value in norms().items())


def test_a_filter_given_up_whole_leaves_later_tasks_no_trap(stream: Stream, augment: Augment) -> None:
    """Its frozen variance of 0 would multiply what is put there by 1 / √ε, some three hundred."""
    method = learner()
    method.begin_task(stream[0])
    conv, norm = method.net.stem  # type: ignore[misc]
    with torch.no_grad():
        conv.weight[3] = 0
        norm.running_mean.fill_(0.25)
        norm.running_var.fill_(1e-9)
        norm.bias.fill_(0.5)
    method.end_task(stream[0])
    assert [index for index, value in enumerate(norm.running_var.tolist()) if value == 1] == [3]
    assert [index for index, value in enumerate(norm.running_mean.tolist()) if value == 0] == [3]
    said = norm(conv(augment.normalize(stream.test(0).images)))
    assert (said[:, 3] == 0.5).all(), "what it says is what it said while it was trained"


def test_parameters_for_the_papers_stream() -> None:
    with torch.device("meta"):
        method = PackNet(PackNetSettings(), 3, (32, 32), AUGMENT, seeded(0, "method"))
        for _ in range(5):
            method.heads.add(20)
    owners = method.parameters_by_owner()
    assert owners == {"net": 11_168_832, "heads": 51_300, "owners": 11_168_832 - 9_600}, "batch norm has no owner"


@pytest.mark.parametrize(
    ("settings", "flag"), [({"prune": 1}, "--prune 1"), ({"prune": 0}, "--prune 0"), ({"retrain": 0}, "--retrain 0")]
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        PackNetSettings(**settings)  # type: ignore[arg-type]


def test_more_tasks_than_a_byte_can_name_are_refused(stream: Stream) -> None:
    method = PackNet(PackNetSettings(width=1 / 64), 1, (8, 8), AUGMENT, seeded(0, "method"))
    for _ in range(255):
        method.heads.add(1)
    with pytest.raises(InputError, match="255 tasks"):
        method.begin_task(stream[0])


@pytest.mark.long
def test_it_gets_through_digits_with_its_own_recipe(tmp_path: Path) -> None:
    """With frozen norms and a rate of 0.03 the second task ended in NaN."""
    result = run(RunConfig.default("seq-digits", "packnet"), Workplace(tmp_path)).measured
    assert result.metrics["task_il"].accuracy > 97
