import subprocess
import sys

import pytest
import torch
from torch.nn.functional import conv2d, relu

from sparc.errors import InputError
from sparc.nn import ResNet
from sparc.nn.resnet import ResidualBlock


def count(net: ResNet) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def test_the_fields_resnet18() -> None:
    net = ResNet()
    # 3×3 stem, 8 blocks, three 1×1 shortcuts, all with batch norm: 11.17 M without a head.
    assert count(net) == 11_168_832
    net.add_classes(100)
    assert count(net) == 11_168_832 + 100 * 513
    strides = [block.first[0].stride[0] for block in net.blocks]
    assert strides == [1, 1, 2, 1, 2, 1, 2, 1]


def test_known_classes_keep_their_logits_when_others_come() -> None:
    net = ResNet(channels=1, image_size=(8, 8), width=1 / 8)
    net.add_classes(3)
    net.eval()
    images = torch.rand(4, 1, 8, 8)
    before = net(images)
    net.add_classes(2)
    after = net(images)
    assert after.shape == (4, 5)
    torch.testing.assert_close(after[:, :3], before)


def test_a_fresh_net_takes_on_a_grown_one() -> None:
    net = ResNet(width=1 / 16)
    net.add_classes(2)
    net.add_classes(3)
    other = ResNet(width=1 / 16, generator=torch.Generator().manual_seed(9))
    other.load_state_dict(net.state_dict())
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(other.eval()(images), net.eval()(images))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="gives no filters"):
        ResNet(width=0)
    with pytest.raises(InputError, match="at least one class"):
        ResNet().add_classes(0)


NARROW = """
import torch
from sparc.nn import ResNet
from sparc.nn.resnet import ResidualBlock
net = ResNet(channels=1, image_size=(8, 8), width=1 / 16)
net.add_classes(3)
kept = []
for _ in range(30):
    net(torch.randn(75, 1, 8, 8)).sum().backward()
    kept = [torch.randn(size) for size in (1, 3, 9, 20, 36, 72, 288)] + kept[:500]
"""


def test_a_narrow_net_stays_within_its_memory() -> None:
    """A convolution of stride 2 over few channels writes beyond its memory in some builds of torch."""
    done = subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_shortcut_is_a_convolution_of_stride_2() -> None:
    block = ResidualBlock(8, 16, 2, torch.Generator().manual_seed(0)).eval()
    x = torch.randn(2, 8, 9, 9)
    inner = block.second(relu(block.first(x)))
    weight = block.shortcut[0].weight
    plain = relu(inner + block.shortcut[1](conv2d(x, weight, stride=2)))
    torch.testing.assert_close(block(x), plain)
