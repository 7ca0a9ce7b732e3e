"""How fast a model answers through onnxruntime: row 5, against what one would pick instead."""

import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.inference import FEW_ROUNDS, MANY, batch_of, info_of, learned, loop, ours
from benchmarks.measure import Job, Row, Size, Timer, Workers, extremes, in_turns, ratio
from sparc.graph.builder import Graph
from sparc.graph.model import start_graph
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import Model, tensors_of
from sparc.model_info import ModelInfo
from sparc.model_input import InputShape
from sparc.nn.lite0_weights import are_installed
from sparc.onnx_model import OnnxNet, of_tensors
from sparc.text import counted

AIMS = {(5, 1): 7.0, (5, 256): 1.5}
"""How many times as fast as a loop over the memories as trained, for so many memories and pictures at once."""
WHAT = "answering in onnxruntime"
Makers = dict[str, tuple[Callable[..., Job], tuple[object, ...]]]
"""Who takes turns: what has the job ready, and of what."""


def answering_rows(size: Size, workers: Workers) -> list[Row]:
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return [Row("5", WHAT, "onnx and onnxruntime are not installed")]
    cases = [(count, batch) for batch in size.answer_batches for count in size.answer_memories]
    with_aims = [case for case in size.answer_aims if case not in cases]
    return [
        *(_row(size, workers, *case) for case in (*cases, *with_aims)),
        *(_two_threads_row(size, workers, *case) for case in cases),
    ]


def _row(size: Size, workers: Workers, count: int, batch: int) -> Row:
    makers: Makers = {
        "onnx": (answering, (size, count, batch)),
        "loop": (loop, (size, count, batch)),
        "torch": (ours, (size, count, batch)),
        **_others(size, batch),
    }
    seconds = _seconds(size, workers, count, batch, makers)
    times = {name: ratio(seconds[name], seconds["onnx"]) for name in makers if name != "onnx"}
    milliseconds = 1000 * median(seconds["onnx"]) / batch
    aim = AIMS.get((count, batch))
    return Row(
        "5",
        f"{WHAT}, {counted(count, 'memory', 'memories')}, batch {batch}, against a loop in torch",
        f"{times['loop']:.2f} × ({milliseconds:.2f} ms a picture), our form in torch {times['torch']:.2f}; "
        + _compared(times, "loop", "torch"),
        "" if aim is None else f"≥ {aim:g} ×",
        None if aim is None else times["loop"] >= aim,
        {"ms": milliseconds, **times, **extremes("times loop", seconds["loop"], seconds["onnx"])},
    )


def _two_threads_row(size: Size, workers: Workers, count: int, batch: int) -> Row:
    makers: Makers = {
        "one": (answering, (size, count, batch)),
        "two": (answering, (size, count, batch, 2)),
        "loop": (loop_on_two, (size, count, batch)),
        **_others(size, batch, threads=2),
    }
    seconds = _seconds(size, workers, count, batch, makers, time.perf_counter)
    times = {name: ratio(seconds[name], seconds["two"]) for name in makers if name != "two"}
    milliseconds = 1000 * median(seconds["two"]) / batch
    return Row(
        "5",
        f"{WHAT}, {counted(count, 'memory', 'memories')}, batch {batch}, two threads against one, by the clock",
        f"{times['one']:.2f} × ({milliseconds:.2f} ms a picture); with two threads as well a loop in torch takes "
        f"{times['loop']:.2f} × as long, {_compared(times, 'loop', 'one')}",
        figures={"ms": milliseconds, **times, **extremes("times one", seconds["one"], seconds["two"])},
    )


def _others(size: Size, batch: int, threads: int = 1) -> Makers:
    """What one would pick instead."""
    found: Makers = {"ResNet-18": (resnet, (size, batch, threads))}
    return {**found, "EfficientNet-Lite0": (lite0, (size, batch, threads))} if are_installed() else found


