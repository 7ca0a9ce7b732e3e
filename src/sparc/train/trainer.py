"""The trainer: epochs, batches, steps and progress; the method says only what it does differently."""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods.method import Batch, Method, Phase
from sparc.methods.recipe import Recipe
from sparc.train.evaluate import Evaluation, evaluate

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

    def training(self, report: TrainingReport) -> None:
        """A few times a second, and at the end of every epoch."""

    def stage(self, report: StageReport) -> None:
        """After every task."""


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
    ) -> None:
        """`enough` is asked after every epoch whether one more will do; that one is then the last of its phase."""
        self.method = method
        self.recipe = recipe
        self.augment = method.augment = augment
        self.observer = observer or Observer()
        self.enough = enough
        self.device = next(method.parameters()).device
        self.generator = seeded(seed, "batches")
        self._images_seen = 0

    def run(self, stream: Stream) -> list[StageReport]:
        """Learn every task; after each of them, test on all tasks so far."""
        tests: list[ImageSet] = []
        validations: list[ImageSet] = []
        reports = []
        counts = stream.train_counts()
        for task in stream:
            start = time.perf_counter()
            self.learn(task, pictures_later=sum(counts[task.index + 1 :]))
            learned = time.perf_counter()
            tests.append(task.test)
            if len(task.validation):
                validations.append(task.validation)
            classes = [stream.classes(index) for index in range(len(tests))]
            test = evaluate(self.method, tests, classes, self.augment.normalize)
            validation = evaluate(self.method, validations, classes, self.augment.normalize) if validations else None
            report = StageReport(task.index + 1, test, validation, learned - start, time.perf_counter() - learned)
            self.observer.stage(report)
            reports.append(report)
        return reports

    def learn(self, task: Task, pictures_later: int = 0) -> None:
        """One task, through all of its phases; how many pictures later tasks have tells only how far the run is."""
        if len(task.train) < 2:
            raise InputError(f"task {task.index + 1} has {len(task.train)} training pictures: batch norm needs two")
        self.method.begin_task(task)
        phases = self.method.phases(task, self.recipe)
        epochs = sum(phase.recipe.epochs for phase in phases)
        # Later tasks may have other phases; until they are there, they are taken to be like this one's.
        total = self._images_seen + epochs * (len(task.train) + pictures_later)
        for phase in phases:
            self._train(task, phase, total)
        self.method.end_task(task)

    def _train(self, task: Task, phase: Phase, total: int) -> None:
        if phase.begin:
            phase.begin()
        parameters = phase.parameters
        if parameters is None:
            parameters = [value for value in self.method.parameters() if value.requires_grad]
        optimizer = new_optimizer(phase.recipe, parameters)
        epoch, last = 0, phase.recipe.epochs - 1
        while epoch <= last:
            self.method.train()
            for group in optimizer.param_groups:
                # Whenever the last epoch comes, it has the rate with which the schedule ends.
                group["lr"] = phase.recipe.lr_at(epoch if epoch < last else phase.recipe.epochs - 1)
            self._epoch(task, phase, epoch, last, optimizer, total)
            if epoch < last and self.enough(task):
                last = epoch + 1
            epoch += 1

    def _epoch(
        self, task: Task, phase: Phase, epoch: int, last: int, optimizer: torch.optim.Optimizer, total: int
    ) -> None:
        loss_of: Callable[[Batch], Tensor] = phase.loss or self.method.loss
        pictures = task.everything() if phase.everything and task.everything else task.train
        batches = list(shuffled(len(pictures), phase.recipe.batch, self.generator))
        losses = torch.zeros(len(batches), device=self.device)
        start = told = time.perf_counter()
        seen = checked = 0
        for step, index in enumerate(batches):
            originals = pictures.images[index].to(self.device, non_blocking=True)
            labels = pictures.labels[index].to(self.device, non_blocking=True)
            images = self.augment(originals, self.generator)
            loss = loss_of(Batch(images, labels, epoch == last, originals))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.method.after_step()
            losses[step] = loss.detach()
            seen += len(index)
            self._images_seen += len(index)
            now = time.perf_counter()
            if now - told > REPORT_SECONDS or step == len(batches) - 1:
                check_finite(losses[: step + 1], checked, task, phase, epoch)
                report = TrainingReport(
                    task.index + 1,
                    phase.name,
                    epoch + 1,
                    last + 1,
                    step + 1,
                    len(batches),
                    loss=float(losses[: step + 1].mean()),
                    images_per_second=seen / (now - start),
                    done=self._images_seen / total,
                )
                self.observer.training(report)
                told, checked = now, step + 1


def shuffled(count: int, batch: int, generator: Generator) -> Iterator[Tensor]:
    """All places in random order, a batch at a time.

    A single picture left over joins the batch before it: batch norm cannot be trained on one.

    >>> [len(index) for index in shuffled(9, 4, torch.Generator())]
    [4, 5]
    """
    order = torch.randperm(count, generator=generator)
    whole = count - 1 if count % batch == 1 and count > 1 else count
    *most, last = order[:whole].split(batch)
    yield from most
    yield torch.cat((last, order[whole:]))


def new_optimizer(recipe: Recipe, parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    return torch.optim.SGD(
        parameters, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay, fused=True
    )


def check_finite(losses: Tensor, start: int, task: Task, phase: Phase, epoch: int) -> None:
    """Stop at the first loss that is no number; looked for now and then, as every step would have to wait for a GPU."""
    wrong = torch.nonzero(~losses[start:].isfinite()).flatten()
    if len(wrong):
        step = start + int(wrong[0])
        raise InputError(
            f"the loss is {float(losses[step])} in task {task.index + 1}, epoch {epoch + 1}, step {step + 1}: "
            f"lower --lr (it is {phase.recipe.lr:g})"
        )


def seeded(seed: int, purpose: str) -> Generator:
    """A generator of its own for each purpose, so that drawing more for one does not move the others."""
    digest = hashlib.sha256(f"{purpose} {seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
