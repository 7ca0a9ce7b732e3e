"""The named benchmarks: which data set, cut into how many tasks, seen through which augmentation."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sparc.data import sources
from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.progress import Progress, no_progress
from sparc.data.stream import Task, equal_sizes
from sparc.discovery import unknown
from sparc.errors import InputError


@dataclass(frozen=True)
class Benchmark:
    """A stream: a data set, or a folder of one's own, and how it is cut and seen."""

    name: str
    source: str
    """The data set's name."""
    tasks: int = 5
    first: int | None = None
    """Classes of the first task, where it has more than the others; all others are as equal as can be."""
    padding: int = 4
    flip: bool = True
    mean: tuple[float, ...] | None = None
    """Mean of each channel in the whole data set; without it the first task's own, as later tasks may not be seen."""
    std: tuple[float, ...] | None = None
    epochs: int | None = None
    """How many, where a method's usual number does not suit."""
    schedule: Literal["constant", "cosine"] | None = None
    folder: Path | None = None
    """Of pictures of one's own, instead of a data set."""

    def load(self, data: Path | None = None, image_size: int | None = None, progress: Progress = no_progress) -> Splits:
        """The pictures, from wherever they are."""
        if self.folder is not None:
            return sources.Folder(self.folder, image_size).load(progress=progress)
        if image_size is not None:
            raise InputError(f"--image-size is for a folder of pictures: {self.name} has a size of its own")
        return sources.find(self.source).load(data, progress)

    def present(self, data: Path | None = None) -> bool:
        """Whether the pictures are on this machine, in `data` or where they are looked for without it."""
        if self.folder is not None:
            return True
        try:
            return sources.find(self.source).present(data)
        except InputError:
            if data is not None and not data.is_dir():
                raise
            return False  # there, but damaged: loading says what is wrong

    def fetchable(self) -> bool:
        """Whether loading fetches them where they are not present."""
        return self.folder is None and sources.find(self.source).fetchable()

    def task_sizes(self, classes: int) -> tuple[int, ...]:
        """How many classes each task has unless the user says so: fewer tasks where one would have less than two."""
        if self.first is None:
            return tuple(equal_sizes(classes, min(self.tasks, max(classes // 2, 1))))
        return (self.first, *equal_sizes(classes - self.first, self.tasks - 1))

    def augment(self, first: Task) -> Augment:
        if self.mean is None or self.std is None:
            return Augment.fitted(first.train, self.padding, self.flip)
        return Augment(self.mean, self.std, self.padding, self.flip)


_CIFAR100 = Benchmark(
    "seq-cifar100-5", "cifar100", tasks=5, mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762)
)

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark(
            "seq-digits",
            "digits",
            tasks=5,
            # Neither mirrored nor moved: a digit has a left and a right, and 8 × 8 pixels have none to spare.
            padding=0,
            flip=False,
            mean=(0.3052,),
            std=(0.3760,),
            epochs=30,
            schedule="cosine",
        ),
        Benchmark("seq-cifar10", "cifar10", tasks=5, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2615)),
        _CIFAR100,
        *(replace(_CIFAR100, name=f"seq-cifar100-{tasks}", tasks=tasks) for tasks in (10, 20, 50)),
        # What most methods that keep no pictures are published on.
        replace(_CIFAR100, name="seq-cifar100-50+10", tasks=11, first=50),
        Benchmark(
            "seq-tinyimagenet", "tinyimagenet", tasks=10, mean=(0.4802, 0.4480, 0.3975), std=(0.2770, 0.2691, 0.2821)
        ),
        Benchmark("seq-miniimagenet", "miniimagenet", tasks=20),
    )
}


def find(name: str) -> Benchmark:
    """The benchmark of that name, a data set by its bare name, or the folder of pictures at that path.

    >>> find("seq-cifar100-20").tasks, find("cifar10").tasks
    (20, 5)
    """
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    if not name:
        raise InputError("a benchmark has a name: give one from sparc benchmarks, or a folder")
    if name in sources.names():
        return Benchmark(name, name)
    path = Path(name)
    if path.is_dir():
        return Benchmark(f"folder-{path.resolve().name}", "folder", folder=path)
    if path.name != name or name.startswith("."):
        raise InputError(
            f"there is no folder {name}: give a folder with one folder of pictures a class, or a benchmark"
        )
    raise unknown("benchmark", name, BENCHMARKS)
