"""The trainer: epochs, batches, steps and progress; the method says only what it does differently."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from sparc.allocator import keep_freed_memory
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods.method import Batch, Method, Phase
from sparc.methods.recipe import Recipe
from sparc.plain import build
from sparc.train.checkpoint import Snapshot
from sparc.train.evaluate import Evaluation, evaluate
from sparc.train.optimizer import new_optimizer, optimizer_tensors, restore_optimizer
from sparc.train.randomness import restore_shared_generators, seeded, shared_generators

REPORT_SECONDS = 0.25
"""How often progress is told, and a loss that is no number noticed, between the ends of epochs."""


@dataclass(frozen=True)
class TrainingReport:
    """Where training stands; tasks, epochs and steps are counted from 1."""

    task: int
    phase: str
    epoch: int
    epochs: int
    """Of this phase."""
    step: int
    steps: int
    """Of this epoch."""
    loss: float
    """Mean over the epoch so far."""
    images_per_second: float
    """Over the epoch so far."""
    done: float
    """Share of the whole run's training."""
    total_steps: int
    """Of the whole run so far."""

    @property
    def epoch_over(self) -> bool:
        return self.step == self.steps


@dataclass(frozen=True)
class StageReport:
    """What stands after a task."""

    task: int
    test: Evaluation
    validation: Evaluation | None
    train_seconds: float
    test_seconds: float


class Observer:
    """Told what happens during a run; does nothing unless a subclass does."""

    def resumed(self, where: str, steps: int) -> None:
        """A run that was cut off is taken up again, after so many steps."""

    def training(self, report: TrainingReport) -> None:
        """A few times a second, and at the end of every epoch."""

    def stage(self, report: StageReport) -> None:
        """After every task."""


@dataclass
class Position:
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
        """
        >>> Position(task=1, phase=0, epoch=2, last=49, step=7).words(tasks=5)
        'task 2 of 5, epoch 3 of 50'
        """
        if self.task == tasks:
            return "all tasks learned"
        task = f"task {self.task + 1} of {tasks}"
        if self.learned or self.last is None:
            return f"{task}, {'testing' if self.learned else 'beginning'}"
        return f"{task}, epoch {min(self.epoch, self.last) + 1} of {self.last + 1}"


class Keeper:
    """Told when a run can be kept, so as to be taken up again; keeps nothing unless a subclass does."""

    def due(self) -> bool:
        """Asked after every step whether to keep now; the ends of epochs and tasks are always kept."""
        return False

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        """Keep this, or raise to stop the run here."""

    def check_stop(self) -> None:
        """Asked many times while tasks are tested, where there is nothing new to keep; may raise to stop the run."""


