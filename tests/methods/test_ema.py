import pytest
import torch
from torch import Tensor

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.methods import Recipe
from sparc.methods.parts.ema import MovingAverage
from sparc.nn import GrowingNet, ResNet
from sparc.train import seeded


def new_net(seed: int, classes: int = 2) -> ResNet:
    net = ResNet(1, (8, 8), width=1 / 16, generator=seeded(seed, "net"))
    net.add_classes(classes)
    return net


def weights(net: GrowingNet) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_it_keeps_more_from_step_to_step_up_to_alpha() -> None:
    """By hand, of where it began (a) and where the net is (b): half of each, then a third more of b, then a tenth."""
    net = new_net(0)
    average = MovingAverage(new_net(1), net, rate=1.0, alpha=0.7)
    a = weights(net)
    assert torch.equal(weights(average.net), a), "it begins where the net is"
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 1
    b, generator = weights(net), seeded(0, "coin")
    expected = a
    for keep in (1 / 2, 2 / 3, 0.7, 0.7):
        average.follow(net, generator)
        expected = keep * expected + (1 - keep) * b
        torch.testing.assert_close(weights(average.net), expected)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_it_moves_after_a_share_of_the_steps(rate: float) -> None:
    net = new_net(0)
    average = MovingAverage(new_net(1), net, rate, alpha=0.999)
    moved, generator = 0, seeded(0, "coin")
    for _ in range(200):
        with torch.no_grad():
            net.head.bias += 1
        before = average.net.head.bias.clone()
        average.follow(net, generator)
        moved += not torch.equal(average.net.head.bias, before)
    assert abs(moved - 200 * rate) < 200 * 0.1 * (rate > 0) + 1
    assert average.steps == 200, "those without a move count as well"


def test_statistics_are_its_own_and_it_takes_no_gradient() -> None:
    net = new_net(0)
    average = MovingAverage(new_net(1), net, rate=1.0, alpha=0.999).train()
    images = torch.randn(4, 1, 8, 8, generator=seeded(0, "pictures"))
    net.train()(images)
    average.follow(net, seeded(0, "coin"))
    mean = average.net.state_dict()["stem.1.running_mean"]
    assert not mean.any(), "the net's do not come over"
    assert not average(images).requires_grad
    assert mean.any()
    assert not any(parameter.requires_grad for parameter in average.parameters())


def test_new_classes_start_where_they_are_in_the_net() -> None:
    net = new_net(0)
    average = MovingAverage(new_net(1), net, rate=1.0, alpha=0.999)
    with torch.no_grad():
        net.head.weight += 1
    old = average.net.head.weight.clone()
    net.add_classes(3)
    average.grow(net)
    assert torch.equal(average.net.head.weight, torch.cat((old, net.head.weight[2:])))
    assert not average.net.head.weight.requires_grad


def short(pictures: int) -> Task:
    images = ImageSet(torch.zeros(pictures, 1, 8, 8, dtype=torch.uint8), torch.zeros(pictures).long(), ("a",))
    return Task(0, range(1), images, images)


@pytest.mark.parametrize(
    ("pictures", "epochs", "alpha", "rate"),
    [
        (10_000, 50, 0.999, 0.1),  # as the authors have it
        (10_000, 200, 0.999, 0.1),  # an average that remembers for longer would be another method
        (10_000, 2, 0.975, 0.1),  # 626 steps: 25 times fewer, 25 times as much given up
        (287, 30, 0.942, 0.1),  # 270 steps of Seq-Digits
        (287, 3, 0.9, 0.579),  # 27 steps: at least 0.9 is kept, and it moves 5.79 times as often
        (287, 1, 0.826, 1.0),  # 9 steps, and no step is left out
    ],
)
def test_in_short_tasks_it_follows_as_much_of_a_task(pictures: int, epochs: int, alpha: float, rate: float) -> None:
    net = new_net(0)
    average = MovingAverage(new_net(1), net, rate=0.1)
    average.pace(short(pictures), Recipe(epochs=epochs, batch_size=32))
    moved, generator = 0, seeded(0, "coin")
    for _ in range(1000):
        with torch.no_grad():
            net.head.bias += 1
        before = average.net.head.bias.clone()
        average.follow(net, generator)
        moved += not torch.equal(average.net.head.bias, before)
    assert average.keep == pytest.approx(alpha)
    assert moved / 1000 == pytest.approx(rate, abs=0.05)


def test_an_alpha_that_was_given_stays() -> None:
    net = new_net(0)
    average = MovingAverage(new_net(1), net, rate=0.1, alpha=0.999)
    average.pace(short(32), Recipe(epochs=1, batch_size=32))
    average.steps.fill_(10**6)
    assert average.keep == 0.999
