"""Teaching a model, making it forget, and renaming what it knows: for the command line and `ContinualClassifier`."""

import copy
import time
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from sparc import __version__
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import Fit, themselves
from sparc.data.progress import Progress, no_progress
from sparc.data.skipped import Skipped
from sparc.data.sources import Folder
from sparc.data.sources.folder import some_pictures
from sparc.data.stream import Task
from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.chorus import AS_THEY_ARE, Chorus, ChorusSettings
from sparc.model_file import LearnedTask, Model, ModelInfo, is_number
from sparc.model_input import InputShape
from sparc.nn.layout import suitable_depth
from sparc.nn.start import StartFeatures
from sparc.predictor import graded, scores
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


def fewest_pictures(effort: Effort, epochs: int | None = None) -> int:
    """From how many of a class a working memory is trained."""
    return 0 if says_how_long(effort, epochs) else FEWEST


def check_validation(share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"--validation {share:g} must lie between 0 and 1")


def read_folder(
    folder: Path | str,
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

    Those that cannot be read are added to `skipped`; without such a list the first of them is an error.
    """
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


class Started(NamedTuple):
    """What a new model is made with."""

    settings: ChorusSettings
    reason: str
    """Why it has this start."""

    def side(self, asked: int | None) -> int | None:
        """The size that pictures are brought to, unless another was asked for; None if that is left to them."""
        return asked if asked is not None or self.settings.start == "nothing" else self.settings.start_size


def started(settings: ChorusSettings, asked: StartChoice, trains: bool, pictures: Path | Tensor, fit: Fit) -> Started:
    """Settings with the start that suits a folder of pictures, or images."""

    def look() -> Glance:
        if isinstance(pictures, Tensor):
            return Glance(pictures, min(pictures.shape[2:]))
        return Glance(*some_pictures(pictures, fit, SMALLEST, GLANCED))

    start, reason = choose_start(asked, settings, trains, look)
    settings = replace(settings, start=start)
    if isinstance(pictures, Tensor):
        settings.check_channels(pictures.shape[1])
    return Started(settings, reason)


def look_of(known_by: Model | Started, cache: bool) -> Look:
    """What a model, or one that is about to be made, needs of uint8 pictures: with a start its features."""
    if isinstance(known_by, Model):
        return partial(known_by.net.look, cache=cache)
    start = StartFeatures.named(known_by.settings.start, known_by.settings.start_size)
    return themselves if start is None else partial(start.look, cache=cache)


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
) -> Model:
    """A new model that knows these classes as well; the old one stays as it is, whatever happens.

    `pictures.test` is held out: it says when to stop, and how good the model is; then, unless it `stays_out` because
    somebody has set it aside for testing, it is described as well. From less than `fewest` pictures a class no working
    memory is trained, where common features do without one.
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
    method.labels = [classes.index(each) for each in names] + [len(classes) + number for number in range(3 * turned)]
    patience = Patience(method, recipe.epochs)
    start = time.perf_counter()
    trainer = Trainer(method, recipe, method.generator.initial_seed(), observer, patience)
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
    )
    kept = [replace(each, share_in_semantic=each.share_in_semantic * (1 - share)) for each in info.tasks]
    model = _validated(Model(method.net.eval(), replace(info, tasks=(*kept, record))), pictures.test)
    return model if turned or stays_out else _with_held_out(model, method, task)


def forget(model: Model, classes: Collection[str] = (), tasks: Collection[str] = ()) -> Model:
    """A new model without these classes and tasks: no output, and no mean of them in any working memory.

    A working memory that has no class left goes as well.
    """
    for kind, names, known in (
        ("class", classes, model.info.classes),
        ("task", tasks, [task.name for task in model.info.tasks]),
    ):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known)
    gone = {*classes, *(name for task in model.info.tasks if task.name in tasks for name in task.classes)}
    kept = []
    for task in model.info.tasks:
        left = [(name, count) for name, count in zip(task.classes, task.pictures, strict=True) if name not in gone]
        if left:
            names, counts = zip(*left, strict=True)
            kept.append(replace(task, classes=names, pictures=counts))
    info = replace(model.info, tasks=tuple(kept))
    if not kept:
        # Nobody needs the semantic memory any more, so nothing has to remain in it either.
        return Model(info.new_net(seeded(info.seed, "begun anew")), info)
    net = copy.deepcopy(model.net)
    net.keep_classes([label for label, name in enumerate(model.info.classes) if name not in gone])
    if not len(net.working):
        net.semantic = info.new_net(seeded(info.seed, "begun anew")).semantic  # for the same reason
    return Model(net, info)


def rename(model: Model, old: str, new: str, kind: Literal["class", "task"] = "class") -> Model:
    """A new model that calls a class, in every task that has it, or a task, by another name; its answers stay."""
    info = model.info
    known = info.classes if kind == "class" else [task.name for task in info.tasks]
    if old not in known:
        raise unknown(kind, old, known)
    new = unicodedata.normalize("NFC", new)  # as the names of folders are
    _check_name(new)
    if kind == "class" and info.numbered:
        if not is_number(new):
            raise InputError(f"the model's classes are numbers, and “{new}” is none: give a number")
        new = str(int(new))  # as it is given back
    if new in known:
        raise InputError(f"the model has a {kind} “{new}” already: take another name")

    def renamed(task: LearnedTask) -> LearnedTask:
        if kind == "task":
            return replace(task, name=new if task.name == old else task.name)
        return replace(task, classes=tuple(new if name == old else name for name in task.classes))

    return Model(model.net, replace(info, tasks=tuple(map(renamed, info.tasks))))


class Patience:
    """Early stopping: enough when the pictures held out have not been told apart better for a good while."""

    def __init__(self, method: Chorus, epochs: int) -> None:
        self.method = method
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
    if any(task.name == name for task in info.tasks):
        raise InputError(f"the model has a task “{name}” already: give this one another --name")
    for text in (name, *pictures.class_names):
        _check_name(text)
    if info.numbered and not all(map(is_number, pictures.class_names)):
        raise InputError("the model's classes are numbers, and these are not: make another model for them")
    is_alone = len(pictures.class_names) == 1 and not info.settings.describes_all
    if is_alone and shape.image_size[0] != shape.image_size[1]:
        raise InputError("one class alone is told from its own pictures turned round, which have to be square for that")


def _check_name(text: str) -> None:
    if not text.strip() or not text.isprintable():
        raise InputError(f"“{text}” is no name for a task or a class: take one that can be printed")


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
    own = torch.tensor(model.info.labels(last))
    in_task = torch.zeros(len(model.info.classes), dtype=torch.bool).index_fill(0, own, True)
    _, in_all, in_its_task = graded(scores(model, held_out.images), own[held_out.labels], in_task)
    last = replace(last, accuracy_in_task=in_its_task, accuracy_in_all=in_all)
    return Model(model.net, replace(model.info, tasks=(*others, last)))
