"""The named benchmarks: which data set, cut into how many tasks, seen through which augmentation."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.progress import Progress, no_progress
from sparc.data.sources import Folder
from sparc.data.sources import find as find_source
from sparc.data.stream import Task
from sparc.discovery import unknown
from sparc.errors import InputError


@dataclass(frozen=True)
class Benchmark:
    name: str
    source: str
    """The data set's name, or the path of a folder of class folders."""
    tasks: int
    padding: int = 4
    flip: bool = True
    epochs: int = 50
    schedule: Literal["constant", "cosine"] = "constant"
    """Epochs and schedule are what a run has unless its user says otherwise."""
    mean: tuple[float, ...] | None = None
    """Of the whole data set; without it the first task's own, as nothing of later tasks may be looked at."""
    std: tuple[float, ...] | None = None

    def load(self, data: Path | None = None, image_size: int | None = None, progress: Progress = no_progress) -> Splits:
        """The pictures, from wherever they are."""
        if self.name == "folder":
            return Folder(Path(self.source), image_size).load(progress=progress)
        if image_size is not None:
            raise InputError(f"--image-size is for a folder of pictures: {self.name} has a size of its own")
        return find_source(self.source).load(data, progress)

    def task_count(self, classes: int) -> int:
        """How many tasks there are unless the user says so: a folder has two classes a task at the least."""
        return min(self.tasks, max(classes // 2, 1)) if self.name == "folder" else self.tasks

    def augment(self, first: Task) -> Augment:
        if self.mean is None or self.std is None:
            return Augment.fitted(first.train, self.padding, self.flip)
        return Augment(self.mean, self.std, self.padding, self.flip)


FOLDER = Benchmark("folder", source="", tasks=5)
"""Of one's own pictures; `find` gives it the path."""

_CIFAR100 = Benchmark(
    "seq-cifar100-5", "cifar100", tasks=5, mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762)
)

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        # Digits are neither mirrored nor moved: an 8 × 8 picture has no pixel to spare.
        Benchmark(
            "seq-digits",
            "digits",
            tasks=5,
            padding=0,
            flip=False,
            epochs=30,
            schedule="cosine",
            mean=(0.3052,),
            std=(0.3760,),
        ),
        Benchmark("seq-cifar10", "cifar10", tasks=5, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2615)),
        _CIFAR100,
        *(replace(_CIFAR100, name=f"seq-cifar100-{tasks}", tasks=tasks) for tasks in (10, 20, 50)),
        Benchmark(
            "seq-tinyimagenet", "tinyimagenet", tasks=10, mean=(0.4802, 0.4480, 0.3975), std=(0.2770, 0.2691, 0.2821)
        ),
        Benchmark("seq-miniimagenet", "miniimagenet", tasks=20),
    )
}


def find(name: str) -> Benchmark:
    """The benchmark of that name, or the folder of pictures at that path.

    >>> find("seq-cifar100-20").tasks
    20
    """
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    if Path(name).is_dir():
        return replace(FOLDER, source=str(Path(name).resolve()))
    if "/" in name or name.startswith("."):
        raise InputError(
            f"there is no folder {name}: give a folder with one folder of pictures a class, or a benchmark"
        )
    raise unknown("benchmark", name, BENCHMARKS)
