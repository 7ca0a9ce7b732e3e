"""UCB: weights are Gaussians, and the surer the net is of one, the more slowly later tasks may move it.

Ebrahimi et al., "Uncertainty-Guided Continual Learning with Bayesian Neural Networks", ICLR 2020. All parameters, batch
norm's too, have a mean and a deviation softplus(ρ), learned by Bayes by backprop from several draws of them a step.
From the second task on, the learning rate of a mean is multiplied by the deviation that it had when the task began. The
means answer. Every task has a head of its own, so the task must be known at test time.

The net is a ResNet, which starts as the authors' does, with means of deviation 0.1, but for batch norm's scales and
shifts, which are 1 and 0 as usual. The loss has their weights: 0.05 for each of 64 pictures, and 0.001 for the
divergence from the prior, spread over the task's batches; in their code no gradient comes from that, here it does. New
heads, which their code leaves as they were drawn, learn at the full rate. Their rate is divided by 3 when they see no
progress on held-out pictures; here it stays, and the last epoch counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn.functional import softplus

from sparc.data.augment import Views
from sparc.data.stream import Task
from sparc.errors import InputError, check_not_negative, check_positive
from sparc.methods.method import Batch, Phase
from sparc.methods.parts.task_heads import TaskHeads
from sparc.methods.recipe import Recipe, check_plain_steps
from sparc.methods.settings import NetSettings
from sparc.nn.bayesian import BayesianHeads, draw, spread
from sparc.nn.resnet import ResNet

LIKELIHOOD = 0.05 * 64
"""Weight of a batch's mean cross-entropy."""


@dataclass(frozen=True)
class UcbSettings(NetSettings):
    draws: int = 10
    """Draws of all weights at every step, each of which is a pass through the net."""
    rho: float = -3.0
    """ρ at the start: weights have a deviation of log(1 + e^ρ), which is 0.05 at −3."""
    pi: float = 0.25
    """π: how much of the prior is the wide one of its two Gaussians."""
    kl_weight: float = 1e-3
    """Weight of the divergence from the prior."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--draws", self.draws)
        if not 0 < self.pi < 1:
            raise InputError(f"--pi {self.pi:g} must lie between 0 and 1")
        check_not_negative("--kl-weight", self.kl_weight)
        if not -50 <= self.rho <= 50:
            raise InputError(f"--rho {self.rho:g} leaves no deviation to learn from: choose from -50 to 50")


class UCB(TaskHeads):
    name = "ucb"
    title = "UCB"
    paper = "Ebrahimi et al., ICLR 2020"
    Settings = UcbSettings
    recipe = Recipe(epochs=200, batch_size=64, lr=0.01)
    heads: BayesianHeads

    def __init__(
        self, settings: UcbSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, augment, generator)
        self.draws, self.pi, self.kl_weight = settings.draws, settings.pi, settings.kl_weight
        self.net = ResNet(channels, image_size, settings.width, settings.depth, generator)
        self.heads = BayesianHeads(self.net.head.in_features, settings.rho, generator)
        for mean in self.means().values():
            if mean.ndim == 4:
                mean.data.copy_(spread(0, mean.shape, generator))
        count = sum(mean.numel() for mean in self.means().values())
        self.rhos = nn.ParameterList([spread(settings.rho, (count,), generator)])
        """One tensor, of all means one after the other."""
        self.rates: Tensor
        self.register_buffer("rates", torch.empty(0))
        """By what the means' learning rates are multiplied, while a later task is learned."""

    def means(self) -> dict[str, nn.Parameter]:
        """The net's parameters but for its head's."""
        return {name: mean for name, mean in self.net.named_parameters() if not name.startswith("head.")}

    @property
    def rho(self) -> nn.Parameter:
        rho: nn.Parameter = self.rhos[0]
        return rho

    def begin_task(self, task: Task) -> None:
        if len(self.heads):
            self.rates = softplus(self.rho.detach())
        self.heads.add(len(task.classes))

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        check_plain_steps(recipe, self.name)
        return super().phases(task, recipe)

    def loss(self, batch: Batch) -> Tensor:
        head, labels = self.heads.of(-1), batch.labels - batch.task.classes.start
        batches = max(1, len(batch.task.train) // batch.recipe.batch_size)
        means: dict[str, Tensor] = {**self.means(), "head.weight": head.weight, "head.bias": head.bias}
        mean, rho = torch.cat([each.flatten() for each in means.values()]), torch.cat((self.rho, head.rho))
        terms = []
        for _ in range(self.draws):
            drawn, divergence = draw(mean, rho, self.pi, self.generator)
            weights = dict(zip(means, in_shapes(drawn, means.values()), strict=True))
            logits = functional_call(self.net, weights, (batch.images,))
            terms.append(LIKELIHOOD * batch.cross_entropy(logits, labels) + self.kl_weight / batches * divergence)
        return torch.stack(terms).mean()

    @torch.no_grad()
    def before_step(self) -> None:
        if len(self.rates):
            means = self.means().values()
            for mean, rate in zip(means, in_shapes(self.rates, means), strict=True):
                assert mean.grad is not None
                mean.grad *= rate

    def end_task(self, task: Task) -> None:
        self.zero_grad()
        self.rates = self.rates.new_empty(0)


def in_shapes(flat: Tensor, like: Iterable[Tensor]) -> list[Tensor]:
    """Numbers that lie one after the other, as tensors of the shapes that others have."""
    like = list(like)
    parts = flat.split([each.numel() for each in like])
    return [part.view(each.shape) for part, each in zip(parts, like, strict=True)]
