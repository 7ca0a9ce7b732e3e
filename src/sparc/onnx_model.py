"""Answers through onnxruntime: from graphs that numpy makes of a model file, without torch.

Making a graph takes as long as some hundred pictures, so it is kept in the user's cache under the file's checksum.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from sparc import graph_cache
from sparc.data.pictures import Kept, Pixels
from sparc.graph import STACK
from sparc.model_info import ModelInfo
from sparc.nn.lite0 import FEATURES
from sparc.nn.lite0_weights import SHA256
from sparc.ready import Floats
from sparc.runtime import imported
from sparc.stored_model import StoredModel, Tensors

VERSION = 2
"""Of graphs; another number whenever they answer otherwise, or those that are kept would be used still."""
LARGEST = 2**31 - 2**20
"""Bytes of weights: a protobuf message ends at 2 GiB."""
MAP_BYTES = 3 << 20
"""The largest map at any time: so many pictures are taken at once. With 5 memories, 1, 2, 4, 8, 16 and 32 of 32 × 32 at
once take 4.8, 4.1, 3.8, 4.0, 4.4 and 4.2 ms each."""
START_PICTURES = 4
"""That a start looks at at once."""
KEPT_PICTURES = 256
"""Whose features are asked for, and kept, at once."""


class NoRuntimeError(Exception):
    """onnxruntime, or what graphs are made with, is not there, or it cannot take this model."""


class OnnxNet:
    """A graph, and once it is asked something, onnxruntime's session of it."""

    def __init__(self, content: bytes, threads: int) -> None:
        self.content = content
        self.threads = threads

    def __call__(self, given: Kept, at_once: int) -> list[Floats]:
        """All outputs but probabilities, for so many rows at once."""
        (name,) = (each.name for each in self.session.get_inputs())
        outputs = [each.name for each in self.session.get_outputs() if each.name != "probabilities"]
        pieces = [
            self.session.run(outputs, {name: np.ascontiguousarray(given[start : start + at_once])})
            for start in range(0, max(len(given), 1), at_once)
        ]
        return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]

    @cached_property
    def session(self) -> Any:
        runtime = _imported("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors, which are raised as well
        # A thread that waits for another would keep a core busy that others may need.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return runtime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])

    def __getstate__(self) -> dict[str, Any]:
        """Without the session, which cannot be copied."""
        return {"content": self.content, "threads": self.threads}


class OnnxModel:
    """A model as its graphs: one, or with a start that of the start and that of the rest."""

    def __init__(self, info: ModelInfo, start: OnnxNet | None, rest: OnnxNet, stack: int = STACK) -> None:
        """`stack` working memories at the most are side by side."""
        self.info = info
        self.start = start
        self.rest = rest
        self.stack = stack

    def look(self, images: Pixels, cache: bool) -> Kept:
        if self.start is None:
            return images
        if not len(images):
            return np.empty((0, FEATURES), np.float32)
        return np.concatenate(
            [
                self._recalled(images[start : start + KEPT_PICTURES], cache)
                for start in range(0, len(images), KEPT_PICTURES)
            ]
        )

    def answer(self, looked: Kept) -> tuple[Floats, Floats | None]:
        if not len(looked):
            return np.empty((0, len(self.info.classes)), np.float32), None
        at_once = len(looked) if looked.ndim == 2 else _pictures_at_once(self.info, self.stack)
        scores, *strangeness = self.rest(looked, at_once)
        return scores, strangeness[0] if strangeness else None

    def _recalled(self, images: Pixels, cache: bool) -> Floats:
        start = self.start
        assert start is not None
        if not cache:
            return start(images, START_PICTURES)[0]
        from sparc.nn import feature_cache  # which needs a database, as models without a start do not

        return feature_cache.recalled(
            [self._key(image) for image in images],
            FEATURES,
            lambda new: start(images[new], START_PICTURES)[0],
        )

    def _key(self, image: Pixels) -> bytes:
        """By the pixels, and by all that features depend on."""
        size = self.info.settings.start_size
        made = "onnxruntime", _imported("onnxruntime").__version__, VERSION, SHA256, size, image.shape
        return hashlib.sha256(repr(made).encode() + image.tobytes()).digest()


def of_file(stored: StoredModel, cache: bool = True, ask: float = 1.0) -> OnnxModel:
    """A model as it was stored; with a `cache`, from graphs that are kept. Where `ask` is below 1 only some working
    memories are asked, and the graph is not kept.
    """
    # When something is forgotten the graph goes that is kept under the file's digest; others would stay behind.
    keep = graph_cache.recalled if cache and ask == 1 else _made
    return _model(stored.info, lambda: stored.tensors, keep, stored.sha256, usual_threads(), ask)


def of_tensors(info: ModelInfo, tensors: Tensors, threads: int) -> OnnxModel:
    """A model that is in memory, from tensors by the names that they have in a file."""
    return _model(info, lambda: tensors, _made, "", threads)


def usual_threads() -> int:
    """As many as whoever started the process allows, or 0 for as many as onnxruntime finds good."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return int(allowed) if allowed.isdecimal() else 0


def _model(
    info: ModelInfo,
    tensors: Callable[[], Tensors],
    keep: Callable[[str, Callable[[], bytes]], bytes],
    digest: str,
    threads: int,
    ask: float = 1.0,
) -> OnnxModel:
    _imported("onnxruntime")
    has_memories = any(task.seen is not None for task in info.tasks)
    in_parts = info.settings.start != "nothing" and not has_memories

    def rest() -> bytes:
        from sparc.folded import FoldedModel
        from sparc.graph.model import readout_graph, whole_graph  # needed once in a model's life

        model = FoldedModel.of(info, tensors())
        if model.nbytes() > LARGEST:
            raise NoRuntimeError("it is larger than a graph may be")
        return _serialized(lambda: readout_graph(model) if in_parts else whole_graph(model, ask))

    def of_start() -> bytes:
        from sparc.graph.model import start_graph

        return _serialized(lambda: start_graph(info))

    def net(about: str, make: Callable[[], bytes]) -> OnnxNet:
        key = _key_of(about)
        if keep is not _made:
            try:
                return _opened(keep(key, make), threads)
            except NoRuntimeError:
                graph_cache.drop(key)  # the graph that was kept may be to blame
        return _opened(make(), threads)

    start = None
    if in_parts:
        side, size = info.settings.start_size, info.shape.image_size
        start = net(f"start {SHA256} {side} {size}", of_start)
    return OnnxModel(info, start, net(_model_of(digest), rest), STACK if ask == 1 else 1)


def drop_graph(digest: str) -> None:
    """Take away what is kept of a model file that had this checksum."""
    graph_cache.drop(_key_of(_model_of(digest)))


def _model_of(digest: str) -> str:
    return f"model {digest}"


def _key_of(about: str) -> str:
    return hashlib.sha256(repr((VERSION, about)).encode()).hexdigest()


def _opened(content: bytes, threads: int) -> OnnxNet:
    found = OnnxNet(content, threads)
    try:
        found.session  # noqa: B018
    except Exception as error:  # of whatever kind: onnxruntime has many
        raise NoRuntimeError("onnxruntime does not take its graph") from error
    return found


def _made(_: str, make: Callable[[], bytes]) -> bytes:
    return make()


def _serialized(graph: Callable[[], Any]) -> bytes:
    """Without what it says of classes and tasks, which the model file has: names are not kept elsewhere."""
    _imported("onnx")
    made = graph()
    del made.metadata_props[:]
    if made.ByteSize() > LARGEST:
        raise NoRuntimeError("it is larger than a graph may be")
    content: bytes = made.SerializeToString()
    return content


def _imported(package: str) -> Any:
    try:
        return imported(package)
    except ImportError as error:
        raise NoRuntimeError(f"{package} is not installed") from error


def _pictures_at_once(info: ModelInfo, stack: int) -> int:
    """As many as keep the largest map, of a stack of working memories, within bounds."""
    memories = sum(task.seen is not None for task in info.tasks)
    filters = info.units[0].own + info.units[0].shared
    height, width = info.shape.image_size
    looks = 2 if info.settings.mirrors(info.flip) else 1
    return max(1, MAP_BYTES // (4 * filters * height * width * looks * min(max(memories, 1), stack)))
