"""How fast it learns: rows 1 to 3, 6 and 11."""

import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from benchmarks.measure import Job, Row, Size, Workers, extremes, in_turns, ratio
from benchmarks.plain import plain_copy
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.settings import SparcSettings
from sparc.methods.sparc.sparc import SPARC
from sparc.nn.layout import Unit, suitable_depth
from sparc.nn.sparc import SparcNet
from sparc.train import Trainer

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
PADDING = 4
LR = 5e-3
COMPARED = 3
"""Steps whose losses must agree; rounding grows from step to step."""
TOLERANCE = 0.02
TURN = 4
"""Times as many steps in a turn where threads are compared, which have to be started."""


def training_rows(size: Size, workers: Workers) -> list[Row]:
    rows = []
    for later, which in ((False, "first task"), (True, "later task")):
        workers.usual.make("plain", plain_training, size, later)
        workers.ours.make("same batches", our_training, size, later)
        losses = [worker.run(name)[1] for worker, name in ((workers.usual, "plain"), (workers.ours, "same batches"))]
        apart = max(abs(mine / yours - 1) for yours, mine in list(zip(*losses, strict=True))[:COMPARED])
        if apart > TOLERANCE:
            raise RuntimeError(f"the fast path does not learn as the plain one: losses {apart:.1%} apart")
        workers.ours.make("ours", learning, size, 2 if later else 1)
        workers.ours.make("sgemm", sgemm, size)
        workers.ours.make("batches", batches_alone, size)
        jobs = {"plain": workers.usual, "ours": workers.ours, "sgemm": workers.ours, "batches": workers.ours}
        seconds = in_turns(jobs, size.rounds)
        faster = ratio(seconds["plain"], seconds["ours"])
        images = size.steps * size.batch
        speeds = {name: images / median(seconds[name]) for name in ("plain", "ours")}
        rows.append(
            Row(
                "1",
                f"training, {which}, against the usual way",
                f"{faster:.2f} × ({speeds['ours']:.0f} against {speeds['plain']:.0f} images/s)",
                "≥ 3 ×",
                faster >= 3,
                {
                    "times": faster,
                    "largest difference of a loss": apart,
                    **speeds,
                    **extremes("times", seconds["plain"], seconds["ours"]),
                },
            )
        )
        operations = 2 * images * sum(multiply_adds(size, later))
        peak = [2 * size.sgemm**3 / each for each in seconds["sgemm"]]
        share = median(operations / mine / most for mine, most in zip(seconds["ours"], peak, strict=True))
        rows.append(
            Row(
                "2",
                f"training, {which}: FLOP/s as a share of sgemm's",
                f"{share:.0%} of {median(peak) / 1e9:.0f} GFLOP/s",
                "≥ 45 %",
                share >= 0.45,
                {"share": share, "sgemm GFLOP/s": median(peak) / 1e9, "GFLOP an image": operations / images / 1e9},
            )
        )
    each = median(seconds["batches"]) / images
    part = 1 / ratio(seconds["ours"], seconds["batches"])
    measured = f"{part:.1%} of a step, {each * 1e6:.0f} µs an image"
    reached = part <= 0.05 and each <= 30e-6
    figures = {"share": part, "µs an image": each * 1e6}
    rows.append(Row("3", "augmentation and batching", measured, "≤ 5 %, ≤ 30 µs", reached, figures))
    return rows


def later_task_rows(size: Size, workers: Workers) -> list[Row]:
    workers.ours.make("second", learning, size, 2)
    workers.ours.make("last", learning, size, size.tasks)
    seconds = in_turns({"second": workers.ours, "last": workers.ours}, size.rounds)
    slower = ratio(seconds["last"], seconds["second"])
    what = f"learning task {size.tasks} against task 2"
    return [
        Row(
            "6",
            what,
            f"{slower:.3f} ×",
            "≤ 1.05 ×",
            slower <= 1.05,
            {"times": slower, **extremes("times", seconds["last"], seconds["second"])},
        )
    ]


def thread_rows(size: Size, workers: Workers) -> list[Row]:
    """By the clock, which alone tells: two threads take more processor time than one."""
    size = replace(size, steps=TURN * size.steps)
    rows = []
    for number, which in ((1, "first task"), (2, "later task")):
        for threads in (1, 2):
            workers.ours.make(f"{threads} threads", learning, size, number, threads)
        jobs = dict.fromkeys(("1 threads", "2 threads"), workers.ours)
        one, two = in_turns(jobs, size.rounds, timer=time.perf_counter).values()
        faster = ratio(one, two)
        figures = {"times": faster, **extremes("times", one, two)}
        what = f"training, {which}, two threads against one, by the clock"
        rows.append(Row("11", what, f"{faster:.2f} ×", "≥ 1.6 ×", faster >= 1.6, figures))
    return rows


def pictures(size: Size) -> ImageSet:
    """Noise: how long a step takes does not depend on what is to be seen."""
    count = size.steps * size.batch
    shape = (count, 3, size.image, size.image)
    images = torch.randint(256, shape, dtype=torch.uint8, generator=Generator().manual_seed(1))
    return ImageSet(images, torch.arange(count) % size.classes, tuple(map(str, range(size.classes))))


def new_net(size: Size, later: bool) -> SparcNet:
    net = SparcNet(3, (size.image, size.image), size.width, generator=Generator().manual_seed(0))
    net.add_task(size.classes)
    net.semantic.requires_grad_(not later)
    return net