def _seconds(
    size: Size, workers: Workers, count: int, batch: int, makers: Makers, timer: Timer = time.process_time
) -> dict[str, list[float]]:
    for name, (maker, arguments) in makers.items():
        workers.ours.make(name, maker, *arguments)
    many = batch * count >= 4 * MANY
    return in_turns(dict.fromkeys(makers, workers.ours), FEW_ROUNDS if many else 2 * size.rounds, timer=timer)


def _compared(times: Mapping[str, float], *besides: str) -> str:
    """How long others take, but for those that are told of already."""
    return ", ".join(f"{name} takes {times[name]:.2f} × as long" for name in times if name not in besides)


def loop_on_two(size: Size, count: int, batch: int) -> Job:
    """A loop in torch, whose kernels are shared out among two threads."""
    answer = loop(size, count, batch)

    def on_two() -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            answer()
        finally:
            torch.set_num_threads(before)

    return on_two


def answering(size: Size, count: int, batch: int, threads: int = 1) -> Job:
    """As `sparc predict` and `ContinualClassifier` do it, once the graph is there."""
    model = Model(learned(size, count), info_of(size, count))
    tensors = {name: tensor.numpy() for name, tensor in tensors_of(model.net).items()}
    ready = of_tensors(model.info, tensors, threads)
    images = _pixels(size, batch)
    return lambda: ready.answer(images)


def resnet(size: Size, batch: int, threads: int = 1) -> Job:
    """The field's ResNet-18, of 64 filters, for small pictures: no stride and no pooling at the start."""
    random, graph = np.random.default_rng(0), Graph()

    def conv(name: str, x: str, channels: int, filters: int, kernel: int, stride: int = 1) -> str:
        weight = random.normal(0, (2 / (filters * kernel**2)) ** 0.5, (filters, channels, kernel, kernel))
        kept = graph.weight(f"{name}.weight", weight), graph.weight(f"{name}.bias", np.zeros(filters))
        return graph.node(name, "Conv", x, *kept, pads=[kernel // 2] * 4, strides=[stride] * 2)

    x = graph.node("floats", "Cast", "images", to=graph.onnx.TensorProto.FLOAT)
    x = graph.node("stem.relu", "Relu", conv("stem", x, 3, 64, 3))
    channels = 64
    for number in range(8):
        filters, stride = 64 << (number // 2), 2 if number in (2, 4, 6) else 1
        out = graph.node(f"{number}.inner", "Relu", conv(f"{number}.first", x, channels, filters, 3, stride))
        out = conv(f"{number}.second", out, filters, filters, 3)
        x = conv(f"{number}.shortcut", x, channels, filters, 1, stride) if stride > 1 else x
        x = graph.node(f"{number}.relu", "Relu", graph.node(f"{number}.sum", "Add", out, x))
        channels = filters
    x = graph.node("pool", "ReduceMean", x, axes=[2, 3], keepdims=0)
    graph.linear("scores", x, random.normal(0, 0.05, (100, channels)), np.zeros(100))
    shape = ["batch", 3, size.image, size.image]
    content = graph.model({"images": (np.uint8, shape)}, {"scores": ["batch", 100]}).SerializeToString()
    return _running(content, _pixels(size, batch), 8, threads)


def lite0(size: Size, batch: int, threads: int = 1) -> Job:
    """EfficientNet-Lite0 at the 224 pixels that it was trained with."""
    info = ModelInfo(
        InputShape(3, (size.image, size.image)), ChorusSettings(start="lite0", depth=1), (0.0,) * 3, (1 / 255,) * 3
    )
    return _running(start_graph(info).SerializeToString(), _pixels(size, batch), 4, threads)


def _running(content: bytes, images: NDArray[np.uint8], at_once: int, threads: int) -> Job:
    net = OnnxNet(content, threads)
    return lambda: net(images, at_once)


def _pixels(size: Size, batch: int) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = batch_of(size, batch).mul(255).to(torch.uint8).numpy()
    return pixels
