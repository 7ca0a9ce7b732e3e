import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from sparc.methods.parts.bit_masks import BitMasks, pack, unpack

shapes = st.lists(st.integers(0, 5), max_size=4)
seeds = st.integers(0, 99)


def random_mask(shape: list[int], seed: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5


@given(shapes, seeds)
def test_what_is_packed_comes_out_as_it_was(shape: list[int], seed: int) -> None:
    mask = random_mask(shape, seed)
    packed = pack(mask)
    assert packed.numpy().tobytes() == np.packbits(mask.numpy(), bitorder="little").tobytes(), "a second way"
    assert torch.equal(unpack(packed, shape), mask)


@given(st.lists(seeds, min_size=1, max_size=4))
def test_sets_of_masks_come_back_from_a_state(seeds: list[int]) -> None:
    weights = [torch.zeros(3, 5), torch.zeros(7)]
    sets = [[random_mask(list(weight.shape), seed) for weight in weights] for seed in seeds]
    masks, loaded = BitMasks(2), BitMasks(2)
    for each in sets:
        masks.add(each)
    state = masks.state_dict()
    assert {name: (value.dtype, len(value)) for name, value in state.items() if value.ndim} == {
        f"{task}.{number}": (torch.uint8, size) for task in range(len(sets)) for number, size in ((0, 2), (1, 1))
    }
    loaded.load_state_dict(state)
    assert len(loaded) == len(sets)
    for task, each in enumerate(sets):
        assert all(map(torch.equal, loaded.of(task, weights), each))
    for number, mask in enumerate(loaded.any(weights)):
        assert torch.equal(mask, torch.stack([each[number] for each in sets]).any(0))


def test_masks_may_lie_in_memory_as_they_like() -> None:
    mask = random_mask([4, 3, 2, 2], 0)
    turned = mask.contiguous(memory_format=torch.channels_last)
    assert torch.equal(pack(turned), pack(mask))


def test_a_task_s_masks_can_be_replaced() -> None:
    masks, weight = BitMasks(1), nn.Parameter(torch.zeros(9))
    for seed in range(2):
        masks.add([random_mask([9], seed)])
    masks.replace(0, [random_mask([9], 2)])
    assert [masks.of(task, [weight])[0].tolist() for task in range(2)] == [
        random_mask([9], seed).tolist() for seed in (2, 1)
    ]


def test_no_masks_cover_nothing() -> None:
    assert not BitMasks(1).any([torch.zeros(3)])[0].any()


def test_a_mask_of_another_shape_is_noticed() -> None:
    with pytest.raises(AssertionError, match="another shape"):
        unpack(pack(random_mask([9], 0)), [8])
