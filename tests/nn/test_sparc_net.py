import copy

import pytest
import torch
from torch import Tensor, nn

from sparc.errors import InputError
from sparc.nn import SparcNet


def grown(tasks: int, classes: int, width: float = 0.5, depth: int = 4, shared: float = 0.5) -> SparcNet:
    net = SparcNet(width=width, depth=depth, shared=shared)
    for _ in range(tasks):
        net.add_task(classes)
    return net


@pytest.mark.parametrize(
    ("tasks", "classes", "width", "depth", "shared", "millions"),
    [
        (5, 20, 0.5, 4, 0.5, "1.0397"),
        (10, 10, 0.5, 4, 0.5, "1.9010"),
        (20, 5, 0.5, 4, 0.5, "3.6237"),
        (5, 20, 0.25, 1, 0.5, "0.0087"),
        (5, 20, 0.25, 2, 0.5, "0.0276"),
        (5, 20, 0.25, 3, 0.5, "0.0867"),
        (5, 20, 0.25, 4, 0.5, "0.2911"),
        (5, 20, 0.5, 2, 0.5, "0.0825"),
        (5, 20, 0.5, 3, 0.5, "0.2869"),
        (5, 20, 1, 4, 0.5, "3.9100"),
        (5, 20, 2, 4, 0.5, "15.1434"),
        (5, 20, 0.5, 4, 0, "1.65"),
        (5, 20, 1, 4, 0, "6.35"),
        (5, 20, 2, 4, 0, "24.9"),
        # The paper prints 1.97 for TinyImageNet: the one total that does not follow from its own layout.
        (10, 20, 0.5, 4, 0.5, "1.9267"),
    ],
)
def test_parameter_totals_of_the_paper(
    tasks: int, classes: int, width: float, depth: int, shared: float, millions: str
) -> None:
    total = grown(tasks, classes, width, depth, shared).parameter_counts().total
    assert f"{total / 1e6:.{len(millions.split('.')[1])}f}" == millions


def test_counts_by_owner_add_up_to_every_parameter() -> None:
    net = SparcNet(width=0.25)
    for classes in (2, 7):
        net.add_task(classes)
    counts = net.parameter_counts()
    assert counts.heads == (2 * 128 + 2, 7 * 128 + 7)
    assert counts.tasks[0] == counts.tasks[1]
    assert counts.total == sum(parameter.numel() for parameter in net.parameters())


