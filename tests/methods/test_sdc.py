import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.prototypes.sdc import FAR, SDC, SdcSettings, drift
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, recipe


def learner(**settings: float) -> SDC:
    return SDC(SdcSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def test_drift_by_hand() -> None:
    """Two pictures, one on the mean and one 1 away from it, at σ 1: the second counts exp(−1/2) as much."""
    moved = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    found = drift(torch.tensor([[0.0], [1.0]], dtype=torch.float64), moved, sigma=1.0)
    near, far = 1 + FAR, math.exp(-0.5) + FAR
    assert found[0].tolist() == pytest.approx([near / (near + far), 2 * far / (near + far)])


def test_where_all_pictures_are_far_they_count_alike() -> None:
    moved = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    assert drift(torch.full((2, 1), 1e6, dtype=torch.float64), moved, sigma=0.3).item() == pytest.approx(2.0)


def test_old_means_follow_the_new_pictures(stream: Stream, augment: Augment) -> None:
    method = learner(sigma=0.5)
    trainer = Trainer(method, recipe(SDC), 0)
    trainer.learn(stream[0])
    before, teacher = method.means.means.clone(), method.teacher.state_dict()
    old = {name: value.clone() for name, value in teacher.items()}
    trainer.learn(stream[1])
    again = learner()
    again.teacher.load_state_dict(old)
    images = augment.normalize(stream[1].train.images)
    with torch.no_grad():
        was = normalize(again.teacher.eval().features(images).double(), dim=1)
        now = normalize(method.net.eval().features(images).double(), dim=1)
    assert not torch.allclose(was, now, atol=1e-3), "the net has moved"
    for label in range(2):
        weights = [math.exp(-float((row - before[label]).square().sum()) / (2 * 0.5**2)) + FAR for row in was]
        expected = sum(w * (b - a) for w, a, b in zip(weights, was, now, strict=True)) / sum(weights)
        torch.testing.assert_close(method.means.means[label] - before[label], expected, atol=1e-6, rtol=1e-4)
    for label in (2, 3, 4):
        expected = now[stream[1].train.labels == label].mean(0)
        torch.testing.assert_close(method.means.means[label], expected, atol=1e-6, rtol=1e-4)


def test_a_picture_is_of_the_class_whose_mean_is_nearest(stream: Stream, augment: Augment) -> None:
    method = learner()
    Trainer(method, recipe(SDC), 0).learn(stream[0])
    images = augment.normalize(stream.test(0).images)
    with torch.no_grad():
        points = normalize(method.eval().net.features(images).double(), dim=1)
        found = method.logits(images)
    expected = [[-float((point - mean).square().sum()) for mean in method.means.means] for point in points]
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-5, rtol=1e-4)


def test_new_classes_compete_among_themselves_and_old_answers_are_held(stream: Stream, augment: Augment) -> None:
    method = learner(lam=3.0, temperature=1.5)
    Trainer(method, recipe(SDC), 0).learn(stream[0])
    method.begin_task(stream[1])
    method.eval()
    with torch.no_grad():
        method.net.head.weight.add_(0.1)
    batch = batch_of(stream[1], torch.arange(9))
    logits, target = method.net(batch.images), method.teacher(batch.images)
    new = -logits[:, 2:].log_softmax(1)[torch.arange(9), batch.labels - 2].mean()
    held = -((target / 1.5).softmax(1) * (logits[:, :2] / 1.5).log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(method.loss(batch), new + 3 * held)


def test_later_tasks_are_shorter_in_smaller_steps(stream: Stream) -> None:
    method = learner()
    assert [phase.recipe for phase in method.phases(stream[0], SDC.recipe)] == [SDC.recipe]
    Trainer(method, recipe(SDC), 0).learn(stream[0])
    (later,) = method.phases(stream[1], SDC.recipe)
    assert (later.recipe.epochs, later.recipe.lr, later.recipe.milestones) == (100, 0.05, (0.45, 0.9))
    (steady,) = method.phases(stream[1], replace(SDC.recipe, milestones=()))
    assert steady.recipe.milestones == ()


@pytest.mark.parametrize(("name", "value"), [("sigma", 0), ("lam", -1), ("temperature", 0)])
def test_bad_settings_are_refused_by_their_flag(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"--{name} {value}"):
        SdcSettings(**{name: value})  # type: ignore[arg-type]
