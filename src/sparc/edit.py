"""What a model knows, edited: classes and tasks are forgotten, or go by another name."""

import copy
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.model_file import Model
from sparc.model_info import LearnedTask, ModelInfo, is_number
from sparc.train import seeded

Kind = Literal["class", "task"]


def forget(model: Model, classes: Collection[str] = (), tasks: Collection[str] = ()) -> Model:
    """A new model without these classes and tasks: no output, and no mean of them in any working memory.

    A working memory that has no class left goes as well.
    """
    classes = [_meant("class", name, model.info) for name in classes]
    tasks = [_meant("task", name, model.info) for name in tasks]
    gone = {*classes, *(name for task in model.info.tasks if task.name in tasks for name in task.classes)}
    kept = []
    for task in model.info.tasks:
        left = [(name, count) for name, count in zip(task.classes, task.pictures, strict=True) if name not in gone]
        if left:
            names, counts = zip(*left, strict=True)
            # What its pictures have said together cannot be taken apart.
            check = task.check if len(left) == len(task.classes) else None
            kept.append(replace(task, classes=names, pictures=counts, check=check))
    info = replace(model.info, tasks=tuple(kept))
    if not kept:
        # Nobody needs the semantic memory any more, so nothing has to remain in it either.
        return Model(info.new_net(seeded(info.seed, "begun anew")), info)
    net = copy.deepcopy(model.net)
    net.keep_classes([label for label, name in enumerate(model.info.classes) if name not in gone])
    if not len(net.working):
        net.semantic = info.new_net(seeded(info.seed, "begun anew")).semantic  # for the same reason
    return Model(net, info)


def rename(model: Model, old: str, new: str, kind: Kind = "class") -> Model:
    """A new model that calls a class, in every task that has it, or a task, by another name; its answers stay."""
    info = model.info
    old = _meant(kind, old, info)
    new = _composed(new)
    check_name(new)
    if kind == "class" and info.numbered:
        if not is_number(new):
            raise InputError(f"the model's classes are numbers, and “{new}” is none: give a number")
        new = str(int(new))  # as it is given back
    if new in names_of(kind, info):
        raise InputError(f"the model has a {kind} “{new}” already: take another name")

    def renamed(task: LearnedTask) -> LearnedTask:
        if kind == "task":
            return replace(task, name=new if task.name == old else task.name)
        return replace(task, classes=tuple(new if name == old else name for name in task.classes))

    return Model(model.net, replace(info, tasks=tuple(map(renamed, info.tasks))))


def names_of(kind: Kind, info: ModelInfo) -> Sequence[str]:
    return info.classes if kind == "class" else [task.name for task in info.tasks]


def check_name(text: str) -> None:
    if not text.strip() or not text.isprintable():
        raise InputError(f"“{text}” is no name for a task or a class: take one that can be printed")


def _meant(kind: Kind, name: str, info: ModelInfo) -> str:
    """The name as the model has it, however its letters are composed."""
    known = names_of(kind, info)
    alike = {_composed(each): each for each in known}
    if name not in known and _composed(name) not in alike:
        raise unknown(kind, name, known)
    return name if name in known else alike[_composed(name)]


def _composed(name: str) -> str:
    """As the names of folders are."""
    return unicodedata.normalize("NFC", name)
