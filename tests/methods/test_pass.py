import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.prototypes.pass_ import PASS, PassSettings, mean_deviation
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=1, batch_size=24, lr=0.005, optimizer="adam")


def learner(**settings: float) -> PASS:
    return PASS(PassSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def turned(images: Tensor) -> Tensor:
    return torch.stack([torch.rot90(image, turns, (1, 2)) for image in images for turns in range(4)])


def seen_by(method: PASS, stream: Stream, task: int) -> Tensor:
    return method.eval().net.features(AUGMENT.normalize(stream[task].train.images)).detach()


def test_the_first_task_is_learned_by_cross_entropy_of_turned_pictures(stream: Stream) -> None:
    method = learner(temperature=0.5)
    begin(method, stream[0])
    before = method.generator.get_state()
    batch = batch_of(stream[0], torch.arange(20, 29))
    labels = torch.tensor([4 * label + turns for label in batch.labels.tolist() for turns in range(4)])
    assert labels.unique().tolist() == list(range(8)), "all there are"
    expected = cross_entropy(method.net(turned(batch.images)) / 0.5, labels)
    torch.testing.assert_close(method.loss(batch), expected)
    assert torch.equal(method.generator.get_state(), before), "no prototype is drawn"


def test_the_loss_of_a_later_task_by_hand(stream: Stream) -> None:
    method = learner(temperature=0.5, prototype_weight=3, distillation_weight=0.7)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    batch = batch_of(stream[1], torch.arange(20, 29), recipe=replace(RECIPE, batch_size=7))
    images = turned(batch.images)
    before = method.eval().net.features(images).detach()
    with torch.no_grad():
        method.net.stem[0].weight.mul_(1.2)
    features = method.net.features(images)
    labels = torch.tensor([4 * label + turns for label in batch.labels.tolist() for turns in range(4)])
    learned = cross_entropy(method.net.head(features) / 0.5, labels)
    # One length for the whole batch, neither a sum nor a mean of the pictures' own.
    off = features.detach() - before
    moved = sum(float(row @ row) for row in off) ** 0.5
    generator = Generator()
    generator.set_state(method.generator.get_state())
    drawn = torch.randint(2, (7,), generator=generator)
    assert drawn.unique().tolist() == [0, 1]
    noise = torch.randn(7, features.shape[1], generator=generator)
    noisy = method.prototypes.means[drawn].float() + noise * float(method.radius)
    rehearsed = cross_entropy(method.net.head(noisy) / 0.5, 4 * drawn)
    torch.testing.assert_close(method.loss(batch), learned + 0.7 * moved + 3 * rehearsed)


def test_the_deviation_is_that_of_numpy_s_covariances() -> None:
    labels = torch.tensor([3] * 5 + [4] * 9)
    features = torch.randn(14, 6, generator=Generator().manual_seed(0)) * (labels[:, None] - 2)
    each = [np.trace(np.cov(features[labels == label].double().numpy().T)) / 6 for label in (3, 4)]
    assert mean_deviation(features, labels) == pytest.approx(math.sqrt(sum(each) / 2))


def test_a_single_picture_has_no_deviation() -> None:
    assert mean_deviation(torch.rand(1, 3), torch.tensor([0])) == 0


def test_prototypes_and_noise_are_of_pictures_as_they_are_and_stay(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    expected = torch.zeros(0, method.net.head.in_features)
    radii = []
    for task in stream:
        trainer.learn(task)
        features = seen_by(method, stream, task.index)
        own = [features[task.train.labels == label].mean(0) for label in task.classes]
        expected = torch.cat((expected, torch.stack(own)))
        torch.testing.assert_close(method.prototypes.means.float(), expected)
        radii.append(float(method.radius))
        if not task.index:
            assert radii[0] == pytest.approx(mean_deviation(features, task.train.labels))
    assert radii[0] > 0
    assert set(radii) == {radii[0]}, "of the first task, for ever"


def test_every_fourth_output_answers(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    for task in stream[:2]:
        trainer.learn(task)
    images = AUGMENT.normalize(stream.test(1).images)
    outputs = method.eval().net(images)
    assert outputs.shape[1] == 20
    assert torch.equal(method.logits(images), outputs[:, [0, 4, 8, 12, 16]])


def test_the_teacher_is_the_net_after_the_last_task(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    for task in stream[:2]:
        trainer.learn(task)
        for name, value in method.net.state_dict().items():
            assert torch.equal(method.teacher.state_dict()[name], value), name
    assert not any(parameter.requires_grad for parameter in method.teacher.parameters())


def test_the_rate_drops_after_45_and_90_of_101_epochs() -> None:
    rates = [PASS.recipe.lr_at(epoch) for epoch in (44, 45, 89, 90, 100)]
    assert rates == pytest.approx([1e-3, 1e-4, 1e-4, 1e-5, 1e-5])


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"temperature": 0}, "--temperature 0"),
        ({"prototype_weight": -1}, "--prototype-weight -1"),
        ({"distillation_weight": math.inf}, "--distillation-weight inf"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        PassSettings(**settings)  # type: ignore[arg-type]
