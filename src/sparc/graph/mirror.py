"""Pictures and their mirror images, as a node."""

import numpy as np

from sparc.graph.builder import Graph


def with_mirrored(graph: Graph, x: str, width: int) -> str:
    """All pictures, and then their mirror images."""
    backwards = graph.weight("backwards", np.arange(width)[::-1])
    return graph.node("both", "Concat", x, graph.node("mirrored", "Gather", x, backwards, axis=3), axis=0)
