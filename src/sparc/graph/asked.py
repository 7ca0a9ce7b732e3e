"""Scores that only some working memories are asked for: for each picture those whose classes are likely by patches.

Fifty memories are fifty passes. What patches say of a picture takes a few of them, and tells which memories can hardly
have its class; who is not asked has no say in its scores. How much heads count is the mean over all, asked or not.

Shapes: B pictures, K working memories, L classes, N ≤ B pictures that a memory is asked about.
"""

from collections.abc import Sequence

import numpy as np

from sparc.graph.answers import Answers
from sparc.graph.builder import Body, Graph
from sparc.graph.memories import NEVER, Stack
from sparc.graph.mirror import with_mirrored
from sparc.nn import roll


class Asked(Answers):
    """The scores of a model whose pictures and common features are nodes of a graph already."""

    def scores_by(self, ask: float, x: str, common: str) -> str:
        """[B, L], where the memories that are asked have this share of what is likely."""
        posterior = self._posterior(common, self.model.discriminants[-1])
        asked = self._asked(posterior, ask)
        heads, voices = self._halves(self._said(x, posterior, asked))
        loudest = self.graph.node("loudest", "Max", *heads)

        def together(name: str, by_trust: bool) -> str:
            best = self._best(name, loudest, by_trust)
            return self.graph.node(name, "Add", best, self._mean(name, voices, asked, posterior, by_trust))

        in_portion = together("in_portion", by_trust=False)
        if all(head.trust == 1 for head in self.heads):
            return in_portion
        return self._by_portion(together("among_all", by_trust=True), in_portion)

    def _asked(self, posterior: str, ask: float) -> str:
        """[B, K], 1 or 0: a memory is asked where those that are likelier have less than the share, of what is likely
        among classes that memories were trained with.
        """
        graph = self.graph
        speaks = np.zeros((self.classes, len(self.heads)), np.float32)
        for number, head in enumerate(self.heads):
            speaks[list(head.classes), number] = 1
        mass = graph.node("mass", "MatMul", graph.node("likely", "Exp", posterior), graph.weight("speaks", speaks))
        mine, others = (
            graph.node(f"mass{axis}", "Unsqueeze", mass, graph.constant(f"axis{axis}", np.array([axis])))
            for axis in (2, 1)
        )
        likelier = graph.node("likelier", "Cast", graph.node("more", "Greater", others, mine), to=self._float)
        before = graph.summed("before", graph.node("of_likelier", "Mul", likelier, others), axis=2)
        total = graph.summed("mass_of_all", mass, axis=1, keepdims=True)
        is_asked = graph.node("is_asked", "Less", before, graph.scaled("limit", total, ask))
        return graph.node("asked", "Cast", is_asked, to=self._float)

    @property
    def _float(self) -> int:
        return int(self.graph.onnx.TensorProto.FLOAT)

    def _said(self, x: str, posterior: str, asked: str) -> list[str]:
        """[B, 2 L] of each memory: what its head says of each class, or NEVER, and what its discriminants do, or 0."""
        graph = self.graph
        nothing = np.repeat(np.array([NEVER, 0], np.float32), self.classes)[None]
        twice = graph.node("posterior.twice", "Concat", posterior, posterior, axis=1)
        silence = graph.node(
            "silence", "Expand", graph.weight("nothing", nothing), graph.node("two_each", "Shape", twice)
        )
        some = graph.node("asked.of", "ReduceMax", asked, axes=[0], keepdims=0)
        wanted = graph.node("wanted", "Cast", some, to=graph.onnx.TensorProto.BOOL)
        found = []
        for number in range(len(self.heads)):
            name = f"memory{number}"
            is_wanted = graph.node(
                f"{name}.wanted", "Gather", wanted, graph.weight(f"{name}.number", np.array(number)), axis=0
            )
            nobody = Graph(f"{name}.not.")
            otherwise = nobody.body(nobody.node("said", "Identity", silence))
            found.append(graph.either(f"{name}.said", is_wanted, self._one(number, x, silence, asked), otherwise))
        return found

    def _one(self, number: int, x: str, silence: str, asked: str) -> Body:
        """A memory that is asked about some pictures."""
        graph = Graph(f"memory{number}.")
        inside = Answers(graph, self.model)
        column = graph.node("column", "Gather", asked, graph.weight("own", np.array(number)), axis=1)
        rows = graph.node("rows", "Transpose", graph.node("nonzero", "NonZero", column), perm=[1, 0])
        flat = graph.reshaped("rows.flat", rows, -1)
        x = graph.node("pictures", "Gather", x, flat, axis=0)
        if self.model.mirror:
            x = with_mirrored(graph, x, self.model.info.shape.image_size[1])
        stack = Stack(graph, self.model, "stack", slice(number, number + 1))
        seen, described = stack.features(x)
        said = [inside.spread("head", stack.logits(seen), self.heads[number].classes, NEVER)]
        if self._has_voices:
            posteriors, known = stack.posteriors(described)
            posteriors = graph.node("posteriors", "Squeeze", posteriors, graph.constant("axis0", np.array([0])))
            said.append(inside.spread("voice", posteriors, known, 0.0))
        else:
            said.append(graph.scaled("no_voice", said[0], 0.0))
        together = graph.node("said.together", "Concat", *said, axis=1)
        return graph.body(graph.node("said.in_place", "ScatterND", silence, rows, together))

    def _halves(self, said: Sequence[str]) -> tuple[list[str], list[str]]:
        """[B, L] each: what heads say, and what discriminants do."""
        edges = [self.graph.weight(f"edge{edge}", np.array([edge * self.classes])) for edge in range(3)]
        along = self.graph.constant("axis1", np.array([1]))
        first, second = (
            [self.graph.node(f"{each}.{part}", "Slice", each, *edges[part : part + 2], along) for each in said]
            for part in range(2)
        )
        return first, second

    def _best(self, name: str, loudest: str, by_trust: bool) -> str:
        """The most that a head says of a class, and what stands for that where none is asked."""
        graph = self.graph
        speaks = graph.node(f"{name}.speaks", "Greater", loudest, graph.constant("hardly", NEVER / 2))
        counts = roll.head_counts(self.heads, by_trust)
        rest = graph.weight(f"{name}.rest", np.float32(roll.REST * counts))
        return graph.node(f"{name}.best", "Where", speaks, graph.scaled(f"{name}.counted", loudest, counts), rest)

    def _mean(self, name: str, voices: Sequence[str], asked: str, common: str, by_trust: bool) -> str:
        """Of what discriminants say that know a class, and are asked, and of what common features say."""
        graph, heard = self.graph, [common]
        counts = np.zeros((len(voices), self.classes), np.float32)
        if self._has_voices:
            for number, (say, voice) in enumerate(zip(self.voices, voices, strict=False)):
                counts[number, list(say.classes)] = say.counts(by_trust)
                heard.append(graph.scaled(f"{name}.{voice}", voice, say.counts(by_trust)))
        total = graph.node(f"{name}.sum", "Sum", *heard)
        answers = graph.node(f"{name}.answers", "MatMul", asked, graph.weight(f"{name}.counts", counts))
        return graph.node(f"{name}.mean", "Div", total, graph.shifted(f"{name}.and_common", answers, 1.0))
