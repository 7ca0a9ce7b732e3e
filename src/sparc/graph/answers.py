"""From features to answers, as nodes: scores of all classes as `Readout` has them, and strangeness.

Shapes: B pictures, L classes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparc.folded import FoldedModel, Linear
from sparc.graph.builder import Graph
from sparc.graph.memories import NEVER, Stack
from sparc.nn import roll
from sparc.nn.described import StrangenessLayers
from sparc.nn.roll import TEMPERATURE


class Answers:
    """The scores of a model whose features are nodes of a graph already."""

    def __init__(self, graph: Graph, model: FoldedModel) -> None:
        self.graph = graph
        self.model = model
        self.classes = len(model.info.classes)
        self.heads = [head.say for head in model.heads]
        self.voices = [layer.say for layer in model.discriminants]

    def scores(self, memories: Sequence[tuple[Stack, str, str]], common: str | None) -> str:
        """[B, L], from features of stacks of working memories, and common ones."""
        logits = self._logits([(stack, stack.logits(seen)) for stack, seen, _ in memories])
        described = [(stack, *stack.posteriors(each)) for stack, _, each in memories] if self._has_voices else []
        shared = [] if common is None else [self._posterior(common, self.model.discriminants[-1])]
        in_portion = self._together("in_portion", logits, described, shared, by_trust=False)
        if not self.voices or all(head.trust == 1 for head in self.heads):
            return in_portion
        return self._by_portion(self._together("among_all", logits, described, shared, by_trust=True), in_portion)

    @property
    def _has_voices(self) -> bool:
        return self.model.info.settings.statistics > 0

    def _logits(self, of_stacks: Sequence[tuple[Stack, str]]) -> list[str]:
        """[B, L] of heads: as many as speak for one class at the most."""
        if not of_stacks:
            return []
        columns: list[list[int]] = [[] for _ in range(self.classes)]
        start = 0
        for stack, _ in of_stacks:
            for number, head in enumerate(stack.heads):
                for column, label in enumerate(head.say.classes):
                    columns[label].append(start + number * stack.outputs + column)
            start += stack.count * stack.outputs
        every = self.graph.node("logits", "Concat", *(logits for _, logits in of_stacks), axis=1)
        every = self._padded("logits", every, NEVER)
        most = max(map(len, columns))
        return [
            self._columns(f"logits{turn}", every, [each[turn] if turn < len(each) else start for each in columns])
            for turn in range(most)
        ]

    def _together(
        self,
        name: str,
        logits: Sequence[str],
        described: Sequence[tuple[Stack, str, list[int]]],
        shared: Sequence[str],
        by_trust: bool,
    ) -> str:
        """The most that a head says of a class, and the mean of what those discriminants say that know it."""
        graph, parts = self.graph, []
        if logits:
            rest = roll.rest(self.classes, self.heads, by_trust).clip(min=NEVER)
            counts = roll.head_counts(self.heads, by_trust)
            heard = [graph.scaled(f"{name}.{each}", each, counts) for each in logits]
            parts.append(graph.node(f"{name}.best", "Max", graph.weight(f"{name}.rest", rest[None]), *heard))
        if self.voices:
            heard = [self._heard(name, *each, by_trust) for each in described]
            shares = graph.weight(f"{name}.shares", 1 / roll.answers(self.classes, self.voices, by_trust)[None])
            total = graph.node(f"{name}.sum", "Sum", *heard, *shared)
            parts.append(graph.node(f"{name}.mean", "Mul", total, shares))
        return parts[0] if len(parts) == 1 else graph.node(name, "Add", *parts)

    def _heard(self, name: str, stack: Stack, posteriors: str, known: list[int], by_trust: bool) -> str:
        """[B, L]: what all of a stack say together, each of the classes that it knows and as far as it is trusted."""
        graph, own = self.graph, f"{name}.{stack.name}"
        counts = np.zeros((stack.count, 1, len(known)), np.float32)
        for number, say in enumerate(self.voices[stack.memories]):
            counts[number, 0, np.isin(known, list(say.classes))] = say.counts(by_trust)
        counted = graph.node(f"{own}.counted", "Mul", posteriors, graph.weight(f"{own}.counts", counts))
        return self.spread(f"{own}.heard", graph.summed(f"{own}.said", counted, axis=0), known, 0.0)

    def _posterior(self, features: str, layer: Linear) -> str:
        """What discriminants say of each class; of those that they do not know, 0."""
        weight, bias = layer.weight / np.float32(TEMPERATURE), layer.bias / np.float32(TEMPERATURE)
        x = self.graph.linear("common.discriminants", features, weight, bias)
        x = self.graph.node("common.posterior", "LogSoftmax", x, axis=1)
        return self.spread("common", x, layer.say.classes, 0.0)

    def _by_portion(self, among_all: str, in_portion: str) -> str:
        """The score of each class's portion, and in it the class's own."""
        graph, found, portions = self.graph, [], self.model.portions
        for number, portion in enumerate(portions):
            name = f"portion{number}"
            columns = graph.weight(f"{name}.columns", np.array(portion))
            everywhere = graph.node(f"{name}.among_all", "Gather", among_all, columns, axis=1)
            mass = graph.node(f"{name}.mass", "ReduceLogSumExp", everywhere, axes=[1], keepdims=1)
            own = graph.node(f"{name}.own", "Gather", in_portion, columns, axis=1)
            own = graph.node(f"{name}.posterior", "LogSoftmax", own, axis=1)
            found.append(graph.node(name, "Add", mass, own))
        together = graph.node("by_portion", "Concat", *found, axis=1)
        order = np.argsort([label for portion in portions for label in portion])
        return graph.node("in_order", "Gather", together, graph.weight("order", order), axis=1)

    def spread(self, name: str, x: str, classes: Sequence[int], otherwise: float) -> str:
        """A column for each of all classes."""
        if list(classes) == list(range(self.classes)):
            return x
        columns = np.full(self.classes, len(classes))
        columns[list(classes)] = np.arange(len(classes))
        return self._columns(f"{name}.spread", self._padded(name, x, otherwise), columns)

    def _padded(self, name: str, x: str, otherwise: float) -> str:
        """With a column more."""
        pads = self.graph.constant("a column", np.array([0, 0, 0, 1]))
        return self.graph.node(f"{name}.padded", "Pad", x, pads, self.graph.weight(f"{name}.filler", otherwise))

    def _columns(self, name: str, x: str, columns: Sequence[int] | NDArray[np.int64]) -> str:
        return self.graph.node(name, "Gather", x, self.graph.weight(f"{name}.columns", np.asarray(columns)), axis=1)


def strangeness(graph: Graph, name: str, common: str, layers: StrangenessLayers) -> str:
    """[B], from common features, as `Strangeness` has it."""
    found = graph.linear(f"{name}.whitened", common, layers.weight, layers.bias)
    from_centre = graph.summed(
        f"{name}.from_centre", graph.node(f"{name}.squares", "Mul", found, found), axis=1, keepdims=True
    )
    means = layers.means
    to_means = graph.linear(f"{name}.to_means", found, -2 * means, np.square(means).sum(1))
    nearest = graph.node(f"{name}.least", "ReduceMin", to_means, axes=[1], keepdims=1)
    nearest = graph.node(f"{name}.nearest", "Relu", graph.node(f"{name}.distance", "Add", nearest, from_centre))
    usual = graph.shifted(f"{name}.usual", from_centre, layers.usual)
    return graph.node(name, "Squeeze", graph.node(f"{name}.ratio", "Div", nearest, usual), "axis1")
