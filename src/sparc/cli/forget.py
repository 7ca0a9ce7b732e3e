"""`sparc forget`: take classes, or a whole task, out of a model for good."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated

import tyro

from sparc.cli.parse import ModelFile, parse
from sparc.edit import forget
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.model_file import Model, load, save
from sparc.text import one_line


@dataclass(frozen=True)
class Forget:
    model: ModelFile
    classes: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CLASS …")] = ()
    """Names of classes."""
    task: str | None = None
    """Every class of this task, and its working memory with them."""


def main(arguments: list[str]) -> int:
    given = parse(Forget, "forget", __doc__, arguments)
    if bool(given.classes) == (given.task is not None):
        raise InputError("say what to forget: either names of classes, or --task NAME, and not both")
    check_output(given.model)
    with locked(given.model):
        before = load(given.model)
        after = forget(before, given.classes, [] if given.task is None else [given.task])
        save(after, given.model)
    for line in what_remains(before, after):
        print(one_line(line))
    return 0


def what_remains(before: Model, after: Model) -> list[str]:
    """What is gone and what is not, a line each."""
    added = before.parameters_added()
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
        return [
            *lines,
            "No class is left, and the semantic memory is begun anew. Copies of the old file are not touched.",
        ]
    if before.net.all_voices():
        centre = (
            "and the centre and scale of features " if any(voice.scaled for voice in before.net.all_voices()) else ""
        )
        lines.append(
            "The means of what is gone are taken out of all statistics; the covariances, which are estimated from all "
            f"classes together, {centre}stay as they are."
        )
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