def our_training(size: Size, later: bool) -> Job:
    """A few steps as the trainer does them, on the plain way's batches; gives their losses."""
    net = new_net(size, later)
    set_ = pictures(size)
    optimizer = torch.optim.Adam([value for value in net.parameters() if value.requires_grad], lr=LR, fused=True)

    def train() -> list[float]:
        losses = torch.zeros(size.steps)
        for step, (images, labels) in enumerate(our_batches(set_, size)):
            loss = cross_entropy(net.task_logits(images, 0), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[step] = loss.detach()
        return losses.tolist()

    return train


def our_batches(set_: ImageSet, size: Size) -> Iterator[tuple[Tensor, Tensor]]:
    augment = Augment(MEAN, STD, PADDING, flip=True)
    generator = Generator().manual_seed(2)
    for index in torch.randperm(len(set_), generator=generator).split(size.batch):
        yield augment(set_.images[index], generator), set_.labels[index]


def batches_alone(size: Size) -> Job:
    set_ = pictures(size)

    def make() -> None:
        for _ in our_batches(set_, size):
            pass

    return make


class PlainPictures(Dataset[tuple[Tensor, int]]):
    """One picture at a time through Pillow; where to crop and whether to flip is drawn as for ours."""

    def __init__(self, set_: ImageSet, size: Size) -> None:
        self.pictures = [Image.fromarray(image) for image in set_.images.permute(0, 2, 3, 1).numpy()]
        self.labels = set_.labels.tolist()
        generator = Generator().manual_seed(2)
        self.order = torch.randperm(len(set_), generator=generator).tolist()
        self.views: list[tuple[int, int, bool]] = []
        for index in torch.tensor(self.order).split(size.batch):
            offsets = torch.randint(2 * PADDING + 1, (2, len(index)), generator=generator)
            flips = torch.rand(len(index), generator=generator) < 0.5
            self.views += zip(*offsets.tolist(), flips.tolist(), strict=True)
        self.mean = torch.tensor(MEAN)[:, None, None]
        self.std = torch.tensor(STD)[:, None, None]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        picture = self.pictures[self.order[place]]
        top, left, flip = self.views[place]
        padded = ImageOps.expand(picture, PADDING)
        picture = padded.crop((left, top, left + picture.width, top + picture.height))
        if flip:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        values = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous().float().div(255)
        return (values - self.mean) / self.std, self.labels[self.order[place]]


def plain_training(size: Size, later: bool) -> Job:
    """The same steps the usual way; gives their losses."""
    net = plain_copy(new_net(size, later), 0)
    loader = DataLoader(PlainPictures(pictures(size), size), batch_size=size.batch)
    optimizer = torch.optim.Adam([value for value in net.parameters() if value.requires_grad], lr=LR)

    def train() -> list[float]:
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return train


def sgemm(size: Size) -> Job:
    left, right = torch.rand(2, size.sgemm, size.sgemm, generator=Generator().manual_seed(0))
    out = torch.empty_like(left)

    def multiply() -> None:
        torch.mm(left, right, out=out)

    return multiply


def learning(size: Size, number: int, threads: int = 1) -> Job:
    """Learn the task of this number by the trainer, the first anew each time, of later ones then the next.

    Those before it are there, but untaught.
    """
    set_ = pictures(size)

    def new() -> Trainer:
        views = Augment(MEAN, STD, PADDING, flip=True)
        settings = SparcSettings(width=size.width)
        method = SPARC(settings, 3, (size.image, size.image), views, Generator().manual_seed(0))
        for index in range(number - 1):
            method.begin_task(_task(set_, size, index))
            method.net.memories()[-1].freeze()
        recipe = Recipe(epochs=1, batch_size=size.batch, lr=LR, optimizer="adam")
        return Trainer(method, recipe, seed=0, threads=threads)

    trainer = new()

    def learn() -> None:
        learner = new() if number == 1 else trainer
        assert isinstance(learner.method, SPARC)
        learner.learn(_task(set_, size, len(learner.method.net.working)))

    return learn


def _task(set_: ImageSet, size: Size, index: int) -> Task:
    start = index * size.classes
    names = tuple(map(str, range(start + size.classes)))
    train = ImageSet(set_.images, set_.labels + start, names)
    nothing = train.take(torch.arange(0))
    return Task(index, range(start, start + size.classes), train, validation=nothing)


def multiply_adds(size: Size, later: bool) -> tuple[int, int]:
    """Of a picture, forward and backward, counted from the layout; backward only what is needed."""
    net = new_net(size, later)
    depth = suitable_depth((size.image, size.image))
    assert len(net.units) == 1 + 4 * depth
    forward = backward = 0
    side = size.image
    for number, unit in enumerate(net.units):
        side = -(-side // unit.stride)
        depthwise, pointwise = _of(unit, side)
        # A stride of 2 has a shortcut beside it, with two outputs a channel.
        shortcut = 2 * unit.channels * side**2 if unit.stride > 1 else 0
        forward += depthwise + pointwise + shortcut
        learned = pointwise * unit.own // (unit.own + unit.shared) if later else pointwise
        # Gradients of the input, which the first layer has no use for, and of the filters.
        backward += (2 if number else 1) * depthwise + pointwise + learned + 2 * shortcut
    head = (net.units[-1].own + net.units[-1].shared) * size.classes
    return forward + head, backward + 2 * head


def _of(unit: Unit, side: int) -> tuple[int, int]:
    return 9 * unit.channels * side**2, unit.channels * (unit.own + unit.shared) * side**2
