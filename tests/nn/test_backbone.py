import pytest
import torch
from torch import Generator

from sparc.nn import SeparableNet, new_backbone
from sparc.nn.resizable_buffers import TensorList


def test_the_papers_net_for_rivals() -> None:
    with torch.device("meta"):
        net = SeparableNet(width=2.5)
        net.add_classes(100)
    assert net.stem.pointwise.shape == (160, 3, 1, 1)
    assert [block.second.pointwise.shape[0] for block in net.blocks[::2]] == [160, 320, 640, 1280]
    count = sum(parameter.numel() for parameter in net.parameters())
    assert int(count / 1e4) == 785, "7.85 M, as the paper prints it"
    # By hand: point-wise, depth-wise, batch norms, shortcuts, head.
    pointwise = 3 * 160 + 4 * 160**2 + 7 * (320**2 + 640**2 + 1280**2) // 2
    depthwise = 9 * (3 + 4 * 160 + (160 + 3 * 320) + (320 + 3 * 640) + (640 + 3 * 1280))
    norms = 2 * (5 * 160 + 4 * (320 + 640 + 1280))
    assert count == pointwise + depthwise + norms + (320 + 640 + 1280) + 1281 * 100


@pytest.mark.parametrize("kind", ["resnet", "separable"])
def test_a_fresh_net_takes_on_a_grown_one(kind: str) -> None:
    net, other = (new_backbone(kind, 1, (8, 8), 1 / 8, None, Generator().manual_seed(seed)) for seed in (0, 1))  # type: ignore[arg-type]
    net.add_classes(2)
    net.add_classes(3)
    other.load_state_dict(net.state_dict())
    images = torch.rand(2, 1, 8, 8)
    assert other.eval()(images).shape == (2, 5)
    assert torch.equal(other(images), net.eval()(images))


def test_tensors_of_any_shape_are_put_back_into_an_empty_list() -> None:
    full, empty = TensorList(2), TensorList(2)
    full.set([torch.rand(2, 3), torch.arange(4, dtype=torch.uint8)])
    empty.load_state_dict(full.state_dict())
    for ours, theirs in zip(empty, full, strict=True):
        assert torch.equal(ours, theirs)
        assert ours.dtype == theirs.dtype
        assert ours.data_ptr() != theirs.data_ptr()
