"""From what somebody sends with pictures to what a worker is to learn."""

from collections.abc import Collection, Mapping
from typing import get_args

from sparc.data.pictures import Fit
from sparc.edit import check_name
from sparc.errors import InputError
from sparc.learner import Effort, Wishes, suitable_recipe
from sparc.serve.served import Served
from sparc.serve.worker import Job
from sparc.starts import USUAL, StartChoice

VALIDATION = 0.1
"""As `sparc learn` has it."""
EFFORTS, STARTS, FITS = get_args(Effort), get_args(StartChoice), get_args(Fit)
YES_NO = ("yes", "no")
SETTINGS = {
    "task": "What the task is called; without it by its number.",
    "effort": f"How long a working memory is trained: {', '.join(EFFORTS)}.",
    "epochs": "How many passes over the pictures a working memory is trained; instead of effort.",
    "start": f"Of a new model, what it starts from: {', '.join(STARTS)}.",
    "fit": f"Of a new model, how pictures become squares: {' or '.join(FITS)}.",
    "flip": "Of a new model, whether mirror images are learned as well: yes or no.",
}


def job_of(served: Served, settings: Mapping[str, str], names: tuple[str, ...], threads: int) -> Job:
    """What is to be learned, once all that can be said against it beforehand has been."""
    for name in settings:
        if name not in SETTINGS:
            raise InputError(f"“{name[:40]}” is not known here: there are {', '.join(SETTINGS)}; a picture is a file")
    given = {name: value.strip() for name, value in settings.items() if value.strip()}
    effort: Effort = _chosen(given, "effort", EFFORTS, "normal")  # type: ignore[assignment]
    start: StartChoice = _chosen(given, "start", STARTS, "auto")  # type: ignore[assignment]
    fit: Fit = _chosen(given, "fit", FITS, "crop")  # type: ignore[assignment]
    flip = _chosen(given, "flip", YES_NO, "yes") == "yes"
    epochs = _number(given, "epochs")
    suitable_recipe(1, effort, epochs)
    model = served.model
    if model is not None:
        info = model.info
        own = {"start": info.settings.start, "fit": info.shape.fit, "flip": "yes" if info.flip else "no"}
        for name, there in own.items():
            if given.get(name, there) not in (there, "auto"):
                raise InputError(f"{name} of {served.name} is {there} for good: leave it out, or make another model")
    known = [task.name for task in model.info.tasks] if model else []
    task = given.get("task") or next(
        name for number in range(len(known) + 1, 2 * len(known) + 2) if (name := f"task {number}") not in known
    )
    check_name(task)
    if task in known:
        raise InputError(f"the model has a task “{task}” already: give this one another name")
    wishes = Wishes(USUAL, start, None, fit, flip, 0, effort, epochs, False, threads)
    return Job(served.path, task, names, wishes, VALIDATION, threads)


def _chosen(given: Mapping[str, str], name: str, choices: Collection[str], usual: str) -> str:
    value = given.get(name, usual)
    if value not in choices:
        raise InputError(f"{name} {value[:40]} is not known: choose {', '.join(choices)}")
    return value


def _number(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not value.isdecimal() or not 1 <= int(value[:9]) <= 10_000 or len(value) > 5:
        raise InputError(f"{name} {value[:20]} must be a whole number from 1 to 10,000")
    return int(value)
