"""How much heads and statistics should count, by pictures that nothing was trained on.

A head of a net that has hardly been trained knows less than statistics of patches do, and one that was trained for long
knows more; pictures that the net has learned from cannot tell which. Their own classes alone are compared: among all,
the newest pictures would favour whoever favours the newest classes.

Shapes: N pictures, L classes of a portion, G scales.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from sparc.nn.roll import Weights

USUAL = Weights()
STEPS = [math.exp(step / 2) for step in range(-9, 5)]
"""That the usual weights are multiplied with."""
SCALES = torch.tensor([math.exp(step / 3) for step in range(-7, 9)])
"""That scores are multiplied with before they are compared, as a calibrated answer is."""
BETWEEN = 0.25
"""What is left of the heads' weight between portions, which the pictures of one cannot tell: it is from held-out
pictures of all tasks of Seq-CIFAR100, after 2, 5 and 20 epochs each."""
SURPRISE = 2.0
"""How far off the usual a weight's logarithm may well be; the fewer pictures, the more that counts."""
MOST = 1000
"""Pictures that are asked; more of them would say the same."""


def weigh(logits: Tensor, memories: Sequence[Tensor], common: Tensor | None, labels: Tensor) -> Weights:
    """From what is said of the portion's classes, [N, L] by heads, by each working memory's discriminants and by those
    of common features, the weights with which right classes are likeliest.
    """
    some = slice(None, None, -(-len(labels) // MOST))
    logits, labels, voices = logits[some], labels[some], [each[some] for each in memories]
    others = [] if common is None else [common[some]]
    best, found = math.inf, USUAL
    for heads in STEPS:
        for own in STEPS if voices and others else [1.0]:
            weights = Weights(USUAL.heads * heads, USUAL.memories * own, BETWEEN)
            total = torch.stack([*(each * weights.memories for each in voices), *others]).sum(0)
            scores = logits * weights.heads + total / (len(voices) * weights.memories + len(others))
            surprising = (math.log(heads) ** 2 + math.log(own) ** 2) / (2 * SURPRISE**2)
            missed = _missed(scores, labels) + surprising
            if missed < best:
                best, found = missed, weights
    return found


def _missed(scores: Tensor, labels: Tensor) -> float:
    """How unlikely the right classes are, all together, at the scale at which they are likeliest."""
    scaled = (SCALES[:, None, None] * scores).log_softmax(2)
    return -float(scaled[:, torch.arange(len(labels)), labels].double().sum(1).max())
