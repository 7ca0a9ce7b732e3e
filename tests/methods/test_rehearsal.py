"""ER, DER++ and ER-ACE: what each of them makes of the buffer."""

import math
from dataclasses import replace
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods import Batch
from sparc.methods.parts.rehearsal import Rehearsal, RehearsalSettings
from sparc.methods.rehearsal.derpp import DERpp, DerppSettings, squared_error
from sparc.methods.rehearsal.er import ER
from sparc.methods.rehearsal.er_ace import ERACE, ErAceSettings, only
from sparc.train import seeded
from tests.methods.contract import batch_of

AUGMENT = Augment((0.0,), (1 / 255,))


class Recording(nn.Module):
    """In place of a net: its logits are the first pixels, and what it was shown is written down."""

    classes = 5

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        self.shown.append(images)
        return images.flatten(1)[:, :5] / 100


M = TypeVar("M", bound=Rehearsal)


def learner(kind: type[M], settings: RehearsalSettings) -> tuple[M, Recording]:
    method = kind(replace(settings, width=1 / 16), 1, (8, 8), AUGMENT, seeded(0, "method"))
    method.net = net = Recording()  # type: ignore[assignment]
    return method, net


def batch(seed: int, labels: list[int], classes: range = range(2)) -> Batch:
    """Of the first task, if these are its classes, or of the second."""
    raw_images = torch.randint(256, (len(labels), 1, 8, 8), dtype=torch.uint8, generator=seeded(seed, "pictures"))
    pictures = ImageSet(raw_images, torch.tensor(labels), tuple("abcde"))
    task = Task(int(classes.start > 0), classes, pictures, validation=pictures.take(torch.arange(0)))
    return batch_of(task, torch.arange(len(labels)), AUGMENT)


def said(images: Tensor) -> Tensor:
    return images.flatten(1)[:, :5] / 100


def test_er_shows_new_and_old_as_one_batch() -> None:
    method, net = learner(ER, RehearsalSettings(buffer_size=4, replay_batch=3))
    first, second = batch(0, [0, 1, 0, 1]), batch(1, [2, 3, 2], range(2, 5))
    assert method.loss(first) == cross_entropy(said(first.images), first.labels), "nothing to replay yet"
    loss = method.loss(second)
    (shown,) = net.shown[1:]
    assert torch.equal(shown[:3], second.images)
    replayed = [int((first.images == image).all((1, 2, 3)).nonzero()) for image in shown[3:]]
    assert len(set(replayed)) == 3, "three of the first batch"
    labels = torch.cat((second.labels, first.labels[replayed]))
    torch.testing.assert_close(loss, cross_entropy(said(shown), labels))


def test_replayed_pictures_are_augmented_again() -> None:
    method, net = learner(ER, RehearsalSettings(buffer_size=40, replay_batch=40))
    method.augment = Augment((0.0,), (1 / 255,), padding=2, flip=True)
    first = batch(0, [0] * 40)
    method.loss(first)
    method.loss(batch(1, [1, 1]))
    old = net.shown[1][2:]
    same = (old[:, None] == first.images[None]).all((2, 3, 4)).any(1)
    assert int(same.sum()) < 10, "all but the few that no crop and no flip has touched"


def test_the_terms_of_derpp() -> None:
    """Batch, logits on one draw, labels on another: weights 1, α and β, through the net one after another."""
    method, net = learner(DERpp, DerppSettings(buffer_size=8, replay_batch=3, alpha=0.3, beta=0.7))
    first, second = batch(0, [0, 1] * 4), batch(1, [2, 3, 2], range(2, 5))
    method.loss(first)
    method.buffer.logits += 0.5  # as if the net had spoken otherwise then
    loss = method.loss(second)
    shown = net.shown[1:]
    assert [len(images) for images in shown] == [3, 3, 3]
    assert torch.equal(shown[0], second.images)
    assert not torch.equal(shown[1], shown[2]), "two draws"
    indices = [int((first.images == image).all((1, 2, 3)).nonzero()) for image in shown[2]]
    expected = cross_entropy(said(second.images), second.labels) + 0.3 * 0.25
    expected = expected + 0.7 * cross_entropy(said(shown[2]), first.labels[indices])
    torch.testing.assert_close(loss, expected)


def test_derpp_stores_what_the_net_said_of_the_batch() -> None:
    method, _ = learner(DERpp, DerppSettings(buffer_size=4))
    first = batch(0, [0, 1, 0, 1])
    method.loss(first)
    assert torch.equal(method.buffer.logits, said(first.images))
    assert not method.buffer.logits.requires_grad


def test_classes_unknown_when_a_picture_was_stored_are_left_out() -> None:
    logits = torch.tensor([[1.0, 2.0, 9.0, 9.0], [3.0, 4.0, 9.0, 9.0]], requires_grad=True)
    stored = torch.tensor([[1.0, math.nan], [0.0, 2.0]])
    error = squared_error(logits, stored)
    assert error.item() == pytest.approx((0 + 9 + 4) / (2 * 4))
    error.backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[0.0, 0.0, 0.0, 0.0], [6 / 8, 4 / 8, 0.0, 0.0]]))