class OrdinaryBlock(nn.Module):
    """A residual block of torch's own modules, as anybody would write it."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False),
            nn.Conv2d(channels, out, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, groups=out, bias=False),
            nn.Conv2d(out, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Conv2d(channels, out, 1, stride, groups=channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def ordinary(net: SparcNet, channels: list[int], classes: int) -> nn.Sequential:
    """An `nn.Sequential` with the weights of the net's only task."""
    first = channels[0]
    stem = [nn.Conv2d(3, 3, 3, 1, 1, groups=3, bias=False), nn.Conv2d(3, first, 1, bias=False), nn.BatchNorm2d(first)]
    blocks: list[nn.Module] = []
    inputs = first
    for layer, out in enumerate(channels):
        blocks += [OrdinaryBlock(inputs, out, 2 if layer else 1), OrdinaryBlock(out, out, 1)]
        inputs = out
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    sequence = nn.Sequential(*stem, nn.ReLU(), *blocks, *head)

    memory = net.memories()[0]
    separable = list(memory.separable())
    triples = list(zip(separable, net.semantic.filters, strict=True))
    convs = [module for module in sequence.modules() if isinstance(module, nn.Conv2d)]
    shortcuts = [conv for conv in convs if conv.groups > 1 and conv.kernel_size == (1, 1)]
    depthwise = [conv for conv in convs if conv.kernel_size == (3, 3)]
    pointwise = [conv for conv in convs if conv.groups == 1]
    norms = [module for module in sequence.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(depthwise) == len(pointwise) == len(norms) == len(triples)
    with torch.no_grad():
        for place, (own, semantic) in enumerate(triples):
            depthwise[place].weight.copy_(own.depthwise)
            pointwise[place].weight.copy_(torch.cat((own.pointwise, semantic)))
            norms[place].load_state_dict(own.norm.state_dict())
        weights = [value for name, value in memory.named_parameters() if "shortcut" in name]
        for conv, weight in zip(shortcuts, weights, strict=True):
            conv.weight.copy_(weight)
        sequence[-1].load_state_dict(memory.head.state_dict())
    return sequence


@pytest.mark.parametrize("training", [False, True])
def test_one_task_equals_an_ordinary_sequence_of_modules(training: bool) -> None:
    net = SparcNet(width=0.25, depth=3)
    memory = net.add_task(7)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # statistics and scales other than the ones a fresh batch norm has
        for value in [*memory.parameters(), *memory.buffers()]:
            if value.ndim == 1 and value.is_floating_point():
                value.uniform_(0.5, 1.5, generator=generator)
    plain = ordinary(net, [16, 32, 64], 7)
    images = torch.randn(5, 3, 32, 32, generator=generator)
    net.train(training)
    plain.train(training)
    torch.testing.assert_close(net(images), plain(images), rtol=1e-4, atol=1e-5)


def test_grows_by_any_number_of_classes_and_keeps_their_order() -> None:
    net = SparcNet(channels=1, image_size=(8, 8), width=0.25)
    for classes in (3, 1, 5):
        net.add_task(classes)
    net.eval()
    images = torch.rand(4, 1, 8, 8)
    logits = net(images)
    assert net.task_sizes == [3, 1, 5]
    torch.testing.assert_close(logits[:, :3], net.task_logits(images, 0), rtol=0, atol=0)
    torch.testing.assert_close(logits[:, 4:], net.task_logits(images, 2), rtol=0, atol=0)


@pytest.mark.parametrize("side", [8, 9, 28, 64, 84])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_any_picture_from_8_by_8_up(side: int, channels: int) -> None:
    net = SparcNet(channels=channels, image_size=(side, side), width=1 / 32)
    net.add_task(2)
    assert net(torch.rand(2, channels, side, side)).shape == (2, 2)


@pytest.mark.parametrize("shared", [0, 0.25, 0.5, 0.75])
def test_share_of_semantic_filters(shared: float) -> None:
    net = SparcNet(width=0.5, depth=2, shared=shared)
    net.add_task(2)
    assert [len(bank) for bank in net.semantic.filters] == [round(shared * out) for out in [32] * 5 + [64] * 4]


def test_isolated_tasks_share_nothing() -> None:
    counts = grown(2, 3, width=0.25, shared=0).parameter_counts()
    assert counts.semantic == 0


@pytest.mark.parametrize(("shared", "paired"), [(0.25, 8), (0.5, 16), (0.75, 8)])
def test_consolidation_is_the_moving_average_of_equation_4(shared: float, paired: int) -> None:
    net = SparcNet(width=0.5, depth=1, shared=shared)
    memory = net.add_task(2)
    with torch.no_grad():
        for bank in net.semantic.filters:
            bank.fill_(10.0)
        for conv in memory.separable():
            conv.pointwise.fill_(20.0)
    net.semantic.consolidate(memory, alpha=0.75)
    for bank in net.semantic.filters:
        assert bank[:paired].unique().tolist() == [12.5]  # .75 · 10 + .25 · 20
        assert set(bank[paired:].unique().tolist()) <= {10.0}


def test_consolidation_at_the_papers_alpha_by_hand() -> None:
    net = SparcNet(width=1 / 32, depth=1)
    memory = net.add_task(2)
    with torch.no_grad():
        net.semantic.filters[0].copy_(torch.tensor([1.0, 2.0, 3.0])[None, :, None, None])
        next(memory.separable()).pointwise.copy_(torch.tensor([11.0, -8.0, 3.0])[None, :, None, None])
    net.semantic.consolidate(memory, alpha=0.99)
    torch.testing.assert_close(net.semantic.filters[0].flatten(), torch.tensor([1.1, 1.9, 3.0]))


def test_a_frozen_memory_stays_as_it_is_in_training_mode() -> None:
    net = grown(2, 2, width=1 / 16)
    net.memories()[0].freeze()
    before = copy.deepcopy(net.memories()[0].state_dict())
    net.train()
    net(torch.rand(4, 3, 32, 32)).sum().backward()
    assert all(parameter.grad is None for parameter in net.memories()[0].parameters())
    for name, value in net.memories()[0].state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_fresh_net_takes_on_a_grown_one() -> None:
    net = grown(2, 3, width=1 / 16)
    net.add_task(1)
    net.memories()[0].freeze()
    other = SparcNet(width=1 / 16, generator=torch.Generator().manual_seed(5))
    other.load_state_dict(net.state_dict())
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(other.eval()(images), net.eval()(images))
    assert [memory.frozen for memory in other.memories()] == [True, False, False]


def test_all_chance_comes_from_the_generator() -> None:
    state = torch.get_rng_state()
    nets = [SparcNet(width=1 / 16, generator=torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    for net in nets:
        net.add_task(2)
    same, again, other = (torch.cat([value.flatten() for value in net.parameters()]) for net in nets)
    assert torch.equal(same, again)
    assert not torch.equal(same, other)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"width": 0}, "--width 0 gives no filters"),
        ({"width": 0.001}, "--width 0.001 gives no filters"),
        ({"width": float("nan")}, "--width nan gives no filters"),
        ({"width": float("inf")}, "--width inf"),
        ({"width": 1e9}, "gives layers of more than 8,192 filters"),
        ({"width": 1 / 64}, "--shared 0.5 cannot divide 1 filters"),
        ({"depth": 0}, "--depth 0 gives no net"),
        ({"depth": -1}, "--depth -1 gives no net"),
        ({"depth": 9}, "--depth 9 gives no net"),
        ({"shared": 1}, "--shared 1 is not a share"),
        ({"shared": -0.1}, "--shared -0.1 is not a share"),
        ({"channels": 0}, "at least one channel"),
        ({"image_size": (4, 32)}, "pictures of 4 × 32 are too small"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        SparcNet(**settings)


def test_a_task_without_classes_is_refused() -> None:
    with pytest.raises(InputError, match="at least one class"):
        SparcNet().add_task(0)
