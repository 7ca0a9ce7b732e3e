import math

import pytest
import torch
from torch import Generator, Tensor
from torch.nn.functional import relu

from sparc.nn import ResNet
from sparc.nn.k_winners import KWinnerBlock, KWinnerNet, KWinners


def layer_of(channels: int, share: float) -> KWinners:
    return KWinners(channels, share, Generator().manual_seed(0))


def net_of(kind: type[ResNet], share: float = 0.9) -> ResNet:
    """Of two layers, two blocks each."""
    net = kind(2, (8, 8), width=1 / 8, generator=Generator().manual_seed(0))
    net.add_classes(3)
    for layer in net.modules():
        if isinstance(layer, KWinners):
            layer.share = share
    return net


def k_winner_net(share: float = 0.9) -> KWinnerNet:
    net = net_of(KWinnerNet, share)
    assert isinstance(net, KWinnerNet)
    return net


def images(count: int = 6) -> Tensor:
    return torch.randn(count, 2, 8, 8, generator=Generator().manual_seed(1))


def test_winners_by_hand() -> None:
    """Each picture has its own, and it is the largest pixel of a channel that counts, not the mean."""
    first = torch.tensor([[1.0, 1.0], [3.0, -9.0], [2.0, 0.0], [0.5, 0.5]])
    second = torch.tensor([[4.0, 0.0], [1.0, 1.0], [1.5, 1.4], [9.0, 9.0]])
    x = torch.stack((first, second)).view(2, 4, 1, 2)
    out = layer_of(4, 0.5)(x).view(2, 4, 2)
    assert torch.equal(out[0], first * torch.tensor([0, 1, 1, 0])[:, None])
    assert torch.equal(out[1], second * torch.tensor([1, 0, 0, 1])[:, None])


@pytest.mark.parametrize(("channels", "share", "winners"), [(10, 0.9, 9), (8, 0.9, 7), (3, 0.1, 1), (3, 1.0, 3)])
def test_how_many_win(channels: int, share: float, winners: int) -> None:
    out = layer_of(channels, share)(torch.rand(5, channels, 2, 2, generator=Generator().manual_seed(0)) + 0.1)
    assert (out.amax((2, 3)) > 0).sum(1).tolist() == [winners] * 5


def test_a_channel_that_is_nowhere_above_0_does_not_win() -> None:
    layer = layer_of(3, 1.0)
    layer.counting = True
    out = layer(torch.tensor([-1.0, 0.0, 2.0]).view(1, 3, 1, 1))
    assert out.flatten().tolist() == [0, 0, 2]
    assert layer.counts.tolist() == [0, 0, 1]


def test_only_winners_take_a_gradient() -> None:
    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]]).view(2, 2, 1, 1).requires_grad_()
    layer_of(2, 0.5)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [0, 1, 1, 0]


def test_wins_are_counted_by_hand_and_only_where_that_is_asked_for() -> None:
    layer = layer_of(3, 0.67)
    x = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]).view(2, 3, 1, 1)
    layer(x)
    assert not layer.counts.any()
    layer.counting = True
    layer(x)
    layer(x[:1])
    assert layer.counts.tolist() == [1, 2, 3]
    layer.end_task()
    assert (layer.counts.tolist(), layer.earlier.tolist()) == ([0, 0, 0], [1, 2, 3])


def test_the_most_active_by_hand() -> None:
    layer = layer_of(5, 0.9)
    layer.counts.copy_(torch.tensor([3, 7, 7, 0, 9]))
    assert layer.most_active(0.4).tolist() == [False, True, False, False, True], "of two alike the first"
    assert layer.most_active(0.0).tolist() == [False, False, False, False, True], "one at the least"


def test_what_earlier_tasks_have_used_most_is_dropped_most() -> None:
    layer = layer_of(3, 1.0)
    layer.earlier.copy_(torch.tensor([0, 5, 10]))
    layer.drop = 1.0
    expected = torch.tensor([1, math.exp(-0.5), math.exp(-1)])
    torch.testing.assert_close(layer.kept(), expected)
    stayed = layer(torch.ones(3000, 3, 1, 1)).mean((0, 2, 3))
    assert stayed[0] == 1
    torch.testing.assert_close(stayed, expected, atol=0.04, rtol=0)


