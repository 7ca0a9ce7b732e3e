"""From the maps of working memories, and from features that all classes have in common, to scores of classes.

Shapes: B batch, K working memories, P pooled features of a memory, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, linear

from sparc.nn import roll
from sparc.nn.roll import GRID, TEMPERATURE, Say


def pooled(maps: Sequence[Tensor], memories: int = 1) -> list[Tensor]:
    """[B, P] of each memory, whose channels lie side by side: the last map averaged over its pixels, and the one
    before it, if there is one, over four quarters.

    Late features serve a memory's own classes; earlier ones are better at telling apart what it was not trained on.
    """
    parts = [maps[-1].mean((2, 3)), *(adaptive_avg_pool2d(before, GRID) for before in maps[-2:-1])]
    by_memory = [part.unflatten(1, (memories, -1)).flatten(2) for part in parts]
    return list(torch.cat(by_memory, dim=2).unbind(1))


@dataclass(frozen=True)
class Layer:
    """A linear one that speaks for some classes."""

    weight: Tensor
    bias: Tensor
    say: Say

    def __call__(self, features: Tensor) -> Tensor:
        return linear(features, self.weight, self.bias)

    def spread(self, scores: Tensor, classes: int, otherwise: float) -> Tensor:
        """[B, C]: a column for each of all classes."""
        found = scores.new_full((len(scores), classes), otherwise)
        found[:, self.say.classes] = scores
        return found


@dataclass(frozen=True)
class Readout:
    """From the features of all working memories, and from common ones, to a score for every class.

    Heads and discriminants that are trusted say among all classes what they say in a portion; else the score is the
    portion's, by those that are trusted, and in it the class's, by all.
    """

    classes: int
    """C"""
    heads: Sequence[Layer]
    discriminants: Sequence[Layer]
    """In the last so many features."""
    portions: Sequence[Sequence[int]] = ()
    """The classes that were first taught together."""

    def __call__(self, features: Sequence[Tensor]) -> Tensor:
        """[B, C]. Features are those of each working memory, and those that are common to all classes."""
        logits, posteriors = self.logits(features), self.posteriors(features)
        in_portion = self.together(logits, posteriors)
        if not posteriors or all(layer.say.trust == 1 for layer in self.heads):
            return in_portion
        among_all, scores = self.together(logits, posteriors, by_trust=True), torch.empty_like(in_portion)
        for portion in self.portions:
            mass = among_all[:, portion].logsumexp(1, keepdim=True)
            scores[:, portion] = mass + in_portion[:, portion].log_softmax(1)
        return scores

    def logits(self, features: Sequence[Tensor]) -> list[Tensor]:
        """[B, C] of each head; of classes that it does not speak for, less than anything."""
        return [
            head.spread(head(own[:, : head.weight.shape[1]]), self.classes, -torch.inf)
            for own, head in zip(features, self.heads, strict=False)
        ]

    def posteriors(self, features: Sequence[Tensor]) -> list[Tensor]:
        """[B, C], logarithms, of each discriminant; of classes that it does not know, 0."""
        described = features[len(features) - len(self.discriminants) :]
        return [
            layer.spread((layer(own) / TEMPERATURE).log_softmax(1), self.classes, 0.0)
            for own, layer in zip(described, self.discriminants, strict=True)
        ]

    def together(self, logits: Sequence[Tensor], posteriors: Sequence[Tensor], by_trust: bool = False) -> Tensor:
        """[B, C]: the most that a head says of a class, and the mean of what those discriminants say that know it."""
        parts = []
        if logits:
            heads = [head.say for head in self.heads]
            best = torch.from_numpy(roll.rest(self.classes, heads, by_trust)).to(logits[0])
            for each in logits:
                best = torch.maximum(best, each * roll.head_counts(heads, by_trust))
            parts.append(best)
        if posteriors:
            voices = [layer.say for layer in self.discriminants]
            counted = [each * voice.counts(by_trust) for each, voice in zip(posteriors, voices, strict=True)]
            total = torch.stack(counted).sum(0)
            answers = roll.answers(self.classes, voices, by_trust)
            parts.append(total / torch.from_numpy(answers).to(total))
        return sum(parts[1:], start=parts[0])
