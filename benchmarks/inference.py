"""How fast it answers in torch: row 4, and how that grows."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Generator, Tensor

from benchmarks.measure import Job, Row, Size, Workers, extremes, in_turns, ratio
from benchmarks.plain import plain_copy
from sparc.export import export_onnx
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import LearnedTask, Model, ModelInfo
from sparc.model_input import InputShape
from sparc.nn.chorus import ChorusNet
from sparc.nn.inference import InferenceNet
from sparc.nn.layout import suitable_depth
from sparc.nn.resnet import ResNet
from sparc.nn.roll import ENOUGH

CLASSES = 5
"""Of each task."""
MANY = 16
"""Pictures at once from which a job takes seconds, so that few rounds will do."""
FEW_ROUNDS = 3


def inference_rows(size: Size, workers: Workers) -> list[Row]:
    rows = []
    for batch in size.batches:
        many = batch >= MANY
        of_memories = {}
        for count in size.memories:
            jobs = {"loop": workers.ours, "ours": workers.ours}
            workers.ours.make("loop", loop, size, count, batch)
            workers.ours.make("ours", ours, size, count, batch)
            if count == size.memories[0]:
                workers.usual.make("plain", plain_loop, size, count, batch)
                jobs["plain"] = workers.usual
            if count == size.memories[-1]:
                workers.ours.make("resnet", resnet, size, batch)
                jobs["resnet"] = workers.ours
            seconds = in_turns(jobs, FEW_ROUNDS if many else 2 * size.rounds)
            faster = ratio(seconds["loop"], seconds["ours"])
            of_memories[count] = median(seconds["ours"])
            others = {f"times {name}": ratio(seconds[name], seconds["ours"]) for name in jobs if name != "ours"}
            figures = {
                **others,
                "ms": 1000 * of_memories[count],
                **extremes("times loop", seconds["loop"], seconds["ours"]),
            }
            measured = f"{faster:.2f} × ({1000 * of_memories[count] / batch:.2f} ms a picture)"
            if count == size.memories[0]:
                measured += f"; {others['times plain']:.2f} × of plain modules with the usual malloc"
            what = f"Class-IL inference, {count} memories, batch {batch}, against a loop"
            rows.append(Row("4", what, measured, "≥ 3 ×", faster >= 3, figures))
        fewest, most = size.memories[0], size.memories[-1]
        equal = median(seconds["resnet"]) / (of_memories[most] / most)
        rows.append(
            Row(
                "4", f"memories that cost as much as one ResNet-18, batch {batch}", f"{equal:.0f}", figures={"K": equal}
            )
        )
        growth = (of_memories[most] / most) / (of_memories[fewest] / fewest)
        rows.append(
            Row(
                "6",
                f"evaluation, batch {batch}: time a memory at {most} against {fewest}",
                f"{growth:.2f} ×",
                "linear, ≤ 1.1 ×",
                growth <= 1.1,
                {"times": growth},
            )
        )
    return rows


def learned(size: Size, count: int) -> ChorusNet:
    net = info_of(size, count).new_net(Generator().manual_seed(0))
    for _ in range(count):
        net.add_task(CLASSES).freeze()
    return net.eval()


def batch_of(size: Size, batch: int) -> Tensor:
    return torch.rand(batch, 3, size.image, size.image, generator=Generator().manual_seed(1))


def loop(size: Size, count: int, batch: int) -> Job:
    """One working memory after another, as they were trained."""
    return _answering(learned(size, count), batch_of(size, batch))


def plain_loop(size: Size, count: int, batch: int) -> Job:
    net = learned(size, count)
    memories = [plain_copy(net, task).eval() for task in range(count)]
    return _answering(lambda images: torch.cat([memory(images) for memory in memories], dim=1), batch_of(size, batch))


def ours(size: Size, count: int, batch: int) -> Job:
    return _answering(InferenceNet.of(learned(size, count)), batch_of(size, batch))


def resnet(size: Size, batch: int) -> Job:
    """One of 64 filters, whatever the width of the working memories."""
    net = ResNet(3, (size.image, size.image), width=1)
    net.add_classes(CLASSES)
    return _answering(net.eval(), batch_of(size, batch))


def onnx_answering(model: Model, images: Tensor, batch: int) -> Job:
    """All scores of these pictures, so many at once, in onnxruntime on one thread."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path, images[:2])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])

    def answer() -> None:
        for piece in images.split(batch):
            session.run(["scores"], {"images": piece.numpy()})

    return answer


def info_of(size: Size, count: int) -> ModelInfo:
    shape = InputShape(3, (size.image, size.image))
    depth = suitable_depth(shape.image_size)
    settings = ChorusSettings(
        width=size.width, depth=depth, inherit="nothing", statistics=0, patches=0, mirror=False
    )  # as SPARC's
    tasks = tuple(
        LearnedTask(
            f"task {task}",
            tuple(f"class {task}.{label}" for label in range(CLASSES)),
            pictures=(10,) * CLASSES,
            held_out=0,
            accuracy_in_task=None,
            accuracy_in_all=None,
            learned="2026-01-01T00:00:00+00:00",
            epochs=1,
            seconds=1.0,
            share_in_semantic=0.1,
            seen=ENOUGH,
        )
        for task in range(count)
    )
    return ModelInfo(shape, settings, (0.5,) * 3, (0.25,) * 3, tasks=tasks)


def _answering(net: Callable[[Tensor], Tensor], images: Tensor) -> Job:
    """As an evaluation does it: nothing is kept for gradients."""

    def answer() -> None:
        with torch.inference_mode():
            net(images)

    return answer
