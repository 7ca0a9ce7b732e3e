import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal
from torch.func import functional_call
from torch.nn.functional import cross_entropy, softplus

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.regularization.ucb import UCB, UcbSettings
from sparc.nn.bayesian import draw
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=1, batch_size=24, lr=0.01)


def learner(**settings: float) -> UCB:
    settings = {"width": 1 / 8, "draws": 1, **settings}
    return UCB(UcbSettings(**settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def prior(weights: Tensor, pi: float) -> Tensor:
    wide, narrow = Normal(0.0, 1.0), Normal(0.0, math.exp(-6))
    return (pi * wide.log_prob(weights).exp() + (1 - pi) * narrow.log_prob(weights).exp()).log()


@pytest.mark.parametrize(("mean", "rho", "pi"), [(0.3, -3.0, 0.25), (0.0, -4.0, 0.75)])
def test_many_draws_give_the_divergence_from_the_prior_and_the_posterior(mean: float, rho: float, pi: float) -> None:
    count = 200_000
    weights, divergence = draw(torch.full((count,), mean), torch.full((count,), rho), pi, seeded(0, "noise"))
    deviation = math.log1p(math.exp(rho))
    assert weights.mean().item() == pytest.approx(mean, abs=5 * deviation / math.sqrt(count))
    assert weights.std().item() == pytest.approx(deviation, rel=0.01)
    posterior = Normal(torch.tensor(mean).double(), torch.tensor(deviation).double())
    grid = torch.linspace(mean - 10 * deviation, mean + 10 * deviation, 200_001, dtype=torch.float64)
    density = posterior.log_prob(grid)
    integral = torch.trapezoid(density.exp() * (density - prior(grid, pi)), grid)
    assert divergence.item() / count == pytest.approx(integral.item(), rel=0.01)


def test_the_loss_is_that_of_the_mean_draw(stream: Stream) -> None:
    method = learner(draws=2, pi=0.5, kl_weight=0.01)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    method.eval()
    batch = batch_of(stream[1], torch.arange(30), recipe=RECIPE)  # one of three batches
    state = method.generator.get_state()
    loss = method.loss(batch)
    method.generator.set_state(state)
    head, total = method.heads.of(1), torch.tensor(0.0)
    means = {**method.means(), "head.weight": head.weight, "head.bias": head.bias}
    rhos = torch.cat((method.rho, head.rho)).split([mean.numel() for mean in means.values()])
    for _ in range(2):
        weights = {}
        noise = torch.randn(len(method.rho) + len(head.rho), generator=method.generator)
        for name, rho in zip(means, rhos, strict=True):
            mean, deviation = means[name], softplus(rho).view(means[name].shape)
            own, noise = noise[: len(rho)], noise[len(rho) :]
            weights[name] = mean + deviation * own.view(mean.shape)
            posterior = Normal(mean, deviation).log_prob(weights[name])
            total = total + 0.01 / 3 * (posterior - prior(weights[name], 0.5)).sum()
        logits = functional_call(method.net, weights, (batch.images,))
        assert logits.shape[1] == 3, "only the task's own classes"
        total = total + 0.05 * 64 * cross_entropy(logits, batch.labels - 2)
    torch.testing.assert_close(loss, total / 2)


def test_from_the_second_task_on_means_move_by_how_uncertain_they_were_when_it_began(stream: Stream) -> None:
    method = learner()
    for task, later in ((stream[0], False), (stream[1], True)):
        begin(method, task)
        scaled = list(method.means().values())
        rate = softplus(method.rho.detach().clone())
        parts = rate.split([mean.numel() for mean in scaled])
        rates = [part.view(mean.shape) for part, mean in zip(parts, scaled, strict=True)]
        optimizer = torch.optim.SGD([each for each in method.parameters() if each.requires_grad], lr=0.1)
        method.train()
        for _ in range(2):
            method.loss(batch_of(task, torch.arange(20))).backward()
            free = [method.rho, *method.heads.of(-1).parameters()]
            before = [each.detach().clone() for each in (*scaled, *free)]
            gradients = [each.grad.clone() for each in (*scaled, *free)]  # type: ignore[union-attr]
            method.before_step()
            optimizer.step()
            optimizer.zero_grad()
            shares = [*rates, *[1] * len(free)] if later else [1] * len(before)
            for then, now, gradient, share in zip(before, (*scaled, *free), gradients, shares, strict=True):
                torch.testing.assert_close(now.detach(), then - 0.1 * share * gradient)
        assert not torch.equal(softplus(method.rho), rate)
        method.end_task(task)
        assert len(method.rates) == 0


def test_it_starts_where_the_authors_do() -> None:
    method = learner(rho=-2)
    assert (method.rho.mean().item(), method.rho.std().item()) == pytest.approx((-2, 0.1), abs=0.01)
    for mean in method.means().values():
        if mean.ndim == 1:
            assert mean.unique().tolist() in ([0], [1]), "batch norm"
        elif mean.numel() > 500:
            assert (mean.mean().item(), mean.std().item()) == pytest.approx((0, 0.1), abs=0.015)


def test_the_means_answer(stream: Stream, augment: Augment) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    Trainer(method, RECIPE, 0).learn(stream[1])
    method.eval()
    images = augment.normalize(stream.test(0).images)
    state = method.generator.get_state()
    said = method.logits(images)
    with torch.no_grad():
        for name, parameter in method.named_parameters():
            if "rho" in name:
                parameter.fill_(5.0)
    assert torch.equal(method.logits(images), said)
    assert torch.equal(method.generator.get_state(), state), "nothing is drawn"
    assert torch.equal(torch.cat([method.task_logits(images, task) for task in range(2)], 1), said)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"draws": 0}, "--draws 0"), ({"pi": 1}, "--pi 1"), ({"pi": 0}, "--pi 0"), ({"kl_weight": -1}, "--kl-weight -1")],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        UcbSettings(**settings)  # type: ignore[arg-type]
