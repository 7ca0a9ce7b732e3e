"""The trainer: tasks, phases, epochs and steps; the method says only what it does differently."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from sparc.data.imageset import ImageSet
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.methods.method import Batch, Method, Phase
from sparc.methods.recipe import Recipe
from sparc.train.evaluate import evaluate, evaluate_by_part
from sparc.train.optimizer import new_optimizer, restore_optimizer, set_lr
from sparc.train.split import Split
from sparc.train.state import Checkpointer, Observer, Resumable, StageReport, TrainingReport

REPORT_SECONDS = 0.25
"""How often progress is told, and a loss that is no number noticed, between the ends of epochs."""


class Trainer(Resumable):
    """Takes a method through a stream.

    All chance in the loop (order of the pictures, augmentation) comes from the seed alone.
    """

    def __init__(
        self,
        method: Method,
        recipe: Recipe,
        seed: int,
        observer: Observer | None = None,
        should_stop: Callable[[Task], bool] = lambda task: False,
        checkpointer: Checkpointer | None = None,
        bf16: bool = False,
        threads: int = 1,
    ) -> None:
        """`should_stop` is asked after every epoch; if so, the next one is the last of its phase.

        With `bf16` training computes in bfloat16 where torch thinks it safe; weights are kept in full. Batches are
        split among `threads` where the method lets them.
        """
        super().__init__(method, seed)
        self.recipe = recipe
        self.observer = observer or Observer()
        self.should_stop = should_stop
        self.checkpointer = checkpointer or Checkpointer()
        self.bf16 = bf16
        self.threads = threads
        self.split: Split | None = None

    def run(self, stream: Stream) -> list[StageReport]:
        """Learn every task that has not been learned; after each of them, test on all tasks so far."""
        counts = stream.train_counts()
        while self.at.task < len(stream):
            if not self.at.learned:
                self.learn(stream.task(self.at.task), sum(counts[self.at.task + 1 :]))
            report = self._test(stream, self.at.task + 1)
            self.reports.append(report)
            self.next_task()
            self.observer.stage(report)
            self.checkpointer.keep(self.snapshot)
        return self.reports

    def learn(self, task: Task, pictures_later: int = 0) -> None:
        """One task, through all of its phases; how many pictures later tasks have tells only how far the run is."""
        task = told_to(self.method, task)
        if self.at.learned:
            self.next_task()
        self.clock = time.perf_counter()
        if self.at.phase is None:
            self._call(self.method.begin_task, task)
            self.at.phase = 0
        while self.at.phase < len(phases := self.method.phases(task, self.recipe)):
            if len(task.train) < 2:
                raise InputError(
                    f"task {task.index + 1} has one picture to train from, and batch norm needs two: give more"
                )
            self._phase(task, phases, pictures_later)
            self.at.phase, self.at.epoch, self.at.last = self.at.phase + 1, 0, None
        self._call(self.method.end_task, task)
        self.count_seconds()
        self.at.learned = True
        self.at.total_steps += 1
        self.checkpointer.keep(self.snapshot)

    def _call(self, hook: Callable[..., None] | None, *arguments: Task) -> None:
        """One of the method's hooks, after any of which other parameters may be to learn."""
        if hook is not None:
            hook(*arguments)
            self.method.set_trainable()

    def _phase(self, task: Task, phases: Sequence[Phase], pictures_later: int) -> None:
        at, phase = self.at, phases[self.at.phase or 0]
        if at.last is None:
            self._call(phase.begin)
            at.last = phase.recipe.epochs - 1
        pictures = task.train if phase.images is None else phase.images()
        total = self._pictures_in_all(task, phases, pictures, pictures_later)
        self.optimizer = new_optimizer(phase, self.method)
        restore_optimizer(self.optimizer, self.optimizer_memory)
        self.optimizer_memory = {}
        self.method.train()
        with self._split(phase) as self.split:
            self._epochs(task, phase, pictures, self.optimizer, total)
        self.optimizer = self.split = None
        self._call(phase.end)

    def _split(self, phase: Phase) -> AbstractContextManager[Split | None]:
        """What computes parts of a batch at the same time, where there are several threads and the method lets it."""
        can = self.method.splits and phase.loss is None and self.device.type == "cpu"
        return Split(self.method, self.threads) if can and self.threads > 1 else nullcontext()

    def _epochs(self, task: Task, phase: Phase, pictures: ImageSet, optimizer: Optimizer, total: int) -> None:
        at = self.at
        assert at.last is not None
        while at.epoch <= at.last:
            self.method.train()
            self._epoch(task, phase, pictures, optimizer, total)
            if at.epoch < at.last and self.should_stop(task):
                at.last = at.epoch + 1
            at.epoch, at.step = at.epoch + 1, 0
            self.order = self.losses = torch.empty(0)
            self.checkpointer.keep(self.snapshot)

    def _pictures_in_all(self, task: Task, phases: Sequence[Phase], pictures: ImageSet, later: int) -> int:
        """How many the whole run will show, as far as can be told: other phases like this one, later tasks too."""
        mine = [len(pictures) if phase.images else len(task.train) for phase in phases]
        epochs = [phase.recipe.epochs for phase in phases]
        own = sum(count * times for count, times in zip(mine, epochs, strict=True))
        return self.at.images_before + own + sum(epochs) * later

    def _epoch(self, task: Task, phase: Phase, pictures: ImageSet, optimizer: Optimizer, total: int) -> None:
        at, last = self.at, self.at.last or 0
        if not at.step:
            self.order = torch.randperm(len(pictures), generator=self.generator)
        batches = in_batches(self.order, phase.recipe.batch_size)
        if not at.step:
            self.losses = torch.zeros(len(batches), device=self.device)
        # Whenever the last epoch comes, it has the rate with which the schedule ends.
        lr_epoch = at.epoch if at.epoch < last else phase.recipe.epochs - 1
        start = told = time.perf_counter()
        seen, checked = 0, at.step
        for indices in batches[at.step :]:
            set_lr(optimizer, phase.recipe.lr_at(lr_epoch, (at.step + 0.5) / len(batches)))
            raw_images = self._on_device(pictures.images[indices])
            labels = self._on_device(pictures.labels[indices])
            images = self.method.augment(raw_images, self.generator)
            batch = Batch(images, labels, raw_images, indices, task, phase.recipe, at.epoch, last + 1)
            self.losses[at.step] = self.step(batch, phase, optimizer)
            at.step += 1
            at.total_steps += 1
            at.images += len(indices)
            seen += len(indices)
            now = time.perf_counter()
            epoch_over = at.step == len(batches)
            if now - told > REPORT_SECONDS or epoch_over:
                check_finite(self.losses[: at.step], checked, task, phase, at.epoch)
                report = TrainingReport(
                    task.index + 1,
                    phase.name,
                    at.epoch + 1,
                    last + 1,
                    at.step,
                    len(batches),
                    loss=float(self.losses[: at.step].mean()),
                    images_per_second=seen / (now - start),
                    done=min(1.0, at.images / total),
                    total_steps=at.total_steps,
                )
                self.observer.training(report)
                told, checked = now, at.step
            if not epoch_over and self.checkpointer.due():
                self.checkpointer.keep(self.snapshot)

    def step(self, batch: Batch, phase: Phase, optimizer: Optimizer) -> Tensor:
        """Lower the loss by one step, and say what it was."""
        context = partial(torch.autocast, self.device.type, torch.bfloat16, enabled=self.bf16)
        if self.split is not None:
            loss = self.split.backward(batch, context)
        else:
            with context():
                loss = (phase.loss or self.method.loss)(batch)
            optimizer.zero_grad()
            loss.backward()
        self.method.before_step()
        clip_gradients(optimizer, phase.recipe)
        optimizer.step()
        self.method.after_step()
        return loss.detach()

    def _on_device(self, part: Tensor) -> Tensor:
        """On CUDA through memory that the GPU can read by itself, so that nobody has to wait for it."""
        part = part.pin_memory() if self.device.type == "cuda" else part
        return part.to(self.device, non_blocking=True)

    def _test(self, stream: Stream, tasks: int) -> StageReport:
        start = time.perf_counter()
        classes = [stream.classes(index) for index in range(tasks)]
        stop = self.checkpointer.check_stop
        sets = [stream.test(index) for index in range(tasks)]
        test = evaluate(self.method, sets, classes, stop)
        held_out = [stream.validation(index) for index in range(tasks)]
        validation = evaluate(self.method, held_out, classes, stop) if len(held_out[0]) else None
        test_seconds = time.perf_counter() - start
        by_part = evaluate_by_part(self.method, sets, classes, stop) if tasks == len(stream) else {}
        return StageReport(tasks, test, validation, self.at.seconds, test_seconds, by_part)


