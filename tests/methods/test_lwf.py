import math

import pytest
import torch

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.parts.distillation import distillation
from sparc.methods.regularization.lwf import LwF, LwfSettings
from sparc.nn.head import Head
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.01)


def learner(**settings: float) -> LwF:
    return LwF(LwfSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def test_distillation_at_a_temperature_by_hand() -> None:
    # At temperature 2 the shares of (2 ln 3, 0) are 3/4 and 1/4, those of (0, 0) a half each.
    target = torch.tensor([[2 * math.log(3), 0.0]])
    even = torch.zeros(1, 2)
    assert distillation(even, target, 2).item() == pytest.approx(math.log(2))
    own = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert distillation(target, target, 2).item() == pytest.approx(own)
    # At temperature 1 they are 9/10 and 1/10.
    assert distillation(target, target, 1).item() == pytest.approx(-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)))


def test_distillation_sends_no_gradient_where_nothing_has_changed() -> None:
    target = torch.randn(5, 3, generator=seeded(0, "logits"))
    logits = target.clone().requires_grad_()
    distillation(logits, target, 2).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.zeros(5, 3), atol=1e-7, rtol=0)


def test_the_loss_is_cross_entropy_and_alpha_times_distillation_of_old_classes(
    stream: Stream, augment: Augment
) -> None:
    method = learner(alpha=0.7, temperature=3)
    Trainer(method, RECIPE, 0).learn(stream[0])
    method.begin_task(stream[1])
    method.eval()
    batch = batch_of(stream[1], torch.arange(9))
    images, labels = batch.images, batch.labels
    with torch.no_grad():
        method.net.head.weight.mul_(1.5)
    logits, target = method.net(images), method.teacher(images)
    old = (target / 3).softmax(1)
    kept = -(old * (logits[:, :2] / 3).log_softmax(1)).sum(1).mean()
    learned = -logits.log_softmax(1)[torch.arange(9), labels].mean()
    torch.testing.assert_close(method.loss(batch), learned + 0.7 * kept)


def test_the_teacher_is_the_net_after_the_last_task_and_stays_so(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    teachers = []
    end_task = method.end_task
    for task in stream[:2]:
        method.end_task = lambda task: (  # type: ignore[method-assign]
            teachers.append({name: value.clone() for name, value in method.teacher.state_dict().items()}),
            end_task(task),
        )[0]
        trainer.learn(task)
        for name, value in method.net.state_dict().items():
            assert torch.equal(method.teacher.state_dict()[name], value), name
        if task.index == 0:
            learned = {name: value.clone() for name, value in method.net.state_dict().items()}
    assert all(torch.equal(teachers[1][name], value) for name, value in learned.items()), "through all of task 2"
    assert not any(parameter.requires_grad for parameter in method.teacher.parameters())


def test_warm_up_trains_new_outputs_and_nothing_else(
    stream: Stream, augment: Augment, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learner(warm_up=1.5)
    trainer = Trainer(method, RECIPE, 0)
    trainer.learn(stream[0])
    warm_up, train = method.phases(stream[1], RECIPE)
    assert (warm_up.name, warm_up.recipe.epochs, train.recipe.epochs) == ("warm-up", 3, 2)
    phases = method.phases
    monkeypatch.setattr(method, "phases", lambda task, recipe: phases(task, recipe)[:1])
    before = {name: value.clone() for name, value in method.net.state_dict().items()}
    state = method.generator.get_state()
    trainer.learn(stream[1])
    after = method.net.state_dict()
    body = {name for name in before if not name.startswith(("head.", "_extra"))}
    assert all(torch.equal(before[name], after[name]) for name in body)
    assert torch.equal(before["head.weight"], after["head.weight"][:2]), "nor the old classes' outputs"
    fresh = Head(method.net.head.in_features, 5, method.generator.set_state(state))
    assert not torch.isclose(fresh.weight[2:], after["head.weight"][2:]).all(1).any()


def test_no_warm_up_in_the_first_task_nor_where_none_is_wanted(stream: Stream, augment: Augment) -> None:
    assert [phase.name for phase in learner().phases(stream[0], RECIPE)] == ["train"]
    method = learner(warm_up=0)
    Trainer(method, RECIPE, 0).learn(stream[0])
    assert [phase.name for phase in method.phases(stream[1], RECIPE)] == ["train"]


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"alpha": -1}, "--alpha -1"), ({"temperature": 0}, "--temperature 0"), ({"warm_up": math.nan}, "--warm-up nan")],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        LwfSettings(**settings)  # type: ignore[arg-type]
