"""LiDER: what its estimates are, and what it adds to its hosts."""

import math
from dataclasses import fields
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn.functional import relu

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.parts.lipschitz import LipschitzBudgets, lipschitz_estimates, top_eigenvalues, transition
from sparc.methods.parts.rehearsal import Rehearsal
from sparc.methods.rehearsal.derpp import DERpp, DerppSettings
from sparc.methods.rehearsal.er_ace import ERACE
from sparc.methods.rehearsal.lider import LiDER, LiderDERpp, LiderDerppSettings, LiderERACE
from sparc.nn import ResNet
from sparc.nn.functions import channels_last
from sparc.reproduce.plan import find_method
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, new, recipe

hosts = pytest.mark.parametrize(("kind", "host"), [(LiderDERpp, DERpp), (LiderERACE, ERACE)], ids=["der++", "er-ace"])


def made(kind: type[LiDER], **settings: float) -> LiDER:
    method = new(kind, **settings)  # type: ignore[arg-type]
    assert isinstance(method, LiDER)
    return method


def positive_definite(seed: int) -> Tensor:
    """Three matrices whose largest eigenvalue is well above the others."""
    some = torch.randn(3, 5, 5, dtype=torch.float64, generator=seeded(seed, "matrices"))
    vectors, _ = torch.linalg.qr(some)
    made: Tensor = vectors @ torch.diag(torch.tensor([7.0, 2.0, 1.0, 0.5, 0.0]).double()) @ vectors.mT
    return made


def test_power_iteration_finds_the_largest_eigenvalue() -> None:
    matrices = positive_definite(0) * torch.tensor([1.0, 3.0, 0.2]).double()[:, None, None]
    expected = torch.linalg.eigvalsh(matrices)[:, -1]
    torch.testing.assert_close(top_eigenvalues(matrices, seeded(0, "start")), expected, rtol=1e-6, atol=0)


def test_its_gradient_is_that_of_the_largest_eigenvalue() -> None:
    matrices = positive_definite(1).requires_grad_()
    (found,) = torch.autograd.grad(top_eigenvalues(matrices, seeded(0, "start")).sum(), matrices)
    (expected,) = torch.autograd.grad(torch.linalg.eigvalsh(matrices)[:, -1].sum(), matrices)
    torch.testing.assert_close((found + found.mT) / 2, (expected + expected.mT) / 2, rtol=0, atol=1e-3)


def test_maps_of_nothing_but_zeros_have_a_gradient() -> None:
    maps = [torch.zeros(2, channels, 4, 4, requires_grad=True) for channels in (2, 4)]
    lipschitz_estimates(maps, seeded(0, "start")).sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in maps)


def test_a_transition_by_hand() -> None:
    """From 2 × 2 pixels of two channels to a single pixel of four."""
    front = torch.tensor([[3.0, 0.0, 0.0, 2.0], [4.0, 1.0, 5.0, 0.0]]).view(1, 2, 2, 2)
    back = torch.tensor([1.0, 5.0, 6.0, 2.0]).view(1, 4, 1, 1)
    # Pixels of length 1 are (.6, .8), (0, 1), (0, 1), (1, 0), and on average (.4, .7). Pairs of channels average to
    # (3, 4), and so to (.6, .8).
    expected = torch.tensor([[[0.4 * 0.6, 0.4 * 0.8], [0.7 * 0.6, 0.7 * 0.8]]])
    torch.testing.assert_close(transition(front, back).float(), expected)


def test_estimates_are_largest_singular_values() -> None:
    sizes = [(1, 8), (4, 8), (4, 8), (8, 4)]
    maps = [1 + torch.randn(3, c, side, side, generator=seeded(c, "maps")) / 4 for c, side in sizes]
    expected = torch.stack([torch.linalg.svdvals(transition(*pair))[:, 0] for pair in pairwise(maps)], 1)
    torch.testing.assert_close(lipschitz_estimates(maps, seeded(0, "start")), expected.float(), rtol=1e-4, atol=0)


def test_maps_are_those_before_each_layers_last_relu() -> None:
    net = ResNet(3, (32, 32), 1 / 16, generator=seeded(0, "net"))
    images = torch.randn(4, 3, 32, 32, generator=seeded(0, "images"))
    stem, *layers = net.eval().layer_maps(images)
    assert [tuple(each.shape[1:]) for each in layers] == [(4, 32, 32), (8, 16, 16), (16, 8, 8), (32, 4, 4)]
    assert torch.equal(stem, net.stem(channels_last(images)))
    x = relu(stem)
    for number, layer in enumerate(layers):
        assert layer.min() < 0
        x = net.blocks[2 * number : 2 * number + 2](x)
        assert torch.equal(relu(layer), x)
    assert torch.equal(net.features(images), x.mean((2, 3)))


