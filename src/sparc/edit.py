"""What a model knows, edited: classes and tasks are forgotten, or go by another name."""

import copy
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from sparc.discovery import unknown
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.model_file import Model, of_stored, save
from sparc.model_info import LearnedTask, ModelInfo, is_number
from sparc.onnx_model import drop_graph
from sparc.predictor import USUAL_SHARE, why_not
from sparc.stored_model import parameters_added, read
from sparc.train import seeded

Kind = Literal["class", "task"]


def edit_file(path: Path, change: Callable[[Model], Model]) -> tuple[Model, Model]:
    """Replace a model file by what becomes of it, while nobody else writes: the model before, and after."""
    check_output(path)
    with locked(path):
        stored = read(path)
        before = of_stored(stored)
        after = change(before)
        save(after, path)
    drop_graph(stored.sha256)  # or what is forgotten would still be in the user's cache
    return before, after


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


def what_remains(before: Model, after: Model) -> list[str]:
    """What is gone and what is not, a line each."""
    added = parameters_added(before.info)
    left = {task.name: task for task in after.info.tasks}
    lines = []
    for index, task in enumerate(before.info.tasks):
        if task.name not in left:
            rest = "; ".join(_remains(before, index, left)) or "nothing else remains of it"
            memory = f"its working memory and head, {added[index]:,} parameters,"
            what = f"{memory if added[index] else 'its means'} are"
            lines.append(f"{task.name} ({', '.join(task.classes)}): {what} gone; {rest}.")
        elif gone := [name for name in task.classes if name not in left[task.name].classes]:
            memory = (
                ""
                if task.seen is None
                else f"; the working memory, which learned them along with {', '.join(left[task.name].classes)}, stays "
                "until the whole task is forgotten"
            )
            lines.append(f"{', '.join(gone)} of {task.name}: the outputs are gone{memory}.")
    if not left:
        anew = ", and the semantic memory is begun anew" if any(task.seen for task in before.info.tasks) else ""
        return [*lines, f"No class is left{anew}. Copies of the old file are not touched."]
    if before.net.all_voices():
        centre = (
            "and the centre and scale of features " if any(voice.scaled for voice in before.net.all_voices()) else ""
        )
        lines.append(
            "The means of what is gone are taken out of all statistics; the covariances, which are estimated from all "
            f"classes together, {centre}stay as they are."
        )
    counted, still = (len(model.info.known_strangeness) for model in (before, after))
    if still < counted:
        lines.append(f"Of {counted} held-out pictures, from which it is known what is strange, {still} still count.")
    if before.info.limit(USUAL_SHARE) is not None and after.info.limit(USUAL_SHARE) is None:
        lines.append(f"“None of these” is not said any more: {why_not(after.info)}.")
    known = len(after.info.classes)
    lines.append(f"{known} {'class is' if known == 1 else 'classes are'} left. Copies of the old file are not touched.")
    return lines


def _remains(model: Model, index: int, left: Collection[str]) -> Iterator[str]:
    """What a task that is gone leaves in those that are not."""
    tasks = model.info.tasks
    task, trained = tasks[index], [each for each in tasks if each.name in left and each.seen is not None]
    heirs = [each.name for each in trained if each in tasks[index + 1 :]]
    if task.share_in_semantic and left:
        how = "trained with it" if task.taught_semantic else "mixed in from its point-wise filters"
        yield f"{task.share_in_semantic:.2%} of the semantic memory, which the other tasks use, stays as it was {how}"
    if model.info.settings.inherit != "nothing" and heirs and task.seen is not None:
        surely = "learned" if model.info.settings.inherit == "newest" else "may have learned"
        yield f"{', '.join(heirs)} {surely} on from its working memory, and what came of that stays"
    if model.info.settings.statistics and any(each in tasks[:index] for each in trained):
        yield "its part in the covariances of older working memories stays"
    if model.info.settings.start != "nothing" and left:
        yield "its part in the covariance of the start's features stays"
    elif model.info.settings.patches and left:
        yield "its part in the covariance of patches stays"
        if not index:
            yield "so do the averages of patches of the first pictures that the model learned from"


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


def what_is_called(before: Model, after: Model, kind: Kind) -> str:
    """What was renamed, in a line."""
    names = zip(names_of(kind, before.info), names_of(kind, after.info), strict=True)
    old, new = next((old, new) for old, new in names if old != new)
    return f"{old} is called {new} now. Copies and exports of the old file are not touched."


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
