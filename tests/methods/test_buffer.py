"""The reservoir."""

import pytest
import torch
from torch import Generator, Tensor

from sparc.methods.parts.buffer import Buffer


def pictures(labels: Tensor) -> Tensor:
    """Each one's pixels say its label."""
    return labels.to(torch.uint8)[:, None, None, None].expand(-1, 1, 8, 8).contiguous()


def filled(size: int, count: int, batch: int, seed: int = 0) -> Buffer:
    buffer = Buffer(size, Generator().manual_seed(seed))
    for labels in torch.arange(count).split(batch):
        buffer.add(pictures(labels), labels)
    return buffer


def test_every_picture_has_the_same_chance() -> None:
    """Chi-square over 600 reservoirs of 10 out of 60, offered 16 at a time so that some batches fill and replace."""
    count, size, times = 60, 10, 600
    generator = Generator().manual_seed(0)
    found = torch.zeros(count)
    for _ in range(times):
        buffer = Buffer(size, generator)
        for labels in torch.arange(count).split(16):
            buffer.add(pictures(labels), labels)
        assert len(buffer.labels.unique()) == size
        found[buffer.labels] += 1
    expected = times * size / count
    # Ten are drawn without putting back, so the counts vary less than independent ones, by (60 − 10) / (60 − 1).
    statistic = float((found - expected).square().sum()) / expected * (count - 1) / (count - size)
    assert 31.7 < statistic < 98.3, "the 0.1 % and the 99.9 % point of chi-square with 59 degrees of freedom"


def test_it_fills_up_in_order_and_then_stays_full() -> None:
    buffer = filled(size=10, count=7, batch=3)
    assert buffer.labels.tolist() == list(range(7))
    assert len(filled(size=10, count=10, batch=4)) == 10
    buffer = filled(size=10, count=500, batch=32)
    assert (len(buffer), int(buffer.seen)) == (10, 500)


def test_pictures_labels_and_logits_stay_together() -> None:
    buffer = Buffer(8, Generator().manual_seed(0))
    for labels in torch.arange(100).split(9):
        buffer.add(pictures(labels), labels, labels[:, None].float() * torch.ones(3))
    images, labels, logits = buffer.sample(5)
    assert torch.equal(images, pictures(labels))
    assert torch.equal(logits, labels[:, None].float() * torch.ones(3))
    assert len(labels.unique()) == 5, "no picture twice"
    assert len(buffer.sample(50)[1]) == 8, "all that there are"


def test_logits_of_classes_that_were_not_there_are_missing() -> None:
    buffer = Buffer(4, Generator())
    buffer.add(pictures(torch.arange(2)), torch.arange(2), torch.tensor([[1.0], [2.0]]))
    buffer.add(pictures(torch.arange(2)), torch.arange(2), torch.tensor([[3.0, 4.0], [5.0, 6.0]]))
    assert torch.equal(buffer.logits.nan_to_num(-1), torch.tensor([[1.0, -1.0], [2.0, -1.0], [3.0, 4.0], [5.0, 6.0]]))


def test_an_empty_buffer_is_never_sampled() -> None:
    with pytest.raises(AssertionError, match="nothing has been stored yet"):
        Buffer(4, Generator()).sample(2)


def test_bytes_are_those_of_pictures_labels_and_logits() -> None:
    buffer = Buffer(10, Generator())
    assert buffer.bytes == 0
    labels = torch.arange(30)
    buffer.add(pictures(labels), labels, torch.zeros(30, 5))
    assert buffer.bytes == 10 * (64 + 8 + 5 * 4)


def test_an_empty_buffer_takes_on_a_full_one_and_goes_on_like_it() -> None:
    generators = Generator().manual_seed(1), Generator().manual_seed(1)
    full, empty = filled(size=10, count=30, batch=7), Buffer(10, generators[1])
    full.generator = generators[0]
    empty.load_state_dict(full.state_dict())
    for buffer in (full, empty):
        buffer.add(pictures(torch.arange(50, 70)), torch.arange(50, 70))
    assert torch.equal(full.labels, empty.labels)
    assert torch.equal(full.images, empty.images)
    assert full.seen == empty.seen == 50
