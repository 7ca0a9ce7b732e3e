"""Teaching a model: for the command line and `ContinualClassifier`."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparc import __version__
from sparc.calibration import checked
from sparc.data.augment import Augment
from sparc.data.class_folders import check_no_strays, split_of
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import Fit
from sparc.data.progress import Progress, no_progress
from sparc.data.skipped import Skipped
from sparc.data.sources import Folder
from sparc.data.sources.folder import some_pictures, themselves
from sparc.data.stream import Task
from sparc.data.tree import Tree
from sparc.edit import check_name
from sparc.errors import InputError
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.chorus import AS_THEY_ARE, Chorus
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import Model
from sparc.model_info import LearnedTask, ModelInfo, is_number
from sparc.model_input import InputShape
from sparc.nn.layout import suitable_depth
from sparc.nn.start import StartFeatures
from sparc.predictor import answers, graded
from sparc.starts import GLANCED, SMALLEST, Glance, StartChoice, choose_start
from sparc.train import Observer, Trainer, accuracy, seeded

Look = Callable[[Tensor], Tensor]
"""From uint8 pictures to what is kept of them while they are learned."""
Effort = Literal["quick", "normal", "thorough"]


@dataclass(frozen=True)
class Budget:
    """How long a task is learned: until about so many pictures were shown, within bounds."""

    pictures: int
    fewest: int
    most: int

    def epochs(self, pictures: int) -> int:
        """For so many pictures.

        >>> [EFFORTS["normal"].epochs(pictures) for pictures in (20, 2000, 50_000)]
        [30, 10, 10]
        """
        return min(max(round(self.pictures / pictures), self.fewest), self.most)


FEWEST = 250
"""Pictures of a class, in the mean over a task, from which a working memory is trained. With 90 of each class of
CIFAR-100 it tells them apart worse than features of patches do (72 and 79 % right in a task of five classes), with 450
as well, and both together better (82, 84 and 87 %)."""
EFFORTS: dict[Effort, Budget] = {
    "quick": Budget(4_000, fewest=3, most=12),
    "normal": Budget(20_000, fewest=10, most=30),
    "thorough": Budget(100_000, fewest=30, most=100),
}


def suitable_recipe(pictures: int, effort: Effort, epochs: int | None = None) -> Recipe:
    """Chorus's recipe made to suit so many pictures: where there are few, smaller batches and more epochs."""
    if effort not in EFFORTS:
        raise InputError(f"effort {effort!r} is not known: choose {', '.join(EFFORTS)}")
    if epochs is not None and effort != "normal":
        raise InputError(f"--{effort} and --epochs each say how long: give one of them")
    epochs = EFFORTS[effort].epochs(pictures) if epochs is None else epochs
    return replace(Chorus.recipe, epochs=epochs, batch_size=min(max(pictures // 10, 8), 32))


def says_how_long(effort: Effort, epochs: int | None) -> bool:
    """Whether somebody wants a working memory to be trained, however few pictures there are."""
    return effort == "thorough" or epochs is not None


def check_validation(share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"--validation {share:g} must lie between 0 and 1, and be neither: 0.1 is usual")


def read_folder(
    folder: Path | str | Tree,
    model: Model | None,
    side: int | None,
    validation: float,
    progress: Progress = no_progress,
    fit: Fit = "crop",
    skipped: list[Skipped] | None = None,
    look: Look = themselves,
) -> Splits:
    """Pictures in class folders as a model takes them in, or what it finds when it looks at them; `side` and `fit` are
    a new one's, of coloured squares.

    Those that cannot be read, or lie in no class folder, are added to `skipped`; without such a list the first of them
    is an error.
    """
    if skipped is None:
        check_no_strays(Tree.at(folder))
    if model is None:
        return Folder(folder, side, validation, fit, skipped, look).load(progress=progress)
    shape = model.info.shape
    train, held_out = Folder(folder, shape.side, validation, shape.fit, skipped, look).load(progress=progress)
    return Splits(shape.suited(train), shape.suited(held_out))


def settings_of(holder: object) -> ChorusSettings:
    """The method's settings as a classifier, or a set of flags, has them among its other attributes; but for the start,
    which has to be chosen.
    """
    names = [field.name for field in fields(ChorusSettings) if field.name != "start"]
    return ChorusSettings(**{name: getattr(holder, name) for name in names})


class Wishes(NamedTuple):
    """How somebody wants a new model to be made, and any to learn."""

    settings: ChorusSettings
    start: StartChoice
    image_size: int | None
    fit: Fit
    flip: bool
    seed: int
    effort: Effort
    epochs: int | None
    cache: bool
    """Whether what a start finds in pictures is kept for a while."""
    threads: int = 1
    """Among which batches are split."""


def teach(
    model: Model | None,
    wishes: Wishes,
    name: str,
    some: Callable[[int, int], tuple[Tensor, int]],
    read: Callable[[int | None, Look], Splits],
    observer: Observer | None = None,
    *,
    numbered: bool = False,
    stays_out: bool = False,
) -> Model:
    """A model, a new one unless there is one already, that knows these classes as well.

    `some` gives a few of the pictures, brought to a side, and the side of the usual one; `read` gives all, at a new
    model's side where that is not left to them, or what it is told to keep of them.
    """
    begun = time.perf_counter()
    if model is not None:
        _check_task(model.info, name)
    suitable_recipe(1, wishes.effort, wishes.epochs)  # refuses what makes no sense before a picture is read
    settings, start, side, fit, flip, seed, effort, epochs, cache, threads = wishes
    trains = says_how_long(effort, epochs)
    if trains and (model.info.settings.start if model else start) not in ("nothing", "auto"):
        flag = f"--{effort}" if epochs is None else "--epochs"
        raise InputError(f"nothing is trained on a start: leave {flag} out, or make a new model with --start nothing")
    if model is None:
        chosen, reason = choose_start(start, settings, trains, lambda: Glance(*some(SMALLEST, GLANCED)))
        settings = replace(settings, start=chosen)
        side = settings.start_size if side is None and chosen != "nothing" else side
        pictures = read(side, _look_of(settings, cache))
        model = new_model(pictures.train, settings, seed, flip, numbered, fit, reason)
    else:
        pictures = read(None, partial(model.net.look, cache=cache))
    recipe = suitable_recipe(len(pictures.train), effort, epochs)
    return learn(model, pictures, name, recipe, observer, 0 if trains else FEWEST, stays_out, begun, threads)


def teach_folder(
    model: Model | None,
    wishes: Wishes,
    name: str,
    folder: Tree,
    validation: float,
    observer: Observer | None = None,
    progress: Progress = no_progress,
    skipped: list[Skipped] | None = None,
    when_read: Callable[[], None] = lambda: None,
) -> Model:
    """`teach` with the pictures of a folder of class folders; `when_read` is called before they are learned from."""

    def read(side: int | None, look: Look) -> Splits:
        pictures = read_folder(folder, model, side, validation, progress, wishes.fit, skipped, look)
        when_read()
        return pictures

    some, (_, set_aside) = partial(some_pictures, folder, wishes.fit), split_of(folder)
    return teach(model, wishes, name, some, read, observer, stays_out=set_aside is not None)


def _look_of(settings: ChorusSettings, cache: bool) -> Look:
    """What a model that is about to be made needs of uint8 pictures: with a start its features."""
    start = StartFeatures.named(settings.start, settings.start_size)

    def look(images: Tensor) -> Tensor:
        settings.check_channels(images.shape[1])
        return images if start is None else start.look(images, cache)

    return look


def new_model(
    pictures: ImageSet,
    settings: ChorusSettings,
    seed: int,
    flip: bool = True,
    numbered: bool = False,
    fit: Fit = "crop",
    start_reason: str = "",
) -> Model:
    """A model that knows nothing yet, for pictures like these, which set its normalization unless it has a start."""
    settings.check_channels(pictures.channels)
    shape = InputShape(pictures.channels, pictures.size, fit)
    if settings.depth is None:
        settings = replace(settings, depth=suitable_depth(pictures.size))
    augment = Augment.fitted(pictures) if settings.start == "nothing" else AS_THEY_ARE
    made_with = f"sparc {__version__}"
    info = ModelInfo(shape, settings, augment.mean, augment.std, (), made_with, seed, flip, numbered, start_reason)
    return Model(info.new_net(seeded(seed, "method")), info)


def learn(
    model: Model,
    pictures: Splits,
    name: str,
    recipe: Recipe,
    observer: Observer | None = None,
    fewest: int = 0,
    stays_out: bool = False,
    begun: float | None = None,
    threads: int = 1,
) -> Model:
    """A new model that knows these classes as well; the old one stays as it is, whatever happens.

    `pictures.test` is held out: it says when to stop, how much heads and statistics count, and how good the model is;
    then it is described as well. It `stays_out` of what is known, and of weights, where somebody has set it aside. From
    less than `fewest` pictures a class no working memory is trained, where common features do without one. It counts
    from when it was `begun`, if that was earlier.
    """
    info = model.info
    names = pictures.train.class_names
    _check(info, pictures.train, name)
    classes = tuple(dict.fromkeys((*info.classes, *names)))
    # With nothing else to know it by, one class alone is told from its own pictures turned round.
    turned = len(names) == 1 and model.net.common is None
    shown = _with_turned(pictures) if turned else pictures
    augment = Augment(info.mean, info.std, padding=min(info.shape.image_size) // 8, flip=info.flip and not turned)
    method = _method(model, augment, seed_of=name)
    method.fewest = fewest
    method.weighs_by_validation = not stays_out
    method.labels = [classes.index(each) for each in names] + [len(classes) + number for number in range(3 * turned)]
    patience = Patience(method, recipe.epochs, observer or Observer())
    start = time.perf_counter() if begun is None else begun
    trainer = Trainer(method, recipe, method.generator.initial_seed(), observer, patience, threads=threads)
    task = _task(info, shown)
    trainer.learn(task)
    method.net.keep_classes(range(len(classes)))
    seen = method.net.portions[-1].seen
    share = 0.0 if seen is None else _share_of_newest(model)
    record = LearnedTask(
        name,
        names,
        tuple(pictures.train.counts()),
        len(pictures.test),
        accuracy_in_task=None,
        accuracy_in_all=None,
        learned=datetime.now(UTC).isoformat(timespec="seconds"),
        epochs=0 if seen is None else patience.epochs,
        seconds=round(time.perf_counter() - start, 1),
        share_in_semantic=share,
        taught_semantic=seen is not None and not len(model.net.working),
        seen=seen,
        weights=method.net.portions[-1].weights,
    )
    kept = [replace(each, share_in_semantic=each.share_in_semantic * (1 - share)) for each in info.tasks]
    model = _validated(Model(method.net.eval(), replace(info, tasks=(*kept, record))), pictures.test)
    return model if turned or stays_out else _with_held_out(model, method, task)


class Patience:
    """Early stopping: enough when the pictures held out have not been told apart better for a good while."""

    def __init__(self, method: Chorus, epochs: int, observer: Observer) -> None:
        self.method = method
        self.observer = observer
        self.patience = max(4, epochs // 4)
        self.best = -1.0
        self.since = 0
        self.epochs = 1

    @torch.inference_mode()
    def __call__(self, task: Task) -> bool:
        self.epochs += 1
        if not len(task.validation):
            return False
        self.method.eval()
        logits = self.method.predict_batched(self.method.one_pass, task.validation.images)
        right = accuracy(logits.argmax(1) + task.classes.start, task.validation.labels)
        self.observer.validated(right)
        self.since = 0 if right > self.best else self.since + 1
        self.best = max(self.best, right)
        return self.since >= self.patience


def _method(model: Model, augment: Augment, seed_of: str) -> Chorus:
    info = model.info
    generator = seeded(info.seed, f"task {len(info.tasks)}, {seed_of}")
    method = Chorus(info.settings, info.shape.channels, info.shape.image_size, augment, generator)
    method.net = copy.deepcopy(model.net)
    method.net.generator = generator
    return method


def _task(info: ModelInfo, pictures: Splits) -> Task:
    """The pictures as the next task, labels counted from behind all that were there."""
    known = sum(len(task.classes) for task in info.tasks)
    names = (*(name for task in info.tasks for name in task.classes), *pictures.train.class_names)
    train, held_out = (replace(part, labels=part.labels + known, class_names=names) for part in pictures)
    return Task(len(info.tasks), range(known, len(names)), train, validation=held_out)


def _with_turned(pictures: Splits) -> Splits:
    def turned(part: ImageSet) -> ImageSet:
        images = torch.cat([part.images.rot90(quarter, (2, 3)) for quarter in range(4)])
        labels = torch.arange(4).repeat_interleave(len(part))
        return ImageSet(images, labels, (*part.class_names, "a quarter", "a half", "three quarters"))

    return Splits(turned(pictures.train), turned(pictures.test))


def _check(info: ModelInfo, pictures: ImageSet, name: str) -> None:
    """Say what cannot be learned before time is spent on learning it."""
    shape = info.shape
    shape.check(pictures.shape)
    _check_task(info, name)
    for text in (name, *pictures.class_names):
        check_name(text)
    if info.numbered and not all(map(is_number, pictures.class_names)):
        raise InputError("the model's classes are numbers, and these are not: make another model for them")
    is_alone = len(pictures.class_names) == 1 and not info.settings.describes_all
    if is_alone and shape.image_size[0] != shape.image_size[1]:
        raise InputError("one class alone is told from its own pictures turned round, which have to be square for that")


def _check_task(info: ModelInfo, name: str) -> None:
    if any(task.name == name for task in info.tasks):
        raise InputError(f"the model has a task “{name}” already: give this one another --name")


def _share_of_newest(model: Model) -> float:
    """How much of the semantic memory comes from a task that has just been learned: of the first one, all of it.

    Consolidation reaches as many of its filters as a working memory has of its own to pair them with.
    """
    if not len(model.net.working):
        return 1.0 if model.info.settings.shared else 0.0
    semantic = sum(unit.channels * unit.shared for unit in model.net.units)
    paired = sum(unit.channels * min(unit.own, unit.shared) for unit in model.net.units)
    return (1 - model.info.settings.alpha) * paired / semantic if semantic else 0.0


def _with_held_out(model: Model, method: Chorus, task: Task) -> Model:
    """Statistics take in the pictures that were held out, once these have said how good it is without them."""
    if not len(task.validation) or not model.net.all_voices():
        return model
    method.describe(task.validation, task)
    *others, last = model.info.tasks
    counts = task.validation.counts()[task.classes.start :]
    last = replace(last, pictures=tuple(map(sum, zip(last.pictures, counts, strict=True))))
    return Model(method.net.eval(), replace(model.info, tasks=(*others, last)))


def _validated(model: Model, held_out: ImageSet) -> Model:
    if not len(held_out):
        return model
    *others, last = model.info.tasks
    own = np.array(model.info.labels(last))
    in_task = np.isin(np.arange(len(model.info.classes)), own)
    found, labels = answers(model, held_out.images), own[held_out.labels.numpy()]
    _, in_all, in_its_task = graded(found.scores, labels, in_task)
    check = checked(found.scores, labels, found.strangeness, model.info.checks)
    last = replace(last, accuracy_in_task=in_its_task, accuracy_in_all=in_all, check=check)
    return Model(model.net, replace(model.info, tasks=(*others, last)))
