"""Weights of heads and statistics, where it is known who is worth what."""

import pytest
import torch
from torch import Generator, Tensor

from sparc.nn.roll import Portion, Roll, Weights
from sparc.nn.weighing import weigh

CLASSES, PICTURES = 5, 400


def said(labels: Tensor, sureness: float, seed: int) -> Tensor:
    """What somebody says who is right now and then, as log posteriors."""
    noise = torch.randn(len(labels), CLASSES, generator=Generator().manual_seed(seed))
    return (noise + sureness * torch.nn.functional.one_hot(labels, CLASSES)).log_softmax(1)


def drawn(pictures: int = PICTURES) -> Tensor:
    return torch.arange(pictures) % CLASSES


def test_who_knows_nothing_hardly_counts_and_who_knows_much_counts_more() -> None:
    labels = drawn()
    good, useless = said(labels, 4.0, seed=1), said(labels, 0.0, seed=2)
    by_statistics = weigh(useless, [useless.roll(7, 0)], good, labels)
    assert by_statistics.heads < 0.2
    assert by_statistics.memories < 0.2
    by_memories = weigh(useless, [good], useless.roll(7, 0), labels)
    assert by_memories.memories > 3
    assert weigh(good, [useless], useless.roll(7, 0), labels).heads > 3


def test_weights_make_answers_better() -> None:
    labels = drawn()
    head, memory, common = (said(labels, sureness, seed) for seed, sureness in enumerate((0.3, 0.5, 2.0)))
    weights = weigh(head, [memory], common, labels)

    def right(heads: float, memories: float) -> float:
        scores = heads * head + (memories * memory + common) / (memories + 1)
        return float((scores.argmax(1) == labels).float().mean())

    assert right(*weights[:2]) > right(*Weights()[:2]) + 0.05


def test_two_pictures_hardly_say_anything() -> None:
    labels = drawn(2)
    good, useless = said(labels, 4.0, seed=1), said(labels, 0.0, seed=2)
    weights = weigh(useless, [useless], good, labels)
    assert weights.heads > Weights().heads / 4
    assert weights.memories > Weights().memories / 4


@pytest.mark.parametrize("has_common", [True, False])
def test_with_one_kind_of_statistics_heads_alone_are_weighed(has_common: bool) -> None:
    labels = drawn()
    good, useless = said(labels, 4.0, seed=1), said(labels, 0.0, seed=2)
    weights = weigh(useless, [] if has_common else [good, good], good if has_common else None, labels)
    assert weights.heads < 0.2
    assert weights.memories == Weights().memories


def test_portions_have_their_geometric_mean() -> None:
    portions = [Portion((0,), 9, Weights(1.0, 0.5, 0.5)), Portion((1,), 9), Portion((2,), 9, Weights(4.0, 2.0, 0.5))]
    assert Roll(portions, statistics=True, common=True).weights == pytest.approx((2.0, 1.0, 0.5))
    assert Roll(portions[1:2], statistics=True, common=True).weights == Weights()