class Trainer:
    """Takes a method through a stream.

    All chance in the loop (order of the pictures, augmentation) comes from the seed alone.
    """

    def __init__(
        self,
        method: Method,
        recipe: Recipe,
        augment: Augment,
        seed: int,
        observer: Observer | None = None,
        enough: Callable[[Task], bool] = lambda task: False,
        keeper: Keeper | None = None,
        bf16: bool = False,
    ) -> None:
        """`enough` is asked after every epoch whether one more will do; that one is then the last of its phase.

        With `bf16` training computes in bfloat16 where torch thinks it safe; weights are kept in full.
        """
        self.method = method
        self.recipe = recipe
        self.augment = method.augment = augment
        self.observer = observer or Observer()
        self.enough = enough
        self.keeper = keeper or Keeper()
        self.device = next(method.parameters()).device
        self.bf16 = bf16
        self.generator = seeded(seed, "batches")
        self.at = Position()
        self.reports: list[StageReport] = []
        self._optimizer: torch.optim.Optimizer | None = None
        self._order = self._losses = torch.empty(0)
        """Of the epoch: the places of its pictures, and the losses of its steps so far."""
        self._optimizer_memory: dict[str, Tensor] = {}
        """Out of a snapshot, until there is an optimizer to give it to."""
        self._clock = time.perf_counter()
        keep_freed_memory()

    def run(self, stream: Stream) -> list[StageReport]:
        """Learn every task that has not been learned; after each of them, test on all tasks so far."""
        counts = stream.train_counts()
        while self.at.task < len(stream):
            if not self.at.learned:
                self.learn(stream.task(self.at.task), sum(counts[self.at.task + 1 :]))
            report = self._test(stream, self.at.task + 1)
            self.reports.append(report)
            self.at = self._next_task()
            self.observer.stage(report)
            self.keeper.keep(self.snapshot)
        return self.reports

    def learn(self, task: Task, pictures_later: int = 0) -> None:
        """One task, through all of its phases; how many pictures later tasks have tells only how far the run is."""
        if len(task.train) < 2:
            raise InputError(f"task {task.index + 1} has {len(task.train)} training pictures: batch norm needs two")
        if self.at.learned:
            self.at = self._next_task()
        self._clock = time.perf_counter()
        if self.at.phase is None:
            self.method.begin_task(task)
            self.at.phase = 0
        phases = self.method.phases(task, self.recipe)
        sets = [self._pictures(task, phase) for phase in phases]
        # Later tasks may have other phases; until they are there, they are taken to be like this one's.
        mine = sum(phase.recipe.epochs * len(pictures) for phase, pictures in zip(phases, sets, strict=True))
        later = sum(phase.recipe.epochs for phase in phases) * pictures_later
        while self.at.phase < len(phases):
            self._train(task, phases[self.at.phase], sets[self.at.phase], self.at.images_before + mine + later)
            self.at.phase, self.at.epoch, self.at.last = self.at.phase + 1, 0, None
        self.method.end_task(task)
        self._count_seconds()
        self.at.learned = True
        self.at.total_steps += 1
        self.keeper.keep(self.snapshot)

    @staticmethod
    def _pictures(task: Task, phase: Phase) -> ImageSet:
        if not phase.everything:
            return task.train
        assert task.everything is not None, "an upper bound is given tasks that hold what came before"
        return task.everything()

    def snapshot(self) -> Snapshot:
        """All that `restore` needs to go on from here to the bit."""
        self._count_seconds()
        shared, shared_rest = shared_generators()
        parts = {
            "method": self.method.state_dict(),
            "optimizer": optimizer_tensors(self._optimizer) if self._optimizer else {},
            "generator": {"batches": self.generator.get_state(), **shared},
            "epoch": {"order": self._order, "losses": self._losses},
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
        self._optimizer_memory = snapshot.under("optimizer")
        generators = snapshot.under("generator")
        self.generator.set_state(generators["batches"])
        restore_shared_generators(generators, snapshot.about["generators"])
        epoch = snapshot.under("epoch")
        self._order, self._losses = epoch["order"], epoch["losses"].to(self.device)
        self.at = build(Position, snapshot.about["position"])
        self.reports = [build(StageReport, report) for report in snapshot.about["reports"]]

    def _count_seconds(self) -> None:
        now = time.perf_counter()
        self.at.seconds, self._clock = self.at.seconds + now - self._clock, now

    def _next_task(self) -> Position:
        at, self._clock = self.at, time.perf_counter()
        return Position(at.task + 1, total_steps=at.total_steps + 1, images=at.images, images_before=at.images)

    def _test(self, stream: Stream, tasks: int) -> StageReport:
        def normalize(images: Tensor) -> Tensor:
            self.keeper.check_stop()
            return self.augment.normalize(images)

        start = time.perf_counter()
        classes = [stream.classes(index) for index in range(tasks)]
        test = evaluate(self.method, [stream.test(index) for index in range(tasks)], classes, normalize)
        validations = [stream.validation(index) for index in range(tasks)]
        validation = evaluate(self.method, validations, classes, normalize) if len(validations[0]) else None
        return StageReport(tasks, test, validation, self.at.seconds, time.perf_counter() - start)

    def _train(self, task: Task, phase: Phase, pictures: ImageSet, total: int) -> None:
        if self.at.last is None:
            if phase.begin:
                phase.begin()
            self.at.last = phase.recipe.epochs - 1
        parameters = phase.parameters
        if parameters is None:
            parameters = [value for value in self.method.parameters() if value.requires_grad]
        self._optimizer = new_optimizer(phase.recipe, parameters)
        restore_optimizer(self._optimizer, self._optimizer_memory)
        self._optimizer_memory = {}
        while self.at.epoch <= self.at.last:
            self.method.train()
            for group in self._optimizer.param_groups:
                # Whenever the last epoch comes, it has the rate with which the schedule ends.
                place = self.at.epoch if self.at.epoch < self.at.last else phase.recipe.epochs - 1
                group["lr"] = phase.recipe.lr_at(place)
            self._epoch(task, phase, pictures, self._optimizer, self.at.last, total)
            if self.at.epoch < self.at.last and self.enough(task):
                self.at.last = self.at.epoch + 1
            self.at.epoch, self.at.step = self.at.epoch + 1, 0
            self._order = self._losses = torch.empty(0)
            self.keeper.keep(self.snapshot)
        self._optimizer = None

    def _epoch(
        self,
        task: Task,
        phase: Phase,
        pictures: ImageSet,
        optimizer: torch.optim.Optimizer,
        last: int,
        total: int,
    ) -> None:
        at = self.at
        loss_of: Callable[[Batch], Tensor] = phase.loss or self.method.loss
        if not at.step:
            self._order = torch.randperm(len(pictures), generator=self.generator)
        batches = in_batches(self._order, phase.recipe.batch)
        if not at.step:
            self._losses = torch.zeros(len(batches), device=self.device)
        start = told = time.perf_counter()
        seen, checked = 0, at.step
        for index in batches[at.step :]:
            originals = self._on_device(pictures.images[index])
            labels = self._on_device(pictures.labels[index])
            images = self.augment(originals, self.generator)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                loss = loss_of(Batch(images, labels, at.epoch == last, originals))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.method.after_step()
            self._losses[at.step] = loss.detach()
            at.step += 1
            at.total_steps += 1
            at.images += len(index)
            seen += len(index)
            now = time.perf_counter()
            epoch_over = at.step == len(batches)
            if now - told > REPORT_SECONDS or epoch_over:
                check_finite(self._losses[: at.step], checked, task, phase, at.epoch)
                report = TrainingReport(
                    task.index + 1,
                    phase.name,
                    at.epoch + 1,
                    last + 1,
                    at.step,
                    len(batches),
                    loss=float(self._losses[: at.step].mean()),
                    images_per_second=seen / (now - start),
                    done=at.images / total,
                    total_steps=at.total_steps,
                )
                self.observer.training(report)
                told, checked = now, at.step
            if not epoch_over and self.keeper.due():
                self.keeper.keep(self.snapshot)

    def _on_device(self, part: Tensor) -> Tensor:
        """On CUDA through memory that the GPU can read by itself, so that nobody has to wait for it."""
        part = part.pin_memory() if self.device.type == "cuda" else part
        return part.to(self.device, non_blocking=True)


def in_batches(order: Tensor, batch: int) -> list[Tensor]:
    """A batch at a time.

    A single picture left over joins the batch before it: batch norm cannot be trained on one.

    >>> [len(index) for index in in_batches(torch.arange(9), 4)]
    [4, 5]
    """
    count = len(order)
    whole = count - 1 if count % batch == 1 and count > 1 else count
    *most, last = order[:whole].split(batch)
    return [*most, torch.cat((last, order[whole:]))]


def check_finite(losses: Tensor, start: int, task: Task, phase: Phase, epoch: int) -> None:
    """Stop at the first loss that is no number; looked for now and then, as every step would have to wait for a GPU."""
    wrong = torch.nonzero(~losses[start:].isfinite()).flatten()
    if len(wrong):
        step = start + int(wrong[0])
        raise InputError(
            f"the loss is {float(losses[step])} in task {task.index + 1}, epoch {epoch + 1}, step {step + 1}: "
            f"lower --lr (it is {phase.recipe.lr:g})"
        )
