"""One run: from a config to a folder with its result."""

import hashlib
import json
import platform
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from sparc import __version__
from sparc.data import benchmarks
from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.progress import Progress, no_progress
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.experiment.config import RunConfig
from sparc.experiment.result import Result, read_result, triangle
from sparc.files import check_writable, write_atomic
from sparc.methods import METHODS, Method
from sparc.train import Observer, StageReport, Trainer, TrainingReport, seeded


@dataclass(frozen=True)
class Finished:
    """A result and where it lies."""

    result: Result
    folder: Path
    was_there: bool
    """An earlier run that could only have come out the same; nothing was run."""
    splits: Splits
    """The pictures, for the next run on the same ones."""

    @property
    def picture(self) -> Path:
        return self.folder / "result.png"


def run(
    config: RunConfig,
    out: Path,
    data: Path | None = None,
    device: str = "cpu",
    fresh: bool = False,
    progress: Progress = no_progress,
    observe: Callable[[int], Observer] = lambda tasks: Observer(),
    splits: Splits | None = None,
) -> Finished:
    """Run what is not there yet. Nothing is written before it has ended well.

    Pictures that an earlier run of the same benchmark has loaded can be handed on as `splits`.
    """
    benchmark = benchmarks.find(config.benchmark)
    check_writable(out, "--out")
    place = _device(device)
    if splits is None:
        splits = benchmark.load(data, config.stream.image_size, progress)
    stream = config.stream.cut(splits, benchmark)
    augment = benchmark.augment(stream[0])
    fingerprint = _fingerprint(splits)
    folder = out / _folder_name(config, benchmark.name, stream, augment, fingerprint, device)
    if (folder / "result.json").exists() and not fresh:
        return Finished(read_result(folder / "result.json"), folder, True, splits)
    method = METHODS.find(config.method)(
        config.settings, splits.train.channels, splits.train.size, seeded(config.seed, "method")
    ).to(place)
    log = Log(observe(len(stream)))
    reports = Trainer(method, config.recipe, augment, config.seed, log).run(stream)
    about_data = {
        "fingerprint": fingerprint,
        "train": len(splits.train),
        "test": len(splits.test),
        "image_size": list(splits.train.size),
        "augment": asdict(augment),
    }
    result = _result(config, stream, method, reports, about_data, device)
    write_atomic(folder / "log.jsonl", "".join(json.dumps(line) + "\n" for line in log.lines).encode())
    result.write(folder / "result.json")
    return Finished(result, folder, False, splits)


class Log(Observer):
    """A line an epoch and a line a task, beside whatever another observer does."""

    def __init__(self, inner: Observer) -> None:
        self.inner = inner
        self.lines: list[dict[str, Any]] = []

    def training(self, report: TrainingReport) -> None:
        if report.epoch_over:
            self.lines.append({"event": "epoch", **asdict(report)})
        self.inner.training(report)

    def stage(self, report: StageReport) -> None:
        self.lines.append({"event": "stage", **asdict(report)})
        self.inner.stage(report)


def _folder_name(
    config: RunConfig, benchmark: str, stream: Stream, augment: Augment, fingerprint: str, device: str
) -> str:
    """Named by all that the result depends on, as it was understood, not as it was spelled."""
    content = {
        "method": config.method,
        "settings": asdict(config.settings),
        "recipe": asdict(config.recipe),
        "seed": config.seed,
        "sizes": stream.sizes,
        "order": stream.class_names,
        "validation": config.stream.validation,
        "augment": asdict(augment),
        "data": fingerprint,
        # Sums in another order round otherwise.
        "threads": torch.get_num_threads(),
        "device": device,
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]
    plain = re.sub(r"[^\w.-]+", "-", benchmark)[:60]
    return f"{plain}-{config.method}-seed{config.seed}-{digest}"


def _result(
    config: RunConfig, stream: Stream, method: Method, reports: list[StageReport], data: dict[str, Any], device: str
) -> Result:
    costs = method.costs()
    held_out = [report.validation for report in reports if report.validation]
    return Result(
        config=config.as_json(),
        class_names=list(stream.class_names),
        sizes=stream.sizes,
        class_il=triangle([report.test.class_il for report in reports]),
        task_il=triangle([report.test.task_il for report in reports]),
        validation={
            "class_il": triangle([evaluation.class_il for evaluation in held_out]),
            "task_il": triangle([evaluation.task_il for evaluation in held_out]),
        }
        if held_out
        else None,
        landings=reports[-1].test.landings,
        parameters=costs.parameters,
        parameters_by_owner=method.parameters_by_owner(),
        passes={"forward": costs.forward, "backward": costs.backward},
        buffer_bytes=costs.buffer_bytes,
        seconds={
            "train": [report.train_seconds for report in reports],
            "test": [report.test_seconds for report in reports],
        },
        state_sha256=state_digest(method),
        data=data,
        environment={
            "sparc": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "machine": f"{platform.system()} {platform.machine()}",
            "device": device,
            "threads": torch.get_num_threads(),
        },
    )


def state_digest(method: Method) -> str:
    """A digest of the whole state, to the bit."""
    digest = hashlib.sha256()
    for name, value in sorted(method.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _fingerprint(splits: Splits) -> str:
    return hashlib.sha256((splits.train.fingerprint() + splits.test.fingerprint()).encode()).hexdigest()


def _device(name: str) -> torch.device:
    try:
        device = torch.ones(1, device=name)
        assert device.item() == 1
        return device.device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"--device {name} cannot be used here: leave it out to use the processor") from error
