import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.rehearsal.cls_er import CLSER, ClsErSettings, surer
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of


def learner(**settings: float) -> CLSER:
    return CLSER(ClsErSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def test_each_picture_has_the_surer_average_by_hand() -> None:
    """Shares of the label, of (plastic, stable): (1/2, 3/4), (1/2, 1/4), and of a larger logit the smaller share."""
    plastic = torch.tensor([[0.0, 0.0], [0.0, 0.0], [9.0, 9.0]])
    stable = torch.tensor([[math.log(3), 0.0], [math.log(3), 0.0], [1.0, 0.0]])
    target = surer(plastic, stable, torch.tensor([0, 1, 0]))
    assert torch.equal(target, torch.stack((stable[0], plastic[1], stable[2])))


class Fixed(nn.Module):
    """In place of a net or an average: logits that depend on the first pixel, by a slope for each class."""

    def __init__(self, *slopes: float) -> None:
        super().__init__()
        self.slopes = torch.tensor(slopes)
        self.shown: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        self.shown.append(images)
        return images[:, 0, 0, 0, None] * self.slopes


def test_the_terms_of_the_loss(stream: Stream) -> None:
    method = learner(reg_weight=0.7, buffer_size=8, replay_batch=5)
    net, plastic, stable = Fixed(1.0, 2.0), Fixed(0.5, 1.0), Fixed(0.25, 3.0)
    method.net, method.plastic, method.stable = net, plastic, stable  # type: ignore[assignment]
    first = batch_of(stream[0], torch.arange(20, 28))
    torch.testing.assert_close(method.loss(first), cross_entropy(net(first.images), first.labels))
    assert not plastic.shown, "nothing to replay yet"
    second = batch_of(stream[0], torch.arange(2, 6))
    loss = method.loss(second)
    shown, (old,) = net.shown[-1], stable.shown
    assert torch.equal(shown, torch.cat((second.images, old))), "as one batch"
    assert torch.equal(net.shown[-2], old), "and what is replayed by itself"
    assert torch.equal(plastic.shown[0], old)
    indices = [int((first.images == image).all((1, 2, 3)).nonzero()) for image in old]
    labels = first.labels[indices]
    errors = []
    for image, label in zip(old, labels, strict=True):
        said = [answer(image[None])[0] for answer in (plastic, stable)]
        best = max(said, key=lambda logits: float(logits.softmax(0)[label]))
        errors += [(net(image[None])[0] - best).square()]
    expected = cross_entropy(net(shown), torch.cat((second.labels, labels)))
    torch.testing.assert_close(loss, expected + 0.7 * torch.cat(errors).mean())


def test_the_stable_average_answers_and_neither_takes_a_gradient(stream: Stream) -> None:
    method = learner(plastic_rate=1.0, stable_rate=0.5, alpha=0.9)
    Trainer(method, replace(CLSER.recipe, epochs=2, batch_size=16), seed=0).learn(stream[0])
    images = AUGMENT.normalize(stream.test(0).images)
    method.eval()
    answers = [method.net(images), method.plastic(images), method.stable(images)]
    assert torch.equal(method.logits(images), answers[2][:, :2]), "of the classes seen"
    assert not torch.allclose(answers[2], answers[0])
    assert not torch.allclose(answers[2], answers[1])
    assert all(name.startswith("net.") for name, value in method.named_parameters() if value.requires_grad)


def test_averages_keep_statistics_of_what_is_replayed(stream: Stream) -> None:
    method = learner().train()
    method.begin_task(stream[0])
    method.loss(batch_of(stream[0], torch.arange(8)))
    for average in (method.plastic, method.stable):
        assert average.net.state_dict()["stem.1.num_batches_tracked"] == 0
    method.loss(batch_of(stream[0], torch.arange(8)))
    for average in (method.plastic, method.stable):
        assert average.net.state_dict()["stem.1.num_batches_tracked"] == 1


def test_each_average_follows_at_its_own_rate(stream: Stream) -> None:
    method = learner(plastic_rate=1.0, stable_rate=0.0)
    begun = method.net.state_dict()["stem.0.weight"].clone()
    Trainer(method, replace(CLSER.recipe, epochs=1, batch_size=16), seed=0).learn(stream[0])
    assert torch.equal(method.stable.net.state_dict()["stem.0.weight"], begun)
    assert not torch.equal(method.plastic.net.state_dict()["stem.0.weight"], begun)
    assert method.stable.steps == method.plastic.steps == 3


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"reg_weight": -1}, "--reg-weight -1"),
        ({"plastic_rate": 1.5}, "--plastic-rate 1.5"),
        ({"stable_rate": -0.1}, "--stable-rate -0.1"),
        ({"alpha": math.nan}, "--alpha nan"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        ClsErSettings(**settings)  # type: ignore[arg-type]


def test_in_short_tasks_the_stable_average_comes_to_know_the_newest(stream: Stream) -> None:
    """A task has 24 steps, where the authors' have 15,625: an average at their rates would hardly have moved."""
    method = learner(buffer_size=50)
    trainer = Trainer(method, replace(CLSER.recipe, epochs=8, batch_size=16), seed=0)
    for task in stream[:2]:
        trainer.learn(task)
    newest = stream[1]
    said = method.eval().logits(AUGMENT.normalize(stream.test(1).images)).argmax(1)
    assert (said >= newest.classes.start).float().mean() > 0.5
