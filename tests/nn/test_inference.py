import math

import pytest
import torch
from torch import Generator, Tensor, nn

import sparc.nn.inference
from sparc.errors import InputError
from sparc.nn.inference import InferenceNet
from sparc.nn.sparc import SparcNet


def learned(
    sizes: list[int],
    channels: int = 3,
    image_size: tuple[int, int] = (16, 16),
    width: float = 0.25,
    depth: int | None = None,
    shared: float = 0.5,
) -> SparcNet:
    """A net as training leaves it: statistics of real activations, scales and shortcuts that are not 1, κ = 5."""
    random = Generator().manual_seed(3)
    net = SparcNet(channels, image_size, width, depth, shared)
    views = pictures(16, channels, image_size)
    with torch.no_grad():
        for task, size in enumerate(sizes):
            memory = net.add_task(size)
            for name, value in memory.named_parameters():
                if "norm" in name or "shortcut" in name:
                    value.add_(torch.randn(value.shape, generator=random), alpha=0.3)
            for module in memory.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.momentum = None  # the mean over what was seen, not the start's 0 and 1
            net.train().task_logits(views, task)
            logits = net.eval().task_logits(views, task)
            memory.head.weight.mul_(5 / logits.abs().max())
            memory.freeze()
    return net


def pictures(count: int, channels: int, image_size: tuple[int, int]) -> Tensor:
    return torch.randn(count, channels, *image_size, generator=Generator().manual_seed(count))


@pytest.mark.parametrize(
    ("sizes", "channels", "image_size", "width", "depth", "shared"),
    [
        ([2], 1, (8, 8), 0.25, None, 0.5),
        ([5], 3, (32, 32), 0.5, None, 0.5),
        ([2, 3, 1], 3, (16, 16), 0.25, 1, 0.5),
        ([2, 7], 1, (16, 24), 0.25, 2, 0.0),
        ([4, 1, 4], 3, (33, 19), 0.25, 3, 0.25),
        ([1, 2], 3, (84, 84), 0.125, 4, 0.5),
        ([3] * 5, 3, (32, 32), 0.5, None, 0.25),
        (list(range(1, 21)), 3, (16, 16), 0.125, 4, 0.5),
    ],
)
@pytest.mark.parametrize("batch", [1, 5])
def test_same_logits_as_the_net(
    sizes: list[int],
    channels: int,
    image_size: tuple[int, int],
    width: float,
    depth: int | None,
    shared: float,
    batch: int,
) -> None:
    net = learned(sizes, channels, image_size, width, depth, shared)
    x = pictures(batch, channels, image_size)
    with torch.no_grad():
        expected = net(x)
    assert expected.abs().max() > 0.5
    logits = InferenceNet.of(net).forward(x)
    assert logits.shape == (batch, sum(sizes))
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("maps", [0.5, 1, 3, 4, 7, 1000])
def test_pieces_of_any_size_give_the_same(maps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    net = InferenceNet.of(learned([2, 3, 1, 2, 4]))
    x = pictures(11, 3, (16, 16))
    whole = net.forward(x)
    map_bytes = 4 * 16 * 16 * 16
    monkeypatch.setattr(sparc.nn.inference, "MAP_BYTES", int(maps * map_bytes))
    torch.testing.assert_close(net.forward(x), whole, atol=1e-5, rtol=0)


def test_no_activation_exceeds_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            out = function(*args, **(kwargs or {}))
            if isinstance(out, Tensor):
                seen.append(out.nbytes)
            return out

    net = InferenceNet.of(learned([2] * 12))
    x = pictures(64, 3, (16, 16))
    bound = 6 * 4 * 16 * 16 * 16
    monkeypatch.setattr(sparc.nn.inference, "MAP_BYTES", bound)
    for batch in (1, 2, 64):
        with Watch():
            net.forward(x[:batch])
    weights = max(math.prod(conv.pointwise.shape) for conv in net.convs) * 4
    assert bound / 2 < max(seen) <= max(bound, weights)


def test_it_is_a_copy_and_leaves_the_net_alone() -> None:
    net = learned([2, 3])
    before = copies(net)
    frozen = InferenceNet.of(net)
    x = pictures(3, 3, (16, 16))
    logits = frozen.forward(x)
    torch.testing.assert_close(copies(net), before, atol=0, rtol=0)
    with torch.no_grad():
        for value in net.state_dict().values():
            value.zero_()
    net.add_task(4)
    assert torch.equal(frozen.forward(x), logits)
    assert logits.abs().max() > 0.5


def test_answering_changes_nothing_even_where_a_map_is_a_single_place() -> None:
    net = InferenceNet.of(learned([2, 2], image_size=(8, 8), depth=4))
    x = pictures(1, 3, (8, 8))
    assert torch.equal(net.forward(x), net.forward(x))


def test_takes_no_gradient() -> None:
    assert not InferenceNet.of(learned([2])).forward(pictures(2, 3, (16, 16)).requires_grad_()).requires_grad


def test_the_input_is_left_as_it_was() -> None:
    x = pictures(3, 3, (16, 16))
    given = x.clone()
    InferenceNet.of(learned([2, 2])).forward(x)
    assert torch.equal(x, given)


def test_each_memory_can_be_had_by_itself() -> None:
    net = learned([2, 3], image_size=(16, 16), depth=2)
    _, second = InferenceNet.of(net).memories()
    assert [conv.stride for conv in second.convs] == [1, 1, 1, 1, 1, 2, 1, 1, 1]
    assert [None if weight is None else weight.shape for weight in second.shortcuts] == [
        None,
        None,
        (32, 1, 1, 1),
        None,
    ]
    assert torch.equal(second.convs[3].depthwise, list(net.memories()[1].separable())[3].depthwise)


def test_a_net_without_tasks_is_refused() -> None:
    with pytest.raises(InputError, match="no task"):
        InferenceNet.of(SparcNet())


def copies(net: SparcNet) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in net.state_dict().items()}
