"""Co²L: a contrast in which old pictures are no anchors, relations that are held, and a probe."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Batch
from sparc.methods.rehearsal.co2l import Co2L, Co2lSettings, class_weights, relation_distillation
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of

RECIPE = replace(Co2L.recipe, epochs=1, batch_size=24)


def learner(**settings: float) -> Co2L:
    small = Co2lSettings(width=1 / 8, buffer_size=8, projection=4, **settings)  # type: ignore[arg-type]
    return Co2L(small, 1, (8, 8), AUGMENT, seeded(0, "method"))


@pytest.fixture
def learned(stream: Stream) -> Callable[..., Co2L]:
    """After the first task, and at the beginning of the second."""

    def learn(**settings: float) -> Co2L:
        method = learner(**settings)
        Trainer(method, RECIPE, seed=0).learn(stream[0])
        method.begin_task(stream[1])
        return method

    return learn


def mixed(method: Co2L, stream: Stream) -> Batch:
    """Three new pictures of two classes, and two that were kept."""
    new = batch_of(stream[1], torch.tensor([0, 1, 30]))
    raw_images = torch.cat((new.raw_images, method.buffer.images[[0, -1]]))
    labels = torch.cat((new.labels, method.buffer.labels[[0, -1]]))
    return replace(new, images=AUGMENT.normalize(raw_images), labels=labels, raw_images=raw_images)


def by_hand(views: Tensor, labels: list[int], anchors: list[bool], temperature: float) -> float:
    """The contrast, one view after another."""
    unit = normalize(views.double(), dim=1)
    total = 0.0
    for one, label in enumerate(labels):
        if anchors[one]:
            others = {each: math.exp(float(unit[one] @ unit[each]) / temperature) for each in range(len(labels))}
            del others[one]
            alike = [each for each in others if labels[each] == label]
            total -= sum(math.log(others[each] / sum(others.values())) for each in alike) / len(alike)
    return total / len(labels)


def test_only_new_pictures_are_drawn_to_others_of_their_class(learned: Callable[..., Co2L], stream: Stream) -> None:
    method = learned(temperature=0.4, distillation_weight=0).eval()
    batch = mixed(method, stream)
    projected = method.project(method.net.features(batch.images)).detach().repeat(2, 1)
    labels = batch.labels.repeat(2).tolist()
    expected = by_hand(projected, labels, [label >= 2 for label in labels], 0.4)
    assert method.loss(batch).item() == pytest.approx(0.4 / 0.07 * expected, rel=1e-4)


def test_relations_are_held_to_what_they_were(learned: Callable[..., Co2L], stream: Stream) -> None:
    weight = 0.7
    plain, held = learned(distillation_weight=0).eval(), learned(distillation_weight=weight).eval()
    batch = mixed(held, stream)
    for method in (plain, held):
        with torch.no_grad():
            for parameter in method.net.parameters():
                parameter.mul_(1.1)
    now, before = (
        normalize(project(net.features(batch.images)).detach().repeat(2, 1).double(), dim=1)
        for net, project in ((held.net, held.project), (held.net_before, held.project_before))
    )
    rows = []
    for one in range(10):
        others = [each for each in range(10) if each != one]
        target = [math.exp(float(before[one] @ before[each]) / 0.01 - 100) for each in others]
        said = [math.exp(float(now[one] @ now[each]) / 0.2) for each in others]
        shares = zip(target, said, strict=True)
        rows.append(-sum(wanted / sum(target) * math.log(share / sum(said)) for wanted, share in shares))
    added = held.loss(batch) - plain.loss(batch)
    assert added.item() == pytest.approx(weight * sum(rows) / 10, rel=1e-3)


def test_relations_that_have_not_changed_ask_for_nothing() -> None:
    vectors = torch.randn(5, 3, generator=seeded(0, "vectors"))
    now = vectors.clone().requires_grad_()
    relation_distillation(now, vectors, 0.2, 0.2).backward()
    assert now.grad is not None
    torch.testing.assert_close(now.grad, torch.zeros(5, 3), atol=1e-6, rtol=0)


def test_the_first_task_has_nothing_to_hold_to(stream: Stream) -> None:
    losses = []
    for weight in (0, 5):
        method = learner(distillation_weight=weight)
        method.begin_task(stream[0])
        losses.append(method.loss(batch_of(stream[0], torch.arange(0, 48, 4))).item())
    assert losses[0] == losses[1] > 0


@pytest.mark.parametrize("task", [0, 1])
def test_the_probe_trains_a_fresh_head_and_nothing_else(
    task: int, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = learner()
    states: list[dict[str, Tensor]] = []
    renew, phases = method.renew_head, method.phases

    def watched() -> None:
        states.append({name: value.clone() for name, value in method.state_dict().items()})
        renew()

    monkeypatch.setattr(method, "renew_head", watched)
    trainer = Trainer(method, RECIPE, seed=0)
    for each in stream[:task]:
        trainer.learn(each)
    assert (len(method.buffer) > 0) == (task > 0)
    monkeypatch.setattr(method, "end_task", lambda task: None)
    trainer.learn(stream[task])
    assert [phase.name for phase in phases(stream[task], RECIPE)] == ["contrast", "probe"]
    after = method.state_dict()
    changed = {name for name, value in states[-1].items() if not torch.equal(value, after[name])}
    assert changed == {"net.head.weight", "net.head.bias", "_extra_state"}, "and the generator, for the fresh head"


def test_the_contrast_leaves_the_head_alone(stream: Stream) -> None:
    method = learner()
    method.begin_task(stream[0])
    contrast, probe = method.phases(stream[0], RECIPE)
    assert contrast.parameters is not None
    assert probe.parameters is not None
    names = {id(value): name for name, value in method.named_parameters()}
    trained = [{names[id(value)] for value in phase.parameters or ()} for phase in (contrast, probe)]
    kept = {name for name in names.values() if "before" in name}
    assert trained[1] == {"net.head.weight", "net.head.bias"}
    assert trained[0] == set(names.values()) - trained[1] - kept


def test_classes_weigh_alike_in_the_probe(learned: Callable[..., Co2L], stream: Stream) -> None:
    """The same as the mean over classes of each one's mean loss, if all pictures are shown once."""
    method = learned()
    pictures = method.buffer.joined(stream[1].train)
    whole = replace(batch_of(stream[1], torch.arange(1)), images=AUGMENT.normalize(pictures.images))
    loss = method.probe_loss(replace(whole, labels=pictures.labels))
    shares = method.net(whole.images).log_softmax(1)[torch.arange(len(pictures)), pictures.labels]
    each = [-shares[pictures.labels == label].mean() for label in range(5)]
    assert len(set(torch.bincount(pictures.labels).tolist())) == 2, "few old ones, many new ones"
    torch.testing.assert_close(loss, torch.stack(each).mean())


