import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.parts.contrastive import supervised_contrastive
from sparc.methods.rehearsal import ocdnet
from sparc.methods.rehearsal.ocdnet import OCDNet, OcdNetSettings, answers, consistency, contrast, second_view
from sparc.nn import GrowingNet
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of


def learner(**settings: float) -> OCDNet:
    return OCDNet(OcdNetSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def test_the_teachers_share_of_the_label_weighs_its_error_by_hand() -> None:
    """It gives the labels 3/4 and 1/4; the mean squared errors are 2 and 8."""
    taught = torch.tensor([[math.log(3), 0.0], [math.log(3), 0.0]])
    logits = taught + torch.tensor([[2.0, 0.0], [0.0, 4.0]])
    assert consistency(logits, taught, torch.tensor([0, 1])).item() == pytest.approx((3 / 4 * 2 + 1 / 4 * 8) / 2)


def test_contrast_by_hand() -> None:
    """Anchors of two classes at right angles: the first finds two of its class among three, both at its own place."""
    anchors = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 5.0]])
    others = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    e = math.exp(1 / 0.5)
    alone, pair = -math.log(e / (e + 2)), -math.log(e / (2 * e + 1))
    found = contrast(anchors, others, torch.tensor([0, 0, 1]), 0.5)
    assert found.item() == pytest.approx((2 * pair + alone) / 3)


def test_contrast_is_for_the_nets_features_not_the_teachers() -> None:
    """Which of both is to be found matters: rows are the teacher's, and shares are taken over the net's."""
    anchors, others = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    labels = torch.tensor([0, 1])
    assert contrast(anchors, others, labels, 1.0).item() == pytest.approx(math.log(1 + math.e) - 0.5)
    assert contrast(others, anchors, labels, 1.0).item() == pytest.approx(math.log(2))


def test_turns_of_the_second_view_are_what_they_are_said_to_be() -> None:
    """A corner that is bright in every part of the picture goes to the next one with each quarter."""
    image = torch.zeros(1, 1, 12, 12)
    image[..., :6, :6] = 1
    view, turns = second_view(image.repeat(9, 1, 1, 1), seeded(0, "views"))
    assert sorted(turns.tolist()) == [0, 0, 0, 1, 1, 2, 2, 3, 3], "as often each as can be"
    corners = view[:, 0, [0, -1, -1, 0], [0, 0, -1, -1]]
    assert corners.argmax(1).tolist() == turns.tolist()


def test_the_second_view_is_two_thirds_of_the_picture() -> None:
    """Of a slope from left to right, whose steps are stretched by the square root of 3/2."""
    slope = torch.arange(30.0).expand(200, 1, 30, 30)
    view, turns = second_view(slope, seeded(0, "views"))
    upright = view[turns == 0][:, 0]
    inner = upright[:, :, 2:-2]  # at its edges the slope may end
    steps = inner[..., 1:] - inner[..., :-1]
    torch.testing.assert_close(steps, torch.full_like(steps, (2 / 3) ** 0.5), atol=1e-3, rtol=0)
    middles = upright.mean((1, 2))
    furthest = (1 - (2 / 3) ** 0.5) * 15
    assert (middles - 14.5).abs().max() < furthest + 0.1
    assert middles.max() - middles.min() > furthest, "at random places"