def test_the_distance_to_budgets_by_hand() -> None:
    part = LipschitzBudgets(2)
    part.start_at(torch.tensor([[1.0, 0.0], [3.0, -2.0]]))
    assert part.budgets.tolist() == [2, -1]
    distance = part.distance(torch.tensor([[1.5, 2.0], [1.0, 2.0]]))
    assert distance.item() == pytest.approx((0.5 + 2 + 1 + 2) / 4)
    distance.backward()
    assert part.budgets.grad is not None
    assert part.budgets.grad.tolist() == [0.5, 0], "one below 0 counts as 0, and stays"


@hosts
def test_without_its_terms_it_is_its_host(kind: type[LiDER], host: type[Rehearsal], stream: Stream) -> None:
    plain, treated = new(host, replay_batch=64), made(kind, lipschitz_weight=0, budget_weight=0)
    if isinstance(plain, DERpp):
        plain.alpha = plain.beta = 0.3
    for method in (plain, treated):
        trainer = Trainer(method, recipe(kind, epochs=1), seed=0)
        for task in stream[:2]:
            trainer.learn(task)
    state = treated.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in plain.state_dict().items())


@hosts
def test_it_adds_two_terms_each_on_its_own_draw(
    kind: type[LiDER], host: type[Rehearsal], stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = made(kind, lipschitz_weight=0.2, budget_weight=0.7, replay_batch=8)
    Trainer(method, recipe(kind, epochs=1), seed=0).learn(stream[0])
    method.begin_task(stream[1])
    method.eval()
    drawn: list[Tensor] = []

    def estimates(images: Tensor) -> Tensor:
        drawn.append(images)
        return images.flatten(1)[:, 20:23]

    monkeypatch.setattr(method, "estimates", estimates)
    monkeypatch.setattr(host, "loss", lambda self, batch: torch.tensor(10.0))
    loss = method.loss(batch_of(stream[1], torch.arange(9)))
    first, second = (images.flatten(1)[:, 20:23] for images in drawn)
    assert len(first) == len(second) == 8
    assert not torch.equal(first, second)
    budgets = method.lipschitz.budgets.detach()
    torch.testing.assert_close(loss.detach(), 10 + 0.2 * first.mean() + 0.7 * (second - budgets).abs().mean())


@hosts
def test_nothing_is_added_while_nothing_is_kept(kind: type[LiDER], host: type[Rehearsal], stream: Stream) -> None:
    method = made(kind)
    method.begin_task(stream[0])
    assert method.roughness() == 0
    method.train()
    method.loss(batch_of(stream[0], torch.arange(0, 48, 4)))
    assert method.roughness() > 0, "in the first task, too"


@hosts
def test_budgets_start_as_the_fresh_net_has_them_and_learn(
    kind: type[LiDER], host: type[Rehearsal], stream: Stream
) -> None:
    method = made(kind)
    method.begin_task(stream[0])
    images = AUGMENT.normalize(stream[0].train.images)
    with torch.no_grad():
        maps = [images, *method.net.layer_maps(images)]
        each = [torch.linalg.svdvals(transition(*pair))[:, 0].mean() for pair in pairwise(maps)]
    start = method.lipschitz.budgets.detach().clone()
    torch.testing.assert_close(start, torch.stack(each).float(), rtol=0.02, atol=0)
    assert len(start) == 3, "picture, stem, and two layers"
    trained = made(kind)
    Trainer(trained, recipe(kind, epochs=1), seed=0).learn(stream[0])
    learned = trained.lipschitz.budgets.detach().clone()
    assert (learned != start).all()
    Trainer(trained, recipe(kind, epochs=1), seed=0).learn(stream[1])
    assert (trained.lipschitz.budgets != learned).any(), "they go on from there"
    torch.testing.assert_close(trained.lipschitz.budgets.detach(), learned, rtol=0, atol=0.3)


def test_it_lowers_the_estimates(stream: Stream) -> None:
    means = []
    for weight in (0.0, 30.0):
        method = made(LiderDERpp, lipschitz_weight=weight, budget_weight=0)
        Trainer(method, recipe(LiderDERpp), seed=0).learn(stream[0])
        method.eval()
        means.append(method.predict_batched(method.estimates, method.buffer.images).mean())
    assert means[1] < 0.9 * means[0]


def test_it_stands_on_a_resnet(stream: Stream) -> None:
    assert "backbone" in {field.name for field in fields(DerppSettings)}
    assert "backbone" not in {field.name for field in fields(LiderDerppSettings)}
    assert isinstance(made(LiderDERpp).net, ResNet)


def test_the_papers_name_is_that_of_the_one_on_derpp() -> None:
    assert find_method("LiDER") is LiderDERpp


@pytest.mark.parametrize("kind", [LiderDERpp, LiderERACE])
@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"lipschitz_weight": -1}, "--lipschitz-weight -1"), ({"budget_weight": math.nan}, "--budget-weight nan")],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str, kind: type[LiDER]) -> None:
    with pytest.raises(InputError, match=flag):
        kind.Settings(**settings)  # type: ignore[arg-type]
