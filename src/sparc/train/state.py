"""Where training stands, what it tells of that, and snapshots from which it goes on to the bit."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor
from torch.optim import Optimizer

from sparc.from_json import build
from sparc.methods.method import Method
from sparc.train.checkpoint import Snapshot
from sparc.train.evaluate import Evaluation
from sparc.train.optimizer import optimizer_tensors
from sparc.train.randomness import restore_shared_generators, seeded, shared_generators


@dataclass(frozen=True)
class TrainingReport:
    """Where training stands; tasks, epochs and steps are counted from 1."""

    task: int
    phase: str
    epoch: int
    epochs: int
    """How many the phase has."""
    step: int
    steps: int
    """How many the epoch has."""
    loss: float
    """Mean over the epoch so far."""
    images_per_second: float
    """Over the epoch so far."""
    done: float
    """Share of the whole run's training."""
    total_steps: int
    """Taken in the whole run so far."""

    @property
    def epoch_over(self) -> bool:
        return self.step == self.steps


@dataclass(frozen=True)
class StageReport:
    """What stands after a task, which is counted from 1."""

    task: int
    test: Evaluation
    validation: Evaluation | None
    train_seconds: float
    test_seconds: float
    by_part: dict[str, Evaluation] = field(default_factory=dict)
    """After the last task: with a part of the method left out, or with one alone, if it has any."""


class Observer:
    """Told what happens during a run; does nothing unless a subclass does."""

    def resumed(self, where: str, steps: int) -> None:
        """A run that was cut off is taken up again, after so many steps."""

    def training(self, report: TrainingReport) -> None:
        """A few times a second, and at the end of every epoch."""

    def validated(self, accuracy: float) -> None:
        """After an epoch, if pictures are held out to know when to stop: how many of them are right, in percent."""

    def stage(self, report: StageReport) -> None:
        """After every task."""


class Checkpointer:
    """Told when a run can be kept, so as to be taken up again; keeps nothing unless a subclass does."""

    def due(self) -> bool:
        """Asked after every step whether to keep now; the ends of epochs and tasks are always kept."""
        return False

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        """Keep this, or raise to stop the run here."""

    def check_stop(self) -> None:
        """Asked many times while tasks are tested, where there is nothing new to keep; may raise to stop the run."""


@dataclass
class TrainState:
    """Where training stands, so exactly that it can go on from there; all is counted from 0."""

    task: int = 0
    phase: int | None = None
    """None before the task has begun."""
    epoch: int = 0
    last: int | None = None
    """The phase's last epoch, which may be brought forward; None before the phase has begun."""
    step: int = 0
    """Of the epoch."""
    learned: bool = False
    """The task is over, but not tested yet."""
    total_steps: int = 0
    """Of the whole run; the end of a task's training and that of its testing count one each."""
    images: int = 0
    """Shown in the whole run."""
    images_before: int = 0
    """Shown when the task began."""
    seconds: float = 0.0
    """Spent on training this task."""

    def words(self, tasks: int) -> str:
        """Where that is, for people.

        >>> TrainState(task=1, phase=0, epoch=2, last=49, step=7).words(tasks=5)
        'task 2 of 5, epoch 3 of 50'
        """
        if self.task == tasks:
            return "all tasks learned"
        task = f"task {self.task + 1} of {tasks}"
        if self.learned or self.last is None:
            return f"{task}, {'testing' if self.learned else 'beginning'}"
        return f"{task}, epoch {min(self.epoch, self.last) + 1} of {self.last + 1}"


class Resumable:
    """All that changes while a method is trained, and how it is put away and brought back."""

    def __init__(self, method: Method, seed: int) -> None:
        self.method = method
        self.device = method.device
        self.generator = seeded(seed, "batches")
        self.at = TrainState()
        self.reports: list[StageReport] = []
        self.optimizer: Optimizer | None = None
        """The phase's, while it lasts."""
        self.optimizer_memory: dict[str, Tensor] = {}
        """Out of a snapshot, until there is an optimizer to give it to."""
        self.order = self.losses = torch.empty(0)
        """Of the epoch: the indices of its pictures, and the losses of its steps so far."""
        self.clock = time.perf_counter()

    def snapshot(self) -> Snapshot:
        """All that `restore` needs to go on from here to the bit."""
        self.count_seconds()
        shared, shared_rest = shared_generators()
        parts = {
            "method": self.method.state_dict(),
            "optimizer": optimizer_tensors(self.optimizer) if self.optimizer else {},
            "generator": {"batches": self.generator.get_state(), **shared},
            "epoch": {"order": self.order, "losses": self.losses},
        }
        return Snapshot(
            self.at.total_steps,
            {f"{part}.{name}": value for part, tensors in parts.items() for name, value in tensors.items()},
            {
                "position": asdict(self.at),
                "reports": [asdict(report) for report in self.reports],
                "generators": shared_rest,
            },
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Stand where another trainer stood; the method must be made as that one's was."""
        self.method.load_state_dict(snapshot.under("method"))
        self.optimizer_memory = snapshot.under("optimizer")
        generators = snapshot.under("generator")
        self.generator.set_state(generators["batches"])
        restore_shared_generators(generators, snapshot.about["generators"])
        epoch = snapshot.under("epoch")
        self.order, self.losses = epoch["order"], epoch["losses"].to(self.device)
        self.at = build(TrainState, snapshot.about["position"])
        self.reports = [build(StageReport, report) for report in snapshot.about["reports"]]

    def count_seconds(self) -> None:
        now = time.perf_counter()
        self.at.seconds, self.clock = self.at.seconds + now - self.clock, now

    def next_task(self) -> None:
        at, self.clock = self.at, time.perf_counter()
        self.at = TrainState(at.task + 1, total_steps=at.total_steps + 1, images=at.images, images_before=at.images)
