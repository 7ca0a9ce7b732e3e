import math
from dataclasses import replace

import pytest
import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods import Batch, Recipe
from sparc.methods.prototypes.ssre import SSRE, SsreSettings, largest_cosine
from sparc.nn.head import count_parameters
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.005, optimizer="adam")


def learner(**settings: float) -> SSRE:
    return SSRE(SsreSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def in_second_task(stream: Stream, **settings: float) -> SSRE:
    method = learner(**settings)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    return method


def bend(method: SSRE) -> None:
    """Put the branches where they might be after some steps."""
    generator = Generator().manual_seed(0)
    with torch.no_grad():
        for branch in method.net.branches():
            branch.normal_(std=0.1, generator=generator)


def batch_in(task: Task, count: int = 9) -> Batch:
    return batch_of(task, torch.arange(count), recipe=replace(RECIPE, batch_size=7))


def test_the_largest_cosine_by_hand() -> None:
    prototypes = torch.tensor([[1.0, 0.0, 0.0], [0.0, 3.0, 4.0]])
    features = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 7.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(largest_cosine(features, prototypes), torch.tensor([1.0, 0.5**0.5, 0.8, 0.0]))


def test_the_first_task_is_learned_by_cross_entropy_at_the_temperature(stream: Stream) -> None:
    method = learner(temperature=0.5)
    begin(method, stream[0])
    before = method.generator.get_state()
    batch = batch_in(stream[0])
    torch.testing.assert_close(method.loss(batch), cross_entropy(method.net(batch.images) / 0.5, batch.labels))
    assert torch.equal(method.generator.get_state(), before), "no prototype is drawn"


def test_the_loss_of_a_later_task_by_hand(stream: Stream) -> None:
    method = in_second_task(stream, temperature=0.5, prototype_weight=3, distillation_weight=0.7)
    batch = batch_in(stream[1])
    before = method.net.features(batch.images).detach()
    bend(method)
    features = method.net.features(batch.images)
    means = method.prototypes.means.float()
    new = kept = torch.zeros(())
    for now, then, label in zip(features, before, batch.labels.tolist(), strict=True):
        near = torch.stack([now @ mean / (now.norm() * mean.norm()) for mean in means]).max()
        logits = method.net.head(now) / 0.5
        new = new + (1 - near) * (logits.logsumexp(0) - logits[label]) / 9
        kept = kept + near * (now - then).square().sum().sqrt()
    generator = Generator()
    generator.set_state(method.generator.get_state())
    drawn = torch.randint(2, (7,), generator=generator)
    assert drawn.unique().tolist() == [0, 1]
    rehearsed = cross_entropy(method.net.head(means[drawn]) / 0.5, drawn)
    torch.testing.assert_close(method.loss(batch), new + 0.7 * kept + 3 * rehearsed)


def test_the_first_step_of_a_task_has_a_gradient_though_nothing_has_moved(stream: Stream) -> None:
    """The length of a vector has none at zero."""
    method = in_second_task(stream)
    method.loss(batch_in(stream[1])).backward()
    for branch in method.net.branches():
        assert branch.grad is not None
        assert branch.grad.isfinite().all()
        assert branch.grad.any()


def test_from_the_second_task_on_only_branches_and_head_learn(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    method = in_second_task(stream)
    mine = {name for name, parameter in method.named_parameters() if parameter.requires_grad}
    assert mine == {name for name, _ in method.named_parameters() if name.endswith("branch") or "head" in name}
    trainer = Trainer(method, replace(RECIPE, weight_decay=0.1), 0)
    trainer.at.phase = 0  # the task has begun
    monkeypatch.setattr(method, "end_task", lambda task: None)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    trainer.learn(stream[1])
    changed = {name for name, value in method.state_dict().items() if not torch.equal(value, before[name])}
    assert changed - {"_extra_state"} == mine, "not what is decayed either"


def test_the_first_task_trains_all(stream: Stream) -> None:
    method = learner()
    begin(method, stream[0])
    assert all(parameter.requires_grad for parameter in method.parameters())


def test_the_end_of_a_task_changes_no_answer_and_the_net_does_not_grow(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    images = AUGMENT.normalize(stream.test(0).images)
    logits: list[Tensor] = []
    sizes = []
    end_task = method.end_task

    def watched(task: Task) -> None:
        logits.append(method.eval().logits(images))
        end_task(task)
        logits.append(method.logits(images))
        sizes.append(count_parameters(method.net) - count_parameters(method.net.head))

    method.end_task = watched  # type: ignore[method-assign]
    for task in stream:
        trainer.learn(task)
    torch.testing.assert_close(logits[0], logits[1], rtol=1e-4, atol=1e-4)
    assert torch.equal(logits[2], logits[3])
    assert torch.equal(logits[4], logits[5])
    assert len(set(sizes)) == 1


def test_prototypes_are_class_means_when_their_task_is_over_and_stay(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    expected = torch.zeros(0, method.net.head.in_features)
    for task in stream:
        trainer.learn(task)
        features = method.net.features(AUGMENT.normalize(task.train.images))
        own = [features[task.train.labels == label].mean(0) for label in task.classes]
        expected = torch.cat((expected, torch.stack(own).detach()))
        torch.testing.assert_close(method.prototypes.means.float(), expected)


def test_later_tasks_are_shorter_with_a_rate_that_drops_after_as_many_epochs(stream: Stream) -> None:
    method = learner()
    (first,) = method.phases(stream[0], SSRE.recipe)
    assert first.recipe == SSRE.recipe
    method = in_second_task(stream)
    (later,) = method.phases(stream[1], SSRE.recipe)
    assert later.recipe.epochs == 60
    rates = [later.recipe.lr_at(epoch) for epoch in (0, 44, 45, 59)]
    assert rates == pytest.approx([2e-4, 2e-4, 2e-5, 2e-5])
    (shortest,) = method.phases(stream[1], replace(RECIPE, epochs=1))
    assert shortest.recipe.epochs == 1


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"temperature": 0}, "--temperature 0"),
        ({"prototype_weight": -1}, "--prototype-weight -1"),
        ({"distillation_weight": math.nan}, "--distillation-weight nan"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        SsreSettings(**settings)  # type: ignore[arg-type]
