"""The linear head, initialised as `nn.Linear` is, but from a generator of our own."""

from typing import Any, Self, cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import linear, normalize


class Head(nn.Linear):
    def __init__(self, features: int, classes: int, generator: Generator) -> None:
        super().__init__(features, classes)
        bound = features**-0.5
        with torch.no_grad():
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.uniform_(-bound, bound, generator=generator)

    @torch.no_grad()
    def grown(self, classes: int, generator: Generator) -> Self:
        """A head with so many classes more; those that it has keep their weights."""
        known = self.out_features
        head = type(self)(self.in_features, known + classes, generator).to(self.weight.device)
        head.weight[:known], head.bias[:known] = self.weight, self.bias
        return head.requires_grad_(self.weight.requires_grad)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take on as many classes as the head had whose weights are put back."""
        loaded = state_dict.get(f"{prefix}weight")
        if loaded is not None and len(loaded) != self.out_features:
            self.out_features = len(loaded)
            for name, old in list(self.named_parameters()):
                if old.ndim:
                    new = old.new_empty(len(loaded), *old.shape[1:])
                    setattr(self, name, nn.Parameter(new, old.requires_grad))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_parameters(self) -> None:
        """Nothing: `nn.Linear` would draw from, and so move, the global generator here."""


class CosineHead(Head):
    """Logits that are cosines between features and class weights, times a scale that is learned."""

    def __init__(self, features: int, classes: int, generator: Generator, scale: float = 10.0) -> None:
        super().__init__(features, classes, generator)
        self.scale = nn.Parameter(torch.tensor(scale))
        self.bias.data.zero_()
        self.bias.requires_grad_(False)

    @torch.no_grad()
    def grown(self, classes: int, generator: Generator) -> Self:
        head = super().grown(classes, generator)
        head.scale.copy_(self.scale)
        head.bias.requires_grad_(False)
        return head

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * linear(normalize(features, dim=1), normalize(self.weight, dim=1))


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class Heads(nn.ModuleList):
    """One head a task, which grow in number while they are loaded."""

    def __init__(self, features: int, generator: Generator) -> None:
        super().__init__()
        self.features = features
        self.generator = generator

    def add(self, classes: int) -> None:
        self.append(Head(self.features, classes, self.generator))

    @property
    def sizes(self) -> list[int]:
        return [self.of(task).out_features for task in range(len(self))]

    def of(self, task: int) -> Head:
        return cast(Head, self[task])

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.sizes, dtype=torch.int64)

    def set_extra_state(self, state: Tensor) -> None:
        for classes in state.tolist()[len(self) :]:
            self.add(classes)
