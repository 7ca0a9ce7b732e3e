"""The fast path against the same net written the usual way: equal but for rounding."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.plain import plain_copy
from sparc.nn.functions import pointwise, two_of_each
from sparc.nn.sparc import SparcNet

LAYOUTS = {
    "paper": {},
    "digits": {"channels": 1, "image_size": (8, 8), "width": 1 / 8},
    "odd channels": {"image_size": (9, 11), "width": 3 / 64, "depth": 3},
    "mostly own": {"image_size": (16, 16), "width": 1 / 4, "shared": 0.25},
    "isolated": {"image_size": (16, 16), "width": 1 / 4, "shared": 0.0},
}


def learning(layout: dict, later: bool, dtype: torch.dtype) -> SparcNet:
    net = SparcNet(**layout).to(dtype)
    net.add_task(5).to(dtype)
    net.semantic.requires_grad_(not later)
    return net


def batch(layout: dict, dtype: torch.dtype, count: int) -> tuple[Tensor, Tensor]:
    height, width = layout.get("image_size", (32, 32))
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(count, layout.get("channels", 3), height, width, dtype=dtype, generator=generator)
    return images, torch.arange(count) % 5


def gradients(module: nn.Module) -> dict[str, Tensor | None]:
    return {name: parameter.grad for name, parameter in module.named_parameters()}


@pytest.mark.parametrize("later", [False, True], ids=["first task", "later task"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_loss_gradients_and_statistics(layout, later):
    net = learning(layout, later, torch.float64)
    plain = plain_copy(net, 0)
    images, labels = batch(layout, torch.float64, 6)
    loss = cross_entropy(net.task_logits(images, 0), labels)
    loss.backward()
    expected = cross_entropy(plain(images), labels)
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)

    memory = net.memories()[0]
    torch.testing.assert_close(gradients(memory.head), gradients(plain.head))
    for mine, yours, bank in zip(memory.separable(), plain.separable(), net.semantic.filters, strict=True):
        torch.testing.assert_close(mine.depthwise.grad, yours.depthwise.weight.grad)
        torch.testing.assert_close(mine.pointwise.grad, yours.own.weight.grad)
        assert (bank.grad is None) == later
        if yours.semantic is not None and not later:
            torch.testing.assert_close(bank.grad, yours.semantic.weight.grad)
        torch.testing.assert_close(gradients(mine.norm), gradients(yours.norm))
        torch.testing.assert_close(mine.norm.state_dict(), yours.norm.state_dict())
    for mine, yours in zip(memory.blocks, plain.blocks, strict=True):
        torch.testing.assert_close(gradients(mine.shortcut), gradients(yours.shortcut))


@pytest.mark.parametrize("later", [False, True], ids=["first task", "later task"])
def test_losses_of_some_steps(later):
    net = learning({}, later, torch.float32)
    plain = plain_copy(net, 0)
    images, labels = batch({}, torch.float32, 16)
    losses = []
    for module, answer in ((net, lambda x: net.task_logits(x, 0)), (plain, plain)):
        optimizer = torch.optim.Adam([value for value in module.parameters() if value.requires_grad], lr=5e-3)
        losses.append([])
        for _ in range(4):
            loss = cross_entropy(answer(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    # Adam's first steps go by the gradients' signs, and the smallest gradients are all rounding.
    assert losses[0] == pytest.approx(losses[1], rel=5e-3)
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-5)


def test_inference_of_a_frozen_memory():
    net = learning({}, False, torch.float64)
    images, _ = batch({}, torch.float64, 4)
    net(images)
    plain = plain_copy(net, 0)
    for mine, yours in zip(plain.separable(), net.memories()[0].separable(), strict=True):
        mine.norm.load_state_dict(yours.norm.state_dict())
    torch.testing.assert_close(net.eval()(images), plain.eval()(images))


@pytest.mark.parametrize("learns", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_pointwise_gradient_of_whoever_learns(learns):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 3, 4, 5), (3, 3, 1, 1), (2, 3, 1, 1)]
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes]
    for place in learns:
        inputs[place].requires_grad_()
    assert torch.autograd.gradcheck(pointwise, inputs)


@pytest.mark.parametrize("size", [(4, 4), (5, 3)])
def test_shortcut_gradient(size):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, *size, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(6, 1, 1, 1, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(two_of_each, (x, weight))


def test_every_map_is_channels_last():
    net = learning(LAYOUTS["digits"], False, torch.float32)
    memory = net.memories()[0]
    kept = []
    for module in (memory.stem, *memory.blocks):
        module.register_forward_hook(
            lambda module, inputs, out: kept.append(out.is_contiguous(memory_format=torch.channels_last))
        )
    net(batch(LAYOUTS["digits"], torch.float32, 2)[0])
    assert all(kept)
    assert len(kept) == 1 + len(memory.blocks)