def test_a_dropped_channel_makes_room_for_another() -> None:
    layer = layer_of(2, 0.5)
    layer.earlier.copy_(torch.tensor([10, 0]))
    layer.drop = 50.0
    assert layer(torch.tensor([2.0, 1.0]).view(1, 2, 1, 1)).flatten().tolist() == [0, 1]


def test_nothing_is_dropped_where_nothing_was_used() -> None:
    layer = layer_of(2, 1.0)
    layer.drop = 50.0
    before = layer.generator.get_state()
    assert layer(torch.ones(1, 2, 1, 1)).flatten().tolist() == [1, 1]
    assert torch.equal(layer.generator.get_state(), before), "nor drawn"


def test_where_all_win_it_is_the_resnet_to_the_bit() -> None:
    plain, ours = net_of(ResNet), k_winner_net(share=1.0)
    for mode in (True, False):
        assert torch.equal(plain.train(mode)(images()), ours.train(mode)(images()))
    for net in (plain, ours):
        net.train()(images()).square().sum().backward()
    for theirs, own in zip(plain.parameters(), ours.parameters(), strict=True):
        assert theirs.grad is not None
        assert own.grad is not None
        assert torch.equal(theirs.grad, own.grad)


def test_winners_of_a_block_a_second_way() -> None:
    """Chosen before the ReLU, as TriRE has them: after the first convolution, and after the shortcut was added."""

    def only_winners(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        for picture in range(len(x)):
            largest = [float(channel.max()) for channel in x[picture]]
            for channel in sorted(range(len(largest)), key=lambda index: -largest[index])[: len(largest) // 2]:
                out[picture, channel] = x[picture, channel]
        return out

    net = k_winner_net(share=0.5).eval().requires_grad_(False)
    block = net.blocks[2]
    assert isinstance(block, KWinnerBlock)
    x = torch.randn(4, 8, 8, 8, generator=Generator().manual_seed(2))
    inner = relu(only_winners(block.first[1](block.first[0](x))))
    expected = relu(only_winners(block.second(inner) + block.shortcut(x[:, :, ::2, ::2])))
    assert (expected.amax((2, 3)) == 0).sum() >= 4 * 8, "half of the channels of each"
    torch.testing.assert_close(block(x), expected)


def test_tasks_contest_all_layers_but_the_first() -> None:
    net = k_winner_net()
    names = {parameter: name for name, parameter in net.named_parameters()}
    contested = [names[parameter] for parameter, _ in net.contested()]
    convolutions = [f"blocks.{block}.{which}" for block in (2, 3) for which in ("first", "second")]
    assert contested == [f"{each}.{rest}" for each in convolutions for rest in ("0.weight", "1.weight", "1.bias")]
    for parameter, winners in net.contested():
        assert len(parameter) == len(winners.counts)
    last = net.blocks[3]
    assert isinstance(last, KWinnerBlock)
    assert [winners for _, winners in net.contested()][-6:] == [last.first[2]] * 3 + [last.outer] * 3


def test_at_first_sight_all_layers_count_and_the_last_one_drops() -> None:
    net = k_winner_net()
    drops: list[float] = []
    for layer in net.layers():
        layer.register_forward_hook(lambda layer, *_: drops.append(layer.drop))
    net.first_sight(images(), drop=0.7)
    assert drops == [0, 0, 0, 0, 0.7, 0.7, 0.7, 0.7], "two layers of two blocks of two"
    assert all(layer.counts.any() for layer in net.layers())
    before = [layer.counts.clone() for layer in net.layers()]
    drops.clear()
    net(images())
    assert drops == [0] * 8
    assert all(torch.equal(layer.counts, old) for layer, old in zip(net.layers(), before, strict=True))
