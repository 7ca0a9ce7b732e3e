"""Whole graphs of a model: from pictures to answers, or with a start in two parts, what it finds and what follows."""

import json
from typing import Any

import numpy as np

from sparc import __version__
from sparc.folded import FoldedModel
from sparc.graph.answers import Answers, strangeness
from sparc.graph.asked import Asked
from sparc.graph.builder import Graph
from sparc.graph.common import patch_features, start_features
from sparc.graph.memories import stacks
from sparc.graph.mirror import with_mirrored
from sparc.model_info import ModelInfo
from sparc.nn import lite0
from sparc.nn.lite0_weights import lite0_weights

FORMAT = "sparc-onnx"
VERSION = 1
SHARES = (0.8, 0.9, 0.95, 0.99)
"""Of pictures of known classes, for which it is said how strange they are at the most."""


def whole_graph(model: FoldedModel, ask: float = 1.0) -> Any:
    """From uint8 pictures to scores, probabilities and strangeness.

    Where `ask` is below 1 only the working memories are asked, for each picture, that have this share of what is likely
    by common features.
    """
    graph, info = Graph(), model.info
    x = _normalized(graph, info)
    both = with_mirrored(graph, x, info.shape.image_size[1]) if model.mirror else x
    common = None
    if model.patches is not None:
        common = patch_features(graph, "patches", both, model.patches, info.shape.image_size, model.mirror)
    elif model.has_start:
        weights, side = lite0.folded(lite0_weights()), info.settings.start_size
        common = start_features(graph, "start", x, weights, side, info.shape.image_size)
    if ask < 1 and common is not None:
        scores = Asked(graph, model).scores_by(ask, x, common)
    else:
        memories = [(stack, *stack.features(both)) for stack in stacks(graph, model)]
        scores = Answers(graph, model).scores(memories, common)
    graph.node("scores", "Identity", scores)
    return _finished(graph, model, common, {"images": (np.uint8, _shape(info))})


def start_graph(info: ModelInfo) -> Any:
    """From uint8 pictures to what the start finds in them; it is the same for all models with its size and theirs."""
    graph = Graph()
    x = graph.node("floats", "Cast", "images", to=graph.onnx.TensorProto.FLOAT)
    weights = lite0.folded(lite0_weights())
    found = start_features(graph, "start", x, weights, info.settings.start_size, info.shape.image_size)
    graph.node("features", "Identity", found)
    return graph.model({"images": (np.uint8, _shape(info))}, {"features": ["batch", lite0.FEATURES]})


def readout_graph(model: FoldedModel) -> Any:
    """From what the start has found to scores, probabilities and strangeness."""
    graph = Graph()
    graph.node("scores", "Identity", Answers(graph, model).scores([], "features"))
    return _finished(graph, model, "features", {"features": (np.float32, ["batch", lite0.FEATURES])})


def _shape(info: ModelInfo) -> list[str | int]:
    return ["batch", info.shape.channels, *info.shape.image_size]


def _normalized(graph: Graph, info: ModelInfo) -> str:
    """The numbers of Augment.normalize, in its order."""
    shift = graph.weight("shift", np.array(info.mean, np.float32)[:, None, None] * np.float32(255))
    scale = graph.weight("scale", 1 / (np.array(info.std, np.float32)[:, None, None] * np.float32(255)))
    x = graph.node("floats", "Cast", "images", to=graph.onnx.TensorProto.FLOAT)
    return graph.node("normalized", "Mul", graph.node("centred", "Sub", x, shift), scale)


def _finished(graph: Graph, model: FoldedModel, common: str | None, inputs: Any) -> Any:
    """With probabilities, strangeness, and all that a reader needs to know."""
    info = model.info
    graph.node("probabilities", "Softmax", graph.scaled("calibrated", "scores", 1 / info.temperature), axis=1)
    outputs: dict[str, list[str | int]] = {name: ["batch", len(info.classes)] for name in ("scores", "probabilities")}
    if model.strangeness is not None and common is not None:
        strangeness(graph, "strangeness", common, model.strangeness)
        outputs["strangeness"] = ["batch"]
    facts = {
        "format": FORMAT,
        "version": str(VERSION),
        "producer": f"sparc {__version__}",
        "classes": json.dumps(info.classes, ensure_ascii=False),
        "tasks": json.dumps([task.name for task in info.tasks], ensure_ascii=False),
        "image_size": json.dumps(info.shape.image_size),
        "fit": info.shape.fit,
        "temperature": str(info.temperature),
    }
    if model.strangeness is not None and info.limit(SHARES[0]) is not None:
        facts["none_of_these_above"] = json.dumps({str(share): info.limit(share) for share in SHARES})
    return graph.model(inputs, outputs, facts)
