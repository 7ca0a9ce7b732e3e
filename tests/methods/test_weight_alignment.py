import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.methods import Recipe
from sparc.methods.sparc.settings import SemanticSettings
from sparc.methods.sparc.weight_alignment import WeightAlignment
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT


def learner() -> WeightAlignment:
    return WeightAlignment(SemanticSettings(width=1 / 8), 1, (8, 8), AUGMENT, seeded(0, "method"))


def mean_norm(*weights: Tensor) -> float:
    rows = [row.square().sum().sqrt() for weight in weights for row in weight.detach()]
    return float(sum(rows)) / len(rows)


def test_a_new_heads_weights_are_brought_to_the_old_ones_mean_length(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, Recipe(epochs=2, batch_size=24, lr=5e-3, optimizer="adam"), 0)
    lengths = []
    for task in stream:
        trainer.learn(task)
        *old, new = (memory.head.weight for memory in method.net.memories())
        if old:
            assert mean_norm(new) == pytest.approx(mean_norm(*old), rel=1e-5)
        lengths.append(mean_norm(new))
    assert lengths[1:] == pytest.approx(lengths[:1] * 2, rel=1e-5), "so all are as long as the first one's"


def test_the_ratio_by_hand(stream: Stream) -> None:
    method = learner()
    for task in stream[:2]:
        method.begin_task(task)
    old, new = (memory.head for memory in method.net.memories())
    with torch.no_grad():
        for head, lengths in ((old, [1.0, 3.0]), (new, [4.0, 5.0, 6.0])):
            head.weight.zero_()
            head.weight[:, 0] = torch.tensor(lengths)
            head.bias.fill_(7.0)
    method.balance(new)
    # Means 2 and 5: everything times 2/5, biases as they were.
    torch.testing.assert_close(new.weight[:, 0], torch.tensor([1.6, 2.0, 2.4]))
    assert new.bias.tolist() == [7.0] * 3
    assert old.weight[:, 0].tolist() == [1.0, 3.0]


def test_the_first_head_stays_as_it_is(stream: Stream) -> None:
    method = learner()
    method.begin_task(stream[0])
    head = method.net.memories()[0].head
    before = head.weight.detach().clone()
    method.balance(head)
    assert torch.equal(head.weight, before)
