"""Scores that only some working memories are asked for: for each picture those whose classes are likely by patches.

Fifty memories are fifty passes. What patches say of a picture takes a few of them, and tells which memories can hardly
have its class; who is not asked has no say, as if there were no such memory.

Shapes: B pictures, K working memories, L classes, N ≤ B pictures that a memory is asked about.
"""

import numpy as np

from sparc.graph.answers import Answers
from sparc.graph.builder import Branch
from sparc.graph.memories import NEVER, Stack
from sparc.graph.mirror import with_mirrored
from sparc.nn import roll


class Asked(Answers):
    """The scores of a model whose pictures and common features are nodes of a graph already."""

    def scores_by(self, share: float, x: str, common: str) -> str:
        """[B, L], where the memories that are asked have this share of what is likely."""
        posterior = self._posterior(common, self.model.discriminants[-1])
        asked = self._asked(posterior, share)
        said = self._said(x, posterior, asked)
        in_portion = self._heard_together("in_portion", said, asked, posterior, by_trust=False)
        if all(head.trust == 1 for head in self.heads):
            return in_portion
        return self._by_portion(self._heard_together("among_all", said, asked, posterior, by_trust=True), in_portion)

    def _asked(self, posterior: str, share: float) -> str:
        """[B, K], 1 or 0: a memory is asked where those that are likelier have less than the share of all."""
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
        enough = graph.node("not_enough", "Less", before, graph.scaled("enough", total, share))
        return graph.node("asked", "Cast", enough, to=self._float)

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
            otherwise = Branch(f"{name}.not.")
            otherwise.ends_with(otherwise.node("said", "Identity", silence))
            found.append(graph.either(f"{name}.said", is_wanted, self._one(number, x, silence, asked), otherwise))
        return found

    def _one(self, number: int, x: str, silence: str, asked: str) -> Branch:
        """A memory that is asked about some pictures."""
        graph = Branch(f"memory{number}.")
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
        return graph.ends_with(graph.node("said.in_place", "ScatterND", silence, rows, together))

    def _heard_together(self, name: str, said: list[str], asked: str, posterior: str, by_trust: bool) -> str:
        """The most that a head says of a class, and the mean of what those discriminants say that know it; of all that
        are asked.
        """
        graph = self.graph
        half = [graph.constant(f"half{edge}", np.array([edge * self.classes])) for edge in range(3)]
        along = graph.constant("axis1", np.array([1]))
        heads = [graph.node(f"{name}.{each}.head", "Slice", each, half[0], half[1], along) for each in said]
        loudest = graph.node(f"{name}.loudest", "Max", *heads)
        speaks = graph.node(f"{name}.speaks", "Greater", loudest, graph.constant("hardly", NEVER / 2))
        counts = roll.head_counts(self.heads, by_trust)
        rest = graph.weight(f"{name}.rest", np.float32(roll.REST * counts))
        best = graph.node(f"{name}.best", "Where", speaks, graph.scaled(f"{name}.counted", loudest, counts), rest)
        counted = np.zeros((len(said), self.classes), np.float32)
        heard = [posterior]
        if self._has_voices:
            for number, (say, each) in enumerate(zip(self.voices, said, strict=False)):
                counted[number, list(say.classes)] = say.counts(by_trust)
                voice = graph.node(f"{name}.{each}.voice", "Slice", each, half[1], half[2], along)
                heard.append(graph.scaled(f"{name}.{each}.heard", voice, say.counts(by_trust)))
        total = graph.node(f"{name}.sum", "Sum", *heard)
        answers = graph.node(f"{name}.answers", "MatMul", asked, graph.weight(f"{name}.counts", counted))
        mean = graph.node(f"{name}.mean", "Div", total, graph.shifted(f"{name}.and_common", answers, 1.0))
        return graph.node(name, "Add", best, mean)