def test_the_terms_of_the_loss(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {
        "replay_weight": 0.3,
        "consistency_weight": 0.5,
        "distillation_weight": 0.7,
        "contrast_weight": 1.1,
        "rotation_weight": 1.3,
        "temperature": 0.2,
    }
    method = learner(replay_batch=6, **weights)
    method.begin_task(stream[0])
    with torch.no_grad():
        for parameter in method.teacher.parameters():
            parameter *= 1.1
    method.buffer.add(stream[0].train.images[16:32], stream[0].train.labels[16:32])
    method.eval()  # so that every answer can be asked for again
    shown: list[tuple[GrowingNet, Tensor]] = []
    monkeypatch.setattr(ocdnet, "answers", lambda net, images: shown.append((net, images)) or answers(net, images))
    batch = batch_of(stream[0], torch.tensor([0, 1, 40, 41]))
    loss = method.loss(batch)
    (_, new), (first, old), (second, seen), (_, view) = shown
    assert (first, second) == (method.net, method.teacher.net)
    assert torch.equal(old, seen), "the teacher sees the same"
    kept = AUGMENT.normalize(stream[0].train.images[16:32])
    labels = stream[0].train.labels[16:32][[int((kept == image).all((1, 2, 3)).nonzero()) for image in old]]
    logits, _, projected = answers(method.net, new)
    old_logits, _, old_projected = answers(method.net, old)
    taught, _, taught_projected = answers(method.teacher.net, old)
    _, said, other = answers(method.net, view)
    both = torch.cat((batch.labels, labels))
    turns = turns_of(view, torch.cat((new, old)))
    expected = (
        cross_entropy(logits, batch.labels)
        + 0.3 * cross_entropy(old_logits, labels)
        + 0.5 * consistency(old_logits, taught, labels)
        + 0.7 * contrast(taught_projected, old_projected, labels, 0.2)
        + 1.1 * supervised_contrastive(torch.cat((projected, old_projected, other)), both.repeat(2), 0.2)
        + 1.3 * cross_entropy(said, turns)
    )
    torch.testing.assert_close(loss, expected)


def turns_of(view: Tensor, images: Tensor) -> Tensor:
    """By how many quarters each has to be turned back so as to be most like its picture."""
    flat = normalize(images.flatten(1) - images.flatten(1).mean(1, keepdim=True), dim=1)
    back = torch.stack([view.rot90(-turns, (2, 3)).flatten(1) for turns in range(4)], 1)
    back = normalize(back - back.mean(2, keepdim=True), dim=2)
    return (back * flat[:, None]).sum(2).argmax(1)


def test_before_there_is_anything_to_replay(stream: Stream) -> None:
    method = learner().train()
    method.begin_task(stream[0])
    assert method.loss(batch_of(stream[0], torch.arange(8))).isfinite()
    tracked = method.teacher.net.state_dict()["stem.1.num_batches_tracked"]
    assert tracked == 0
    method.loss(batch_of(stream[0], torch.arange(8)))
    assert method.teacher.net.state_dict()["stem.1.num_batches_tracked"] == 1, "statistics of its own"


def test_the_teacher_answers_and_takes_no_gradient(stream: Stream) -> None:
    method = learner(rate=0.5)
    Trainer(method, replace(OCDNet.recipe, epochs=1, batch_size=16), seed=0).learn(stream[0])
    images = AUGMENT.normalize(stream.test(0).images)
    method.eval()
    assert torch.equal(method.logits(images), method.teacher(images)[:, :2])
    assert not torch.allclose(method.logits(images), method.net(images)[:, :2])
    assert all(name.startswith("net.") for name, value in method.named_parameters() if value.requires_grad)
    own, other = method.teacher.net.state_dict(), method.net.state_dict()
    assert own["invariance.1.weight"].shape == other["invariance.1.weight"].shape
    begun = learner(rate=0.5).net.state_dict()["invariance.1.weight"]
    assert not torch.equal(own["invariance.1.weight"], begun), "its other heads follow as well"


def test_the_bias_takes_no_part(stream: Stream) -> None:
    method = learner().eval()
    method.begin_task(stream[0])
    images = batch_of(stream[0], torch.arange(4)).images
    before = method.logits(images)
    with torch.no_grad():
        method.teacher.net.head.bias += 1
    assert torch.equal(method.logits(images), before)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"replay_weight": -1}, "--replay-weight -1"),
        ({"consistency_weight": -1}, "--consistency-weight -1"),
        ({"distillation_weight": math.inf}, "--distillation-weight inf"),
        ({"contrast_weight": -1}, "--contrast-weight -1"),
        ({"rotation_weight": -1}, "--rotation-weight -1"),
        ({"temperature": 0}, "--temperature 0"),
        ({"rate": 2}, "--rate 2"),
        ({"alpha": math.nan}, "--alpha nan"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        OcdNetSettings(**settings)  # type: ignore[arg-type]
