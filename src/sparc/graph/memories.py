"""Working memories as nodes: several side by side, as they have the same layout.

Between the layers the channels of one memory lie after those of another, so that one depth-wise convolution, and one
grouped point-wise one, serve all of a stack. With one picture that is up to a tenth faster than one memory after
another, and with 20 memories onnxruntime has the graph ready in less than half the time; docs/speed.md has the figures.

Shapes: K working memories of a stack, B pictures, C channels, H × W the map, P features, L classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sparc.folded import FoldedConv, FoldedModel, Linear
from sparc.graph import STACK
from sparc.graph.builder import Graph
from sparc.graph.common import quarters
from sparc.nn.layout import BLOCKS
from sparc.nn.roll import TEMPERATURE

NEVER = -1e30
"""What is said of a class by those that do not speak for it; infinities are not everywhere taken well."""


@dataclass(frozen=True)
class Stack:
    """Some working memories of a model, one after another in it."""

    graph: Graph
    model: FoldedModel
    name: str
    memories: slice

    @property
    def count(self) -> int:
        """K"""
        return len(self.heads)

    @property
    def heads(self) -> Sequence[Linear]:
        return self.model.heads[self.memories]

    def features(self, x: str) -> tuple[str, str]:
        """[K, B, P] that heads see, and that discriminants do: of each memory its last map's, and for these also those
        of the map before it.
        """
        last, before = self._maps(x)
        # Not GlobalAveragePool, which adds up the pixels one by one: discriminants are not happy with that.
        last = self.graph.node(f"{self.name}.pool", "ReduceMean", last, axes=[2, 3], keepdims=0)
        seen = self._by_memory(f"{self.name}.last", last, self.model.heads[0].weight.shape[1])
        layers = len(self.model.shortcuts) // BLOCKS
        if layers == 1 or not self.model.info.settings.statistics:
            return seen, seen
        sides = [-(-side // 2 ** (layers - 2)) for side in self.model.info.shape.image_size]
        pooled = quarters(self.graph, f"{self.name}.quarters", before, sides)
        count = self.model.discriminants[0].weight.shape[1] - self.model.heads[0].weight.shape[1]
        early = self._by_memory(f"{self.name}.early", pooled, count)
        return seen, self.graph.node(f"{self.name}.described", "Concat", seen, early, axis=2)

    def logits(self, features: str) -> str:
        """[B, K·L]: of each head in turn its outputs, and then NEVER where others have more."""
        outputs = self.outputs
        weight = np.zeros((self.count, self.heads[0].weight.shape[1], outputs), np.float32)
        bias = np.full((self.count, 1, outputs), NEVER, np.float32)
        for number, head in enumerate(self.heads):
            weight[number, :, : len(head.bias)] = head.weight.T
            bias[number, 0, : len(head.bias)] = head.bias
        found = self._linear(f"{self.name}.head", features, weight, bias)
        found = self.graph.node(f"{self.name}.by_picture", "Transpose", found, perm=[1, 0, 2])
        return self.graph.reshaped(f"{self.name}.logits", found, -1, self.count * outputs)

    @property
    def outputs(self) -> int:
        """Of the head that has most."""
        return max(len(head.bias) for head in self.heads)

    def posteriors(self, features: str) -> tuple[str, list[int]]:
        """[K, B, L]: what the discriminants of each say of classes that some of them know, and which these are."""
        layers = self.model.discriminants[self.memories]
        known = sorted({label for layer in layers for label in layer.say.classes})
        column = {label: number for number, label in enumerate(known)}
        weight = np.zeros((self.count, layers[0].weight.shape[1], len(known)), np.float32)
        bias = np.full((self.count, 1, len(known)), NEVER, np.float32)
        for number, layer in enumerate(layers):
            columns = [column[label] for label in layer.say.classes]
            weight[number, :, columns] = layer.weight / TEMPERATURE
            bias[number, 0, columns] = layer.bias / TEMPERATURE
        found = self._linear(f"{self.name}.discriminants", features, weight, bias)
        return self.graph.node(f"{self.name}.posterior", "LogSoftmax", found, axis=2), known

    def _linear(self, name: str, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        product = self.graph.node(f"{name}.product", "MatMul", x, self.graph.weight(f"{name}.weight", weight))
        return self.graph.node(name, "Add", product, self.graph.weight(f"{name}.bias", bias))

    def _by_memory(self, name: str, x: str, count: int) -> str:
        """[K, B, P] from channels side by side; the mean over mirror images where they are there."""
        if not self.model.mirror:
            split = self.graph.reshaped(f"{name}.split", x, -1, self.count, count)
        else:
            halves = self.graph.reshaped(f"{name}.halves", x, 2, -1, self.count, count)
            split = self.graph.node(f"{name}.split", "ReduceMean", halves, axes=[0], keepdims=0)
        return self.graph.node(name, "Transpose", split, perm=[1, 0, 2])

    def _maps(self, x: str) -> tuple[str, str]:
        """The last map, and the one that goes into the last layer."""
        stem, *rest = self.model.convs
        x = self._stem(x, stem)
        before, shortcuts = x, self.model.shortcuts
        for number, (shortcut, first, second) in enumerate(zip(shortcuts, rest[::2], rest[1::2], strict=True)):
            before = x if number == len(shortcuts) - BLOCKS else before
            block = f"{self.name}.block{number}"
            out = self.graph.node(f"{block}.first", "Relu", self._separable(f"{block}.first.conv", x, first))
            out = self._separable(f"{block}.second.conv", out, second)
            if shortcut is not None:
                kept = shortcut[self.memories].reshape(-1, 1, 1, 1)
                weight = self.graph.weight(f"{block}.shortcut.weight", kept)
                x = self.graph.node(f"{block}.shortcut", "Conv", x, weight, strides=[2, 2], group=len(kept) // 2)
            x = self.graph.node(block, "Relu", self.graph.node(f"{block}.sum", "Add", out, x))
        return x, before

    def _stem(self, x: str, conv: FoldedConv) -> str:
        """All stems look at the same picture, and with its few channels one 3×3 convolution is the quickest."""
        depthwise, pointwise = conv.depthwise[self.memories], conv.pointwise[self.memories]
        filters = pointwise[..., None, None].astype(np.float64) * np.swapaxes(depthwise, 1, 2)
        weight = self.graph.weight(f"{self.name}.stem.weight", filters.reshape(-1, *filters.shape[2:]))
        bias = self.graph.weight(f"{self.name}.stem.bias", conv.bias[self.memories].ravel())
        x = self.graph.node(f"{self.name}.stem.conv", "Conv", x, weight, bias, pads=[1] * 4)
        return self.graph.node(f"{self.name}.stem", "Relu", x)

    def _separable(self, name: str, x: str, conv: FoldedConv) -> str:
        depthwise, pointwise = conv.depthwise[self.memories], conv.pointwise[self.memories]
        filters = depthwise.reshape(-1, 1, 3, 3)
        weight = self.graph.weight(f"{name}.depthwise.weight", filters)
        strides = [conv.stride] * 2
        x = self.graph.node(f"{name}.depthwise", "Conv", x, weight, pads=[1] * 4, strides=strides, group=len(filters))
        kept = pointwise.reshape(-1, pointwise.shape[2], 1, 1)
        weight = self.graph.weight(f"{name}.pointwise.weight", kept)
        bias = self.graph.weight(f"{name}.pointwise.bias", conv.bias[self.memories].ravel())
        return self.graph.node(f"{name}.pointwise", "Conv", x, weight, bias, group=self.count)


def stacks(graph: Graph, model: FoldedModel) -> Iterator[Stack]:
    for start in range(0, model.memories, STACK):
        yield Stack(graph, model, f"stack{start // STACK}", slice(start, min(start + STACK, model.memories)))
