"""What a model says of itself: for machines, as tables, and as a model card in Markdown."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from sparc.model_file import VERSION, LearnedTask, Model, ModelInfo
from sparc.report.labels import percent, size
from sparc.report.tables import plain_table
from sparc.text import counted, markdown, one_line

FEW = 5
"""Names that a table lists before it says how many more there are."""

PAPER = (
    "Bhat, Niesten, Arani and Zonooz, *Continual Learning Beyond Experience Rehearsal and Full Model Surrogates*, "
    "ICML 2025"
)


def facts(model: Model, path: Path) -> dict[str, object]:
    """All that is known of a model, for machines."""
    about, shape, counts = model.about, model.about.shape, model.net.parameter_counts()
    tasks = [
        {
            "name": task.name,
            "classes": [
                {"name": name, "pictures": pictures} for name, pictures in zip(task.classes, task.pictures, strict=True)
            ],
            "learned": task.learned,
            "pictures": sum(task.pictures),
            "held_out": task.held_out,
            "accuracy_in_task": task.accuracy_in_task,
            "accuracy_in_all": task.accuracy_in_all,
            "epochs": task.epochs,
            "seconds": task.seconds,
            "parameters_added": working + head,
            "share_in_semantic": task.share_in_semantic,
        }
        for task, working, head in zip(about.tasks, counts.tasks, counts.heads, strict=True)
    ]
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "format_version": VERSION,
        "made_with": about.made_with,
        "seed": about.seed,
        "classes": list(about.classes),
        "learned_more_than_once": relearned(about),
        "tasks": tasks,
        "image_size": list(shape.image_size),
        "channels": shape.channels,
        "mean": list(about.mean),
        "std": list(about.std),
        "width": shape.width,
        "depth": shape.depth,
        "shared": shape.shared,
        "alpha": about.alpha,
        "kappa": about.kappa,
        "share_of_forgotten_tasks": forgotten_share(about),
        "parameters": {**_by_owner(model), "all": counts.total},
    }


def tables(model: Model, path: Path) -> list[Table]:
    """The same for a terminal, with long lists shortened."""
    shown = [_overview(model, path)]
    if model.about.tasks:
        shown += [_accuracies(model.about), _learning(model)]
    parameters = plain_table("Parameters", "owner", "number")
    for owner, count in _by_owner(model).items():
        parameters.add_row(owner, f"{count:,}")
    parameters.add_row("[bold]all", f"[bold]{model.net.parameter_counts().total:,}")
    return [*shown, parameters]


def card(model: Model, path: Path) -> str:
    """A model card in Markdown. It depends on nothing but the file."""
    parts = [_what_it_is(model, path), _what_it_knows(model.about), _how_it_was_trained(model, path), _use(path)]
    return "\n\n".join([*parts, _limits(model.about)]) + "\n"


def relearned(about: ModelInfo) -> dict[str, list[str]]:
    """The classes that were learned more than once, with the tasks that have them."""
    tasks = {name: [task.name for task in about.tasks if name in task.classes] for name in about.classes}
    return {name: names for name, names in tasks.items() if len(names) > 1}


def forgotten_share(about: ModelInfo) -> float:
    """How much of the semantic memory comes from tasks that are gone: what those that are there do not account for."""
    if not about.tasks or not about.shape.shared:
        return 0.0
    rest = 1 - sum(task.share_in_semantic for task in about.tasks)
    return rest if rest > 1e-9 else 0.0


def shortened(names: Sequence[str], most: int = FEW) -> str:
    """
    >>> shortened(["cat", "dog", "eel"]), shortened(["cat", "dog", "eel"], most=1)
    ('cat, dog, eel', 'cat … and 2 more')
    """
    if len(names) <= most:
        return ", ".join(map(one_line, names))
    return f"{', '.join(map(one_line, names[:most]))} … and {len(names) - most:,} more"


def _by_owner(model: Model) -> dict[str, int]:
    counts = model.net.parameter_counts()
    return {"semantic memory": counts.semantic, "working memories": sum(counts.tasks), "heads": sum(counts.heads)}


def _overview(model: Model, path: Path) -> Table:
    about, shape = model.about, model.about.shape
    rows = {
        "classes": f"{counted(len(about.classes), 'class', 'classes')} in {counted(len(about.tasks), 'task')}",
        "pictures": _pictures(about),
        "mean of each channel": _numbers(about.mean),
        "deviation of each channel": _numbers(about.std),
        "net": f"width {shape.width:g}, depth {shape.depth}, {shape.shared:.0%} of the point-wise filters shared",
        "α, kept at a consolidation": f"{about.alpha:g}",
        "κ, largest activation of a head": f"{about.kappa:g}",
        "file": f"{size(path.stat().st_size)}, format {VERSION}",
        "made with": f"{one_line(about.made_with)}, seed {about.seed}",
    }
    if again := relearned(about):
        rows["learned more than once"] = shortened([f"{name} ({', '.join(tasks)})" for name, tasks in again.items()])
    if share := forgotten_share(about):
        rows["semantic memory of forgotten tasks"] = f"{share:.1%}"
    table = plain_table(one_line(path.name).replace("[", r"\["), "what", "value")
    table.columns[1].justify = "left"
    for what, value in rows.items():
        table.add_row(what, Text(value))
    return table


def _accuracies(about: ModelInfo) -> Table:
    table = plain_table("Tasks", "task", "classes", "pictures", "% right\nin the task", "% right\namong all then")
    table.columns[1].justify = "left"
    for task in about.tasks:
        accuracies = (percent(accuracy, 1) for accuracy in (task.accuracy_in_task, task.accuracy_in_all))
        names = Text(shortened(task.classes))
        table.add_row(Text(one_line(task.name)), names, f"{sum(task.pictures):,}", *accuracies)
    return table


def _learning(model: Model) -> Table:
    table = plain_table("Learning", "task", "learned", "epochs", "seconds", "parameters added", "share in\nsemantic")
    counts = model.net.parameter_counts()
    for task, working, head in zip(model.about.tasks, counts.tasks, counts.heads, strict=True):
        numbers = (f"{task.epochs:,}", f"{task.seconds:,.1f}", f"{working + head:,}", f"{task.share_in_semantic:.1%}")
        table.add_row(Text(one_line(task.name)), Text(_when(task)), *numbers)
    return table


def _what_it_is(model: Model, path: Path) -> str:
    about = model.about
    known = (
        f"It knows {counted(len(about.classes), 'class', 'classes')}, learned in {counted(len(about.tasks), 'task')} "
        "one after another"
        if about.tasks
        else "It knows no class yet"
    )
    return (
        f"# Model card: {markdown(path.stem)}\n\n"
        f"An image classifier that is taught new classes without the pictures of the old ones. {known}. "
        f"Pictures are brought to {_pictures(about)}."
    )


def _what_it_knows(about: ModelInfo) -> str:
    if not about.tasks:
        return "## What it knows\n\nNothing so far: no task was learned, or all were forgotten."
    lines = ["## What it knows", "", "| task | class | pictures seen |", "|---|---|---:|"]
    for task in about.tasks:
        for name, pictures in zip(task.classes, task.pictures, strict=True):
            lines.append(f"| {markdown(task.name)} | {markdown(name)} | {pictures:,} |")
    if again := relearned(about):
        listed = "; ".join(f"{markdown(name)} in {', '.join(map(markdown, tasks))}" for name, tasks in again.items())
        lines += ["", f"Learned more than once, so that the best of several outputs counts: {listed}."]
    lines += [
        "",
        "Accuracy in percent on pictures held out from training, when the task had just been learned: *in the task* "
        "the choice was among the task's own classes, *among all* among every class known by then.",
        "",
        "| task | learned | held out | in the task | among all |",
        "|---|---|---:|---:|---:|",
    ]
    for task in about.tasks:
        accuracies = " | ".join(percent(value, 1) for value in (task.accuracy_in_task, task.accuracy_in_all))
        lines.append(f"| {markdown(task.name)} | {markdown(_when(task))} | {task.held_out:,} | {accuracies} |")
    return "\n".join(lines)


def _how_it_was_trained(model: Model, path: Path) -> str:
    about, shape, counts = model.about, model.about.shape, model.net.parameter_counts()
    lines = [
        "## How it was trained",
        "",
        f"With SPARC ({PAPER}), by {markdown(about.made_with)}. Every task has a small net of its own, its working "
        "memory, made of depth-wise separable convolutions and frozen when the task ends. "
        f"{shape.shared:.0%} of the point-wise filters belong to a semantic memory that all tasks share: it is learned "
        f"with the first task, and afterwards keeps {about.alpha:g} of itself at each consolidation. Each head is "
        f"scaled so that its largest usual activation is {about.kappa:g}.",
        "",
        f"The file has {size(path.stat().st_size)} and {counts.total:,} parameters: "
        + ", ".join(f"{owner} {count:,}" for owner, count in _by_owner(model).items())
        + f". The net has width {shape.width:g} and depth {shape.depth}; pictures are normalized with mean "
        f"{_numbers(about.mean)} and deviation {_numbers(about.std)}; the seed is {about.seed}.",
    ]
    if about.tasks:
        lines += [
            "",
            "| task | epochs | seconds | parameters added | share in the semantic memory |",
            "|---|---:|---:|---:|---:|",
        ]
    for task, working, head in zip(about.tasks, counts.tasks, counts.heads, strict=True):
        lines.append(
            f"| {markdown(task.name)} | {task.epochs:,} | {task.seconds:,.1f} | {working + head:,} "
            f"| {task.share_in_semantic:.1%} |"
        )
    return "\n".join(lines)


def _use(path: Path) -> str:
    file = shlex.quote(one_line(path.name))
    return f"""\