def test_derpp_stores_what_it_thinks_of_classes_to_come(stream: Stream, augment: Augment) -> None:
    """Otherwise nothing would keep old pictures from being taken for new classes."""
    method = DERpp(DerppSettings(width=1 / 16, buffer_size=8), 1, (8, 8), augment, seeded(0, "method"))
    images = torch.zeros(2, 1, 8, 8)
    for number in (0, 1):
        method.begin_task(stream[number])
        assert method.logits(images).shape[1] == sum(stream.sizes[: number + 1]), "of classes seen"
        method.loss(batch_of(stream[number], torch.arange(4)))
        assert method.buffer.logits.shape[1] == sum(stream.sizes)
        assert not method.buffer.logits.isnan().any()


def test_derpp_grows_where_nobody_knows_what_will_come(stream: Stream) -> None:
    method = DERpp(DerppSettings(width=1 / 16), 1, (8, 8), AUGMENT, seeded(0, "method"))
    for number in (0, 1):
        method.begin_task(replace(stream[number], all_classes=None))
        assert method.net.classes == sum(stream.sizes[: number + 1])
    told = DERpp(DerppSettings(width=1 / 16), 1, (8, 8), AUGMENT, seeded(0, "method"))
    told.begin_task(stream[0])
    told.begin_task(replace(stream[1], all_classes=None))
    assert told.net.classes == sum(stream.sizes), "room that was made stays"


@pytest.mark.parametrize(
    ("settings", "alpha"), [({}, 0.1), ({"buffer_size": 500}, 0.2), ({"buffer_size": 500, "alpha": 0}, 0)]
)
def test_alpha_is_the_authors_for_the_buffer_unless_it_is_said(settings: dict[str, float], alpha: float) -> None:
    method = DERpp(DerppSettings(width=1 / 16, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]
    assert method.alpha == alpha


def test_er_ace_keeps_new_pictures_from_old_classes(stream: Stream) -> None:
    """The batch competes over its own classes only, replayed pictures over all."""
    method, net = learner(ERACE, ErAceSettings(buffer_size=4, replay_batch=3))
    first, second = batch(0, [0, 1, 0, 1]), batch(1, [2, 4, 2], range(2, 5))
    assert method.loss(first) == cross_entropy(said(first.images), first.labels), "the first task is learned plainly"
    loss = method.loss(second)
    _, shown, old = net.shown
    indices = [int((first.images == image).all((1, 2, 3)).nonzero()) for image in old]
    among_new = cross_entropy(said(shown)[:, [2, 4]], torch.tensor([0, 1, 0]))
    torch.testing.assert_close(loss, among_new + cross_entropy(said(old), first.labels[indices]))


def test_er_ace_lets_new_pictures_compete_with_classes_to_come() -> None:
    """As in the authors' code, whose head has room for all classes from the start."""
    method, net = learner(ERACE, ErAceSettings(buffer_size=4, replay_batch=3, rivals="unseen"))
    first = batch(0, [0, 1, 0, 1])
    method.loss(first)
    # Class 3 is of the task, but not in the batch; class 4 is to come.
    loss = method.loss(batch(1, [2, 2], range(2, 4)))
    shown, old = net.shown[1:]
    indices = [int((first.images == image).all((1, 2, 3)).nonzero()) for image in old]
    among = cross_entropy(said(shown)[:, [2, 4]], torch.tensor([0, 0]))
    torch.testing.assert_close(loss, among + cross_entropy(said(old), first.labels[indices]))


@pytest.mark.parametrize(("rivals", "outputs"), [("unseen", [6, 6, 6]), ("batch", [2, 5, 6])])
def test_er_ace_has_room_for_the_classes_that_compete(rivals: str, outputs: list[int], stream: Stream) -> None:
    settings = ErAceSettings(width=1 / 16, rivals=rivals)  # type: ignore[arg-type]
    method = ERACE(settings, 1, (8, 8), AUGMENT, seeded(0, "method"))
    for task, count in zip(stream, outputs, strict=True):
        method.begin_task(task)
        assert method.net.classes == count
        assert method.logits(torch.zeros(2, 1, 8, 8)).shape[1] == task.classes.stop, "of classes seen"


def test_er_ace_sends_old_classes_no_gradient() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    cross_entropy(only(logits, torch.tensor([1, 3])), torch.tensor([3])).backward()
    share = math.exp(2) / (math.exp(2) + math.exp(4))
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[0.0, share, 0.0, -share]]))


def test_rivals_that_are_not_known_are_refused() -> None:
    with pytest.raises(InputError, match="--rivals all is not known: choose batch, unseen"):
        ErAceSettings(rivals="all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"buffer_size": 0}, "--buffer-size 0 is too small"),
        ({"replay_batch": 1}, "--replay-batch 1 is too small"),
        ({"alpha": -1}, "--alpha -1 must be a number that is not negative"),
        ({"beta": math.nan}, "--beta nan"),
        ({"backbone": "vit"}, "--backbone vit is not known: choose resnet, separable"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        DerppSettings(**settings)  # type: ignore[arg-type]
