"""Muon: steps that move a matrix by as much in each of its directions; what is no matrix moves as by AdamW.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024. The gradients' running mean is brought
near the orthogonal matrix that is closest to it, by five rounds of a polynomial. A step takes a tenth to a third longer
with it; the smaller the batch, the more.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
ADAMW_LR_SCALE = 0.15
"""What the rate is multiplied by for what is no matrix: AdamW's steps are larger."""


class Muon(Optimizer):
    """Filters that mix channels are matrices, [outputs, inputs]; heads, depth-wise filters and vectors are not."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            learning = [parameter for parameter in group["params"] if parameter.grad is not None]
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for parameter in learning:
                if is_matrix(parameter):
                    by_shape.setdefault(parameter.shape, []).append(parameter)
                else:
                    self._adam(parameter, group)
            for matrices in by_shape.values():
                self._orthogonal(matrices, group)

    def _orthogonal(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """All matrices of one shape at once."""
        ahead = []
        for matrix in matrices:
            assert matrix.grad is not None
            state = self.state[matrix]
            if not state:
                state["mean"] = torch.zeros_like(matrix)
            state["mean"].lerp_(matrix.grad, 1 - group["momentum"])
            ahead.append(matrix.grad.lerp(state["mean"], group["momentum"]).flatten(1))  # as Nesterov's
        steps = orthogonalized(torch.stack(ahead))
        outputs, inputs = steps.shape[1:]
        for matrix, step in zip(matrices, steps, strict=True):
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            matrix.sub_(step.view_as(matrix), alpha=group["lr"] * max(1.0, outputs / inputs) ** 0.5)

    def _adam(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient, state, (first, second) = parameter.grad, self.state[parameter], group["betas"]
        assert gradient is not None
        lr = ADAMW_LR_SCALE * group["lr"]
        if not state:
            state["step"] = torch.zeros(())
            state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        number = float(state["step"])
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        spread = (state["square"] / (1 - second**number)).sqrt_().add_(group["eps"])
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.addcdiv_(state["mean"], spread, value=-lr / (1 - first**number))


def is_matrix(parameter: Tensor) -> bool:
    """Whether it is moved as a matrix: a filter that mixes channels.

    >>> [is_matrix(torch.zeros(shape)) for shape in ((8, 4, 1, 1), (8, 1, 3, 3), (8, 4), (8,))]
    [True, False, False, False]
    """
    return parameter.ndim == 4 and parameter.shape[1] > 1


def orthogonalized(matrices: Tensor) -> Tensor:
    """[N, R, C] to matrices whose singular values all lie about 1.

    >>> values = torch.linalg.svdvals(orthogonalized(torch.eye(4)[None] * torch.tensor([1.0, 2, 3, 4])))
    >>> bool(((values > 0.6) & (values < 1.3)).all())
    True
    """
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    orthogonal: Tensor = x.mT if tall else x
    return orthogonal