## How to use it

```sh
sparc predict {file} PICTURE_OR_FOLDER
sparc learn FOLDER --model {file}
sparc inspect {file}
```

Intended for naming which of the classes above a picture shows, where new classes come up over time and the old pictures
may not or cannot be kept."""


def _limits(about: ModelInfo) -> str:
    share = forgotten_share(about)
    remains = f"Tasks that were forgotten make up {share:.1%} of this file's semantic memory. " if share else ""
    return f"""\
## What it is not for, and its limits

- It always names one of the classes above, also for a picture that shows none of them. It is not for decisions about
  people's safety, health or rights.
- No old picture is kept, so nothing can be checked again, or learned again, on the pictures of an old task.
- Every working memory runs on each picture: time grows with the number of tasks.
- Telling tasks apart is harder than telling classes within a task, as no two tasks were ever learned together.
- The accuracies are on held-out pictures of the same folders at the time of learning. Pictures from elsewhere do
  worse, tasks learned later lower the figure among all classes, and the same pictures told when to stop training.
- Probabilities order the classes; they were not calibrated.
- Forgetting a class removes its output, and the whole working memory when it was the task's last class. What the class
  taught the filters that its task still uses stays, and so does what consolidation has mixed into the semantic memory.
  {remains}To be rid of every trace, teach a new model without the class."""


def _pictures(about: ModelInfo) -> str:
    height, width = about.shape.image_size
    kind = {1: "in grey", 3: "in colour"}.get(about.shape.channels, f"with {about.shape.channels} channels")
    return f"{width} × {height} pixels {kind}"


def _when(task: LearnedTask) -> str:
    return one_line(task.learned[:16].replace("T", " "))


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)
