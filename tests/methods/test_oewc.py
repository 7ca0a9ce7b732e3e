import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.regularization.oewc import OewcSettings, OnlineEWC
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.03)


def learner(augment: Augment = AUGMENT, **settings: object) -> OnlineEWC:
    made = OewcSettings(width=1 / 8, **settings)  # type: ignore[arg-type]
    return OnlineEWC(made, len(augment.mean), (8, 8), augment, seeded(0, "method"))


@pytest.mark.parametrize("backbone", ["resnet", "separable"])
def test_fisher_is_that_of_one_backward_pass_a_picture(coloured: Stream, backbone: str) -> None:
    augment = Augment.fitted(coloured[0].train)
    method = learner(augment, backbone=backbone)
    Trainer(method, RECIPE, 0).learn(coloured[0])
    pictures = coloured[0].train.take(torch.arange(4, 24))  # 16 at once and a rest
    ours = method.fisher(pictures)

    sums = [torch.zeros_like(parameter) for parameter in method.net.parameters()]
    for image, label in zip(augment.normalize(pictures.images), pictures.labels, strict=True):
        method.net.zero_grad()
        said = method.net(image[None]).log_softmax(1)[0, label]
        said.backward()
        for total, parameter in zip(sums, method.net.parameters(), strict=True):
            assert parameter.grad is not None
            total += said.exp().item() * parameter.grad.square()
    for found, total in zip(ours, sums, strict=True):
        torch.testing.assert_close(found, total / 20, rtol=1e-4, atol=1e-10)
    assert any(bool(found.any()) for found in ours)


def test_the_fisher_information_of_a_bias_by_hand(stream: Stream, augment: Augment) -> None:
    """Of two classes, p of them the right one's: p (1 − p)² for both biases."""
    method = learner()
    method.begin_task(stream[0])
    picture = stream[0].train.take(torch.tensor([0]))
    found = method.fisher(picture)[-1]
    method.eval()
    share = method.net(augment.normalize(picture.images)).softmax(1)[0, picture.labels]
    torch.testing.assert_close(found, (share * (1 - share).square()).expand(2))


def test_the_penalty_by_hand(stream: Stream, augment: Augment) -> None:
    method = learner(lam=3.0)
    method.begin_task(stream[0])
    batch = batch_of(stream[0], torch.arange(8))
    images, labels = batch.images, batch.labels
    assert not method.has_learned
    parameters = list(method.net.parameters())
    method.consolidate([torch.full_like(parameter, 2.0) for parameter in parameters])
    method.begin_task(stream[1])
    with torch.no_grad():
        for parameter in method.net.parameters():
            parameter[:1] += 0.5
    moved = sum(parameter[0].numel() for parameter in method.net.parameters())
    assert method.penalty().item() == pytest.approx(2 * 0.25 * moved, rel=1e-5)
    method.eval()
    plain = torch.nn.functional.cross_entropy(method.net(images), labels)
    torch.testing.assert_close(method.loss(batch), plain + 3 * method.penalty())
    method.penalty().backward()
    weight = method.net.head.weight
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad[0], torch.full_like(weight[0], 2 * 2 * 0.5))
    assert not weight.grad[1:].any(), "neither what has not moved nor a new class"


def test_old_information_decays_and_new_classes_begin_with_none(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learner(gamma=0.5)
    for task, information in zip(stream, (1.0, 3.0, 0.0), strict=True):
        method.begin_task(task)
        found = [torch.full_like(parameter, information) for parameter in method.net.parameters()]
        monkeypatch.setattr(method, "fisher", lambda pictures, found=found: found)
        method.end_task(task)
    *_, bias = method.importance
    assert bias.tolist() == [0.25 + 1.5] * 2 + [1.5] * 3 + [0.0]
    anchors: list[Tensor] = list(method.anchor)
    assert all(torch.equal(a, parameter) for a, parameter in zip(anchors, method.net.parameters(), strict=True))


@pytest.mark.parametrize(("settings", "flag"), [({"lam": -1}, "--lam -1"), ({"gamma": 1.5}, "--gamma 1.5")])
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        OewcSettings(**settings)  # type: ignore[arg-type]