def told_to(method: Method, task: Task) -> Task:
    """The task without what the method has not declared that it wants to be told."""
    return replace(
        task,
        tasks=task.tasks if "tasks" in method.knows_ahead else None,
        all_classes=task.all_classes if "classes" in method.knows_ahead else None,
        seen=task.seen if method.sees_old_tasks else None,
    )


def in_batches(order: Tensor, batch_size: int) -> list[Tensor]:
    """A batch at a time.

    A single picture left over joins the batch before it: batch norm cannot be trained on one.

    >>> [len(indices) for indices in in_batches(torch.arange(9), 4)]
    [4, 5]
    """
    count = len(order)
    whole = count - 1 if count % batch_size == 1 and count > 1 else count
    *most, last = order[:whole].split(batch_size)
    return [*most, torch.cat((last, order[whole:]))]


def clip_gradients(optimizer: Optimizer, recipe: Recipe) -> None:
    if recipe.clip_norm is None and recipe.clip_value is None:
        return
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if recipe.clip_value is not None:
        nn.utils.clip_grad_value_(parameters, recipe.clip_value)
    if recipe.clip_norm is not None:
        nn.utils.clip_grad_norm_(parameters, recipe.clip_norm)


def check_finite(losses: Tensor, start: int, task: Task, phase: Phase, epoch: int) -> None:
    """Stop at the first loss that is no number; looked for now and then, as every step would have to wait for a GPU."""
    wrong = torch.nonzero(~losses[start:].isfinite()).flatten()
    if len(wrong):
        step = start + int(wrong[0])
        raise InputError(
            f"the loss is {float(losses[step])} in task {task.index + 1}, epoch {epoch + 1}, step {step + 1}: "
            f"lower --lr (it is {phase.recipe.lr:g})"
        )
