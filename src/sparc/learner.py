"""Teaching one model, task after task: what the command line and `ContinualClassifier` both stand on."""

import copy
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import torch
from torch import Tensor

from sparc import __version__
from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Task
from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.sparc import SPARC, SparcSettings
from sparc.model_file import LearnedTask, Model, ModelInfo, Shape
from sparc.nn.batched import predict_batched
from sparc.nn.layout import suitable_depth
from sparc.train import Observer, Trainer, accuracy, seeded

Effort = Literal["quick", "normal", "thorough"]


@dataclass(frozen=True)
class Budget:
    """How long a task is learned: until about so many pictures were shown, within bounds."""

    pictures: int
    fewest: int
    most: int

    def epochs(self, pictures: int) -> int:
        """
        >>> [EFFORTS["normal"].epochs(pictures) for pictures in (20, 2000, 50_000)]
        [60, 20, 10]
        """
        return min(max(round(self.pictures / pictures), self.fewest), self.most)


EFFORTS: dict[Effort, Budget] = {
    "quick": Budget(8_000, fewest=3, most=25),
    "normal": Budget(40_000, fewest=10, most=60),
    "thorough": Budget(200_000, fewest=30, most=150),
}


def suitable_recipe(pictures: int, effort: Effort, epochs: int | None = None) -> Recipe:
    """The paper's recipe made to suit so many pictures: where there are few, smaller steps and more of them."""
    if effort not in EFFORTS:
        raise InputError(f"effort {effort!r} is not known: choose {', '.join(EFFORTS)}")
    if epochs is not None and effort != "normal":
        raise InputError(f"effort {effort!r} and {epochs} epochs each say how long: give one of them")
    epochs = EFFORTS[effort].epochs(pictures) if epochs is None else epochs
    return replace(SPARC.recipe, epochs=epochs, batch_size=min(max(pictures // 10, 8), 32), schedule="cosine")


def new_model(
    pictures: ImageSet, settings: SparcSettings, seed: int, flip: bool = True, numbered: bool = False
) -> Model:
    """A model that knows nothing yet, for pictures like these, which set its normalization."""
    depth = suitable_depth(pictures.size) if settings.depth is None else settings.depth
    shape = Shape(pictures.channels, pictures.size, settings.width, depth, settings.shared)
    augment = Augment.fitted(pictures)
    made_with = f"sparc {__version__}"
    about = ModelInfo(
        shape,
        augment.mean,
        augment.std,
        settings.alpha,
        settings.kappa,
        made_with=made_with,
        seed=seed,
        flip=flip,
        numbered=numbered,
    )
    return Model(shape.new_net(seeded(seed, "method")), about)


def learn(model: Model, pictures: Splits, name: str, recipe: Recipe, observer: Observer | None = None) -> Model:
    """A new model that knows these classes as well; the old one stays as it is, whatever happens.

    `pictures.test` is held out: it says when to stop, and how good the model is.
    """
    about = model.about
    names = pictures.train.class_names
    _check(about, pictures.train, name)
    # One class alone has nothing to be told from, so it is told from its own pictures turned round.
    shown = _with_turned(pictures) if len(names) == 1 else pictures
    augment = Augment(
        about.mean, about.std, padding=min(about.shape.image_size) // 8, flip=about.flip and len(names) > 1
    )
    method = _method(model, augment, seed_of=name)
    patience = Patience(method, recipe.epochs)
    start = time.perf_counter()
    trainer = Trainer(method, recipe, method.generator.initial_seed(), observer, patience)
    trainer.learn(_task(about, shown))
    method.net.memories()[-1].keep_outputs(list(range(len(names))))
    record = LearnedTask(
        name,
        names,
        tuple(pictures.train.counts()),
        len(pictures.test),
        accuracy_in_task=None,
        accuracy_in_all=None,
        learned=datetime.now(UTC).isoformat(timespec="seconds"),
        epochs=patience.epochs,
        seconds=round(time.perf_counter() - start, 1),
        share_in_semantic=_share_of_newest(model),
        taught_semantic=not about.tasks,
    )
    left = 1 - record.share_in_semantic
    kept = [replace(task, share_in_semantic=task.share_in_semantic * left) for task in about.tasks]
    return _validated(Model(method.net.eval(), replace(about, tasks=(*kept, record))), pictures.test)


@torch.inference_mode()
def outputs(model: Model, images: Tensor) -> Tensor:
    """What every head says of these uint8 pictures."""
    normalize = Augment(model.about.mean, model.about.std).normalize
    return predict_batched(model.inference, images, normalize)


def scores(model: Model, images: Tensor) -> Tensor:
    """What the model gives each class: of a class that was learned twice, the best of its outputs."""
    return best_of_outputs(model.about, outputs(model, images))


def best_of_outputs(about: ModelInfo, said: Tensor) -> Tensor:
    """From a column an output to a column a class."""
    nothing = said.new_full((len(said), len(about.classes)), -torch.inf)
    return nothing.scatter_reduce(1, torch.tensor(about.owners()).expand_as(said), said, "amax")


@dataclass(frozen=True)
class Tested:
    """What a model made of pictures whose classes are known."""

    taken_for: dict[str, Counter[str]]
    """Of each class that was shown, how often it was given which class."""
    accuracy_in_all: float
    """In percent, among every class that the model knows."""
    accuracy_in_task: float | None
    """The same among the classes that were learned with the right one; None where all were learned alone."""

    @property
    def pictures(self) -> int:
        return sum(taken.total() for taken in self.taken_for.values())


def tested(model: Model, pictures: ImageSet) -> Tested:
    """How good the model is on pictures of classes that it knows, by its own names for them."""
    about, classes = model.about, model.about.classes
    place = {name: number for number, name in enumerate(classes)}
    labels = torch.tensor([place[name] for name in pictures.class_names])[pictures.labels]
    said = outputs(model, pictures.images)
    answers = best_of_outputs(about, said).argmax(1)
    shown, counts = torch.stack((labels, answers)).unique(dim=1, return_counts=True)
    taken_for: dict[str, Counter[str]] = {name: Counter() for name in pictures.class_names}
    for label, answer, count in zip(*shown.tolist(), counts.tolist(), strict=True):
        taken_for[classes[label]][classes[answer]] = count
    task_of = [number for number, task in enumerate(about.tasks) for _ in task.classes]
    knows = torch.zeros(len(classes), len(about.tasks), dtype=torch.bool)
    knows[about.owners(), task_of] = True
    beside = knows[:, task_of]  # which outputs were learned together with a class
    in_task = torch.tensor(about.owners())[said.masked_fill(~beside[labels], -torch.inf).argmax(1)]
    choice = beside.sum(1)[labels] > knows.sum(1)[labels]  # there was another class to choose
    return Tested(
        taken_for,
        accuracy(answers, labels),
        accuracy(in_task[choice], labels[choice]) if choice.any() else None,
    )


def forget(model: Model, classes: Collection[str] = (), tasks: Collection[str] = ()) -> Model:
    """A new model without these classes and tasks; a working memory that has no class left goes as well."""
    for kind, names, known in (
        ("class", classes, model.about.classes),
        ("task", tasks, [task.name for task in model.about.tasks]),
    ):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known)
    net = copy.deepcopy(model.net)
    memories, kept = [], []
    for memory, task in zip(net.memories(), model.about.tasks, strict=True):
        gone = task.classes if task.name in tasks else classes
        places = [place for place, name in enumerate(task.classes) if name not in gone]
        if places:
            memory.keep_outputs(places)
            memories.append(memory)
            names = tuple(task.classes[place] for place in places)
            kept.append(replace(task, classes=names, pictures=tuple(task.pictures[place] for place in places)))
    about = replace(model.about, tasks=tuple(kept))
    if not kept:
        # Nobody needs the semantic memory any more, so nothing has to remain in it either.
        return Model(about.shape.new_net(seeded(about.seed, "begun anew")), about)
    net.working = torch.nn.ModuleList(memories)
    return Model(net, about)


class Patience:
    """Early stopping: enough when the pictures held out have not been told apart better for a good while."""

    def __init__(self, method: SPARC, epochs: int) -> None:
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


def _method(model: Model, augment: Augment, seed_of: str) -> SPARC:
    about = model.about
    generator = seeded(about.seed, f"task {len(about.tasks)}, {seed_of}")
    shape = about.shape
    settings = SparcSettings(
        width=shape.width, depth=shape.depth, shared=shape.shared, alpha=about.alpha, kappa=about.kappa
    )
    method = SPARC(settings, shape.channels, shape.image_size, augment, generator)
    method.net = copy.deepcopy(model.net)
    method.net.generator = generator
    return method


def _task(about: ModelInfo, pictures: Splits) -> Task:
    """The pictures as the next task, labels counted from behind the outputs that are there."""
    known = len(about.owners())
    names = (*(name for task in about.tasks for name in task.classes), *pictures.train.class_names)
    train, held_out = (ImageSet(part.images, part.labels + known, names) for part in pictures)
    return Task(len(about.tasks), range(known, len(names)), train, validation=held_out)


def _with_turned(pictures: Splits) -> Splits:
    def turned(part: ImageSet) -> ImageSet:
        images = torch.cat([part.images.rot90(quarter, (2, 3)) for quarter in range(4)])
        labels = torch.arange(4).repeat_interleave(len(part))
        return ImageSet(images, labels, (*part.class_names, "a quarter", "a half", "three quarters"))

    return Splits(turned(pictures.train), turned(pictures.test))


def _check(about: ModelInfo, pictures: ImageSet, name: str) -> None:
    """Say what cannot be learned before time is spent on learning it."""
    shape = about.shape
    shape.check_suits(pictures.images)
    if any(task.name == name for task in about.tasks):
        raise InputError(f"the model has a task “{name}” already: give this one another --name")
    for text in (name, *pictures.class_names):
        if not text.strip() or not text.isprintable():
            raise InputError(f"“{text}” is no name for a task or a class: take one that can be printed")
    if about.numbered and not all(name.removeprefix("-").isdecimal() for name in pictures.class_names):
        raise InputError("the model's classes are numbers, and these are not: make another model for them")
    if len(pictures.class_names) == 1 and shape.image_size[0] != shape.image_size[1]:
        raise InputError("one class alone is told from its own pictures turned round, which have to be square for that")


def _share_of_newest(model: Model) -> float:
    """How much of the semantic memory comes from a task that has just been learned: of the first one, all of it.

    Consolidation reaches as many of its filters as a working memory has of its own to pair them with.
    """
    if not model.about.tasks:
        return 1.0 if model.about.shape.shared else 0.0
    semantic = sum(unit.channels * unit.shared for unit in model.net.units)
    paired = sum(unit.channels * min(unit.own, unit.shared) for unit in model.net.units)
    return (1 - model.about.alpha) * paired / semantic if semantic else 0.0


def _validated(model: Model, held_out: ImageSet) -> Model:
    if not len(held_out):
        return model
    *others, last = model.about.tasks
    mine = outputs(model, held_out.images)[:, -len(last.classes) :].argmax(1)
    every = scores(model, held_out.images).argmax(1)
    places = torch.tensor([model.about.classes.index(name) for name in last.classes])
    last = replace(
        last,
        accuracy_in_task=accuracy(mine, held_out.labels) if len(last.classes) > 1 else None,
        accuracy_in_all=accuracy(every, places[held_out.labels]),
    )
    return Model(model.net, replace(model.about, tasks=(*others, last)))
