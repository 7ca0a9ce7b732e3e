import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.rehearsal import tamil
from sparc.methods.rehearsal.tamil import TAMiL, TamilSettings, best_gate, discrepancy, gates_of, routed
from sparc.nn import GrowingNet
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of


def learner(**settings: float) -> TAMiL:
    return TAMiL(TamilSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def after_two_tasks(stream: Stream, **settings: float) -> TAMiL:
    """Whose moving average is not where the net is."""
    method = learner(**settings)
    for task in stream[:2]:
        method.begin_task(task)
    method.set_trainable()
    with torch.no_grad():
        for parameter in method.average.parameters():
            parameter *= 1.1
    return method


def test_the_gate_with_the_smallest_reconstruction_error_by_hand() -> None:
    features = torch.tensor([[1.0, 0.0], [0.2, 0.9]])
    gates = torch.tensor([[0.9, 0.5], [0.5, 0.3]])  # errors .13 and .17, then .325 and .225
    assert best_gate(features, gates.expand(2, 2, 2)).tolist() == [0, 1]


def test_discrepancy_by_hand() -> None:
    """The last gate's shares are (3/4, 1/4); those of two older ones (1/2, 1/2) and (1/4, 3/4)."""
    gates = torch.tensor([[[0.0, 0.0], [0.0, math.log(3)], [math.log(3), 0.0]]], requires_grad=True)
    found = discrepancy(gates)
    assert found.item() == pytest.approx(1 / 2 + 1)
    found.backward()
    assert gates.grad is not None
    assert not gates.grad[:, :-1].any(), "older ones stay where they are"
    # Each of the distances is twice the last's first share, but for a constant, and that has slope 3/4 · 1/4.
    torch.testing.assert_close(gates.grad[0, -1], torch.tensor([2 * 2 * 3 / 16, -2 * 2 * 3 / 16]))


def test_discrepancy_is_the_mean_of_a_batch_and_none_with_one_gate() -> None:
    pair = torch.tensor([[[0.0, 0.0], [math.log(3), 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert discrepancy(pair).item() == pytest.approx(1 / 4)
    assert discrepancy(pair[:, :1]).item() == 0


@torch.no_grad()
def test_logits_are_the_heads_of_gated_features_a_gate_for_each_picture(stream: Stream) -> None:
    method = after_two_tasks(stream).eval()
    images = batch_of(stream[0], torch.arange(48)).images
    features = method.net.features(images)
    # Each gate gives back one picture of another class, whatever it is shown.
    for gate, feature in zip(gates_of(method.net), features[[0, 30]], strict=True):
        gate.get_parameter("2.weight").zero_()
        gate.get_parameter("2.bias").copy_(feature.logit(eps=0.01))
    chosen, logits = [], []
    for feature in features:
        outputs = [gate(feature) for gate in gates_of(method.net)]
        errors = [float((output - feature).square().sum()) for output in outputs]
        chosen.append(errors.index(min(errors)))
        logits.append(method.net.head(feature * outputs[chosen[-1]])[:5])
    torch.testing.assert_close(method.logits(images), torch.stack(logits))
    assert 5 < sum(chosen) < 43, "in one batch some go through either"


def test_a_gate_is_an_auto_encoder_by_hand(stream: Stream) -> None:
    method = learner(code=3)
    method.begin_task(stream[0])
    (gate,) = gates_of(method.net)
    values = gate.state_dict()
    features = torch.rand(2, method.net.head.in_features, generator=seeded(0, "features"))
    code = (features @ values["0.weight"].T + values["0.bias"]).clamp_min(0)
    assert code.shape == (2, 3)
    expected = 1 / (1 + (-(code @ values["2.weight"].T + values["2.bias"])).exp())
    torch.testing.assert_close(gate(features), expected)


def test_the_terms_of_the_loss_and_the_average_is_told_the_task(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = after_two_tasks(stream, beta=0.3, reg_weight=0.7, pairwise_weight=1.1, replay_batch=8)
    method.eval()
    pictures = [stream[0].train, stream[1].train]
    images = torch.cat([part.images[20:28] for part in pictures])
    labels = torch.cat([part.labels[20:28] for part in pictures])
    method.buffer.add(images, labels)
    shown: list[tuple[GrowingNet, Tensor, Tensor | None]] = []
    monkeypatch.setattr(tamil, "routed", lambda net, *rest: shown.append((net, *rest, None)[:3]) or routed(net, *rest))
    batch = batch_of(stream[1], torch.tensor([0, 1, 40, 41]))
    loss = method.loss(batch)
    (first, drawn, gate), (second, same, tasks), (third, again, other_gate) = shown
    assert (first, second, third) == (method.net, method.average.net, method.net)
    assert gate is None, "the net is not told"
    assert other_gate is None
    assert torch.equal(drawn, same)
    assert not torch.equal(drawn, again), "two draws"
    kept = AUGMENT.normalize(images)
    rows = [[int((kept == image).all((1, 2, 3)).nonzero()) for image in part] for part in (drawn, again)]
    expected_tasks = (labels[rows[0]] >= 2).long()
    assert torch.equal(tasks, expected_tasks)
    assert set(tasks.tolist()) == {0, 1}

    features = method.net.features(batch.images)
    gates = gates_of(method.net)(features)
    expected = cross_entropy(method.net.head(features * gates[:, 1]), batch.labels) - 1.1 * discrepancy(gates)
    remembered = []
    for image, task in zip(drawn, tasks, strict=True):
        feature = method.average.net.features(image[None])
        remembered.append(method.average.net.head(feature * gates_of(method.average.net)[task](feature))[0])
    expected = expected + 0.7 * mse_loss(routed(method.net, drawn), torch.stack(remembered))
    expected = expected + 0.3 * cross_entropy(routed(method.net, again), labels[rows[1]])
    torch.testing.assert_close(loss, expected)


def test_the_average_begins_each_gate_where_it_is_and_then_follows(stream: Stream) -> None:
    method = learner(rate=1.0, alpha=0.9)
    trainer = Trainer(method, replace(TAMiL.recipe, epochs=1, batch_size=16), seed=0)
    trainer.learn(stream[0])
    own, other = (gates_of(net).state_dict()["0.0.weight"] for net in (method.average.net, method.net))
    assert not torch.equal(own, other)
    method.begin_task(stream[1])
    method.set_trainable()
    own, other = (gates_of(net).state_dict()["1.0.weight"] for net in (method.average.net, method.net))
    assert torch.equal(own, other)
    assert all(name.startswith("net.") for name, value in method.named_parameters() if value.requires_grad)
    assert method.average.net.classes == method.net.classes


def test_the_net_answers(stream: Stream) -> None:
    method = after_two_tasks(stream).eval()
    images = batch_of(stream[0], torch.arange(8)).images
    assert torch.equal(method.logits(images), routed(method.net, images)[:, :5])
    assert not torch.allclose(method.logits(images), routed(method.average.net, images)[:, :5])


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"code": 0}, "--code 0"),
        ({"beta": -1}, "--beta -1"),
        ({"pairwise_weight": -1}, "--pairwise-weight -1"),
        ({"reg_weight": math.inf}, "--reg-weight inf"),
        ({"rate": -0.1}, "--rate -0.1"),
        ({"alpha": math.nan}, "--alpha nan"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        TamilSettings(**settings)  # type: ignore[arg-type]
