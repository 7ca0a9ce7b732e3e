"""The paper's equations 1 to 3 against numbers worked out by hand."""

import torch
from torch import Tensor, nn

from sparc.nn.separable import SeparableConv

NONE = torch.empty(0, 2, 1, 1)


def layer(own: int, shared: int, stride: int = 1) -> SeparableConv:
    conv = SeparableConv(2, own, shared, stride, torch.Generator().manual_seed(0))
    conv.norm = nn.Identity()  # type: ignore[assignment]
    return conv


def set_weights(conv: SeparableConv, depthwise: Tensor, pointwise: list[list[float]]) -> None:
    with torch.no_grad():
        conv.depthwise.copy_(depthwise)
        conv.pointwise.copy_(torch.tensor(pointwise)[:, :, None, None])


def two_maps() -> Tensor:
    """Channel 0 counts 1 to 9, channel 1 is all ones."""
    return torch.stack((torch.arange(1.0, 10.0).reshape(3, 3), torch.ones(3, 3)))[None]


def test_depthwise_filters_each_channel_by_itself() -> None:
    conv = layer(own=2, shared=0)
    kernels = torch.zeros(2, 1, 3, 3)
    kernels[0, 0, 1] = torch.tensor([1.0, 0.0, 2.0])  # left neighbour + twice the right one
    kernels[1] = 1.0  # sum over the 3 × 3 neighbourhood
    set_weights(conv, kernels, [[1.0, 0.0], [0.0, 1.0]])
    out = conv(two_maps(), NONE)[0]
    assert out[0].tolist() == [[4.0, 7.0, 2.0], [10.0, 16.0, 5.0], [16.0, 25.0, 8.0]]
    assert out[1].tolist() == [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]


def test_pointwise_halves_belong_to_task_then_semantic_memory() -> None:
    conv = layer(own=1, shared=1)
    kernels = torch.zeros(2, 1, 3, 3)
    kernels[:, 0, 1, 1] = 1.0  # leave the maps as they are
    set_weights(conv, kernels, [[2.0, 10.0]])
    semantic = torch.tensor([[-1.0, 0.5]])[:, :, None, None]
    out = conv(two_maps(), semantic)[0]
    assert out[0].tolist() == [[12.0, 14.0, 16.0], [18.0, 20.0, 22.0], [24.0, 26.0, 28.0]]
    assert out[1].tolist() == [[-0.5, -1.5, -2.5], [-3.5, -4.5, -5.5], [-6.5, -7.5, -8.5]]


def test_stride_takes_every_other_place() -> None:
    conv = layer(own=1, shared=0, stride=2)
    kernels = torch.zeros(2, 1, 3, 3)
    kernels[:, 0, 1, 1] = 1.0
    set_weights(conv, kernels, [[1.0, 0.0]])
    assert conv(two_maps(), NONE)[0, 0].tolist() == [[1.0, 3.0], [7.0, 9.0]]


def test_initial_scale_is_that_of_the_whole_layer() -> None:
    conv = SeparableConv(256, 512, 512, 1, torch.Generator().manual_seed(0))
    assert abs(conv.pointwise.std().item() - (2 / 1024) ** 0.5) < 1e-3
    assert abs(conv.depthwise.std().item() - (1 / 9) ** 0.5) < 0.02