def test_classes_of_which_nothing_is_left_play_no_part() -> None:
    weights = class_weights(torch.tensor([0, 0, 2, 2]), 4)
    assert weights[[0, 2]].tolist() == [1, 1]


def test_epochs_of_later_tasks_and_of_the_probe_are_a_fifth(learned: Callable[..., Co2L], stream: Stream) -> None:
    method = learner()
    epochs = {}
    for name, made, task in (("first", method, stream[0]), ("later", learned(), stream[1])):
        contrast, probe = (phase.recipe for phase in made.phases(task, Co2L.recipe))
        epochs[name] = (contrast.epochs, contrast.lr_warm_up, probe.epochs)
        assert (contrast.lr, contrast.schedule, contrast.weight_decay) == (0.5, "cosine", 1e-4)
        assert (probe.lr, probe.schedule, probe.weight_decay) == (1, "constant", 0)
        assert [probe.lr_at(epoch) for epoch in (59, 60, 75, 90)] == pytest.approx([1, 0.2, 0.04, 0.008])
    assert epochs == {"first": (500, 10, 100), "later": (100, 10, 100)}
    short, probe = (phase.recipe for phase in method.phases(stream[0], RECIPE))
    assert (short.epochs, short.lr_warm_up, probe.epochs) == (1, 0.1, 1), "whose rate also reaches its full height"


def test_pictures_are_kept_when_a_task_is_over_as_many_of_each_class(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, seed=0)
    shown: list[int] = []
    for task in stream:
        trainer.learn(task)
        shown.append(len(method.phases(task, RECIPE)[0].images()))  # type: ignore[misc]
        counts = torch.bincount(method.buffer.labels, minlength=task.classes.stop)
        assert counts.sum() == 8
        assert counts.max() - counts.min() <= 1
    assert shown == [48 + 8, 72 + 8, 24 + 8]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": 0}, "--temperature 0 must be a positive number"),
        ({"current_temperature": -1}, "--current-temperature -1"),
        ({"past_temperature": math.inf}, "--past-temperature inf"),
        ({"distillation_weight": math.nan}, "--distillation-weight nan"),
        ({"projection": 0}, "--projection 0"),
        ({"probe_lr": 0}, "--probe-lr 0"),
        ({"buffer_size": 1}, "--buffer-size 1 is too small"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Co2lSettings(**settings)  # type: ignore[arg-type]
