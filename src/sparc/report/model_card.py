"""What a model says of itself: for machines, as tables, and as a model card in Markdown."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

from rich.table import Table
from rich.text import Text

from sparc.model_info import LearnedTask, ModelInfo
from sparc.nn.lite0 import FEATURES as START_FEATURES
from sparc.predictor import USUAL_SHARE
from sparc.report.plain_table import parameters_table, plain_table
from sparc.report.reliability import calibration_error_of, none_of_these, probabilities, reliability, unknown_pictures
from sparc.stored_model import count_statistics, parameter_counts, parameters_added
from sparc.text import counted, markdown, one_line, percent, size

FEW = 5
"""Names that a table lists before it says how many more there are."""

PAPER = (
    "Bhat, Niesten, Arani and Zonooz, *Continual Learning Beyond Experience Rehearsal and Full Model Surrogates*, "
    "ICML 2025"
)


class Whole(Protocol):
    """A model, or what lies in its file: torch is not needed to tell of it."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def version(self) -> int: ...


def facts(model: Whole, path: Path) -> dict[str, object]:
    """All that is known of a model, for machines."""
    info = model.info
    owners = _by_owner(info)
    tasks = [
        {
            **asdict(replace(task, check=None)),
            "classes": [
                {"name": name, "pictures": pictures} for name, pictures in zip(task.classes, task.pictures, strict=True)
            ],
            "pictures": sum(task.pictures),
            "parameters_added": added,
        }
        for task, added in zip(info.tasks, parameters_added(info), strict=True)
    ]
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "format_version": model.version,
        "made_with": info.made_with,
        "seed": info.seed,
        "classes": info.classes,
        "learned_more_than_once": relearned(info),
        "tasks": tasks,
        **asdict(info.shape),
        "mean": info.mean,
        "std": info.std,
        **asdict(info.settings),
        "start_reason": info.start_reason,
        "temperature": info.temperature,
        "none_of_these_above": info.limit(USUAL_SHARE),
        "calibration_error_before": calibration_error_of(info, "before"),
        "calibration_error": calibration_error_of(info, "after"),
        "share_of_forgotten_tasks": forgotten_share(info),
        "parameters": {**owners, "all": sum(owners.values())},
    }


def tables(model: Whole, path: Path) -> list[Table]:
    """The same for a terminal, with long lists shortened."""
    shown = [_overview(model, path)]
    if model.info.tasks:
        shown += [_accuracies(model.info), _learning(model.info)]
    return [*shown, parameters_table(_by_owner(model.info))]


def card(model: Whole, path: Path) -> str:
    """A model card in Markdown. It depends on nothing but the file."""
    parts = [_what_it_is(model.info, path), _what_it_knows(model.info), *reliability(model.info)]
    parts += [_how_it_was_trained(model.info, path), _use(path), _limits(model.info)]
    return "\n\n".join(parts) + "\n"


def relearned(info: ModelInfo) -> dict[str, list[str]]:
    """The classes that were learned more than once, with the tasks that have them."""
    tasks = {name: [task.name for task in info.tasks if name in task.classes] for name in info.classes}
    return {name: names for name, names in tasks.items() if len(names) > 1}


def forgotten_share(info: ModelInfo) -> float:
    """How much of the semantic memory comes from tasks that are gone: what those that are there do not account for."""
    if not info.settings.shared or all(task.seen is None for task in info.tasks):
        return 0.0
    rest = 1 - sum(task.share_in_semantic for task in info.tasks)
    return rest if rest > 1e-9 else 0.0


def shortened(names: Sequence[str], most: int = FEW) -> str:
    """The first few names, and how many more there are.

    >>> shortened(["cat", "dog", "eel"]), shortened(["cat", "dog", "eel"], most=1)
    ('cat, dog, eel', 'cat … and 2 more')
    """
    if len(names) <= most:
        return ", ".join(map(one_line, names))
    return f"{', '.join(map(one_line, names[:most]))} … and {len(names) - most:,} more"


def _by_owner(info: ModelInfo) -> dict[str, int]:
    statistics = {"statistics": count_statistics(info)}
    if not _trains(info):
        return statistics
    counts = parameter_counts(info)
    memories = {"semantic memory": counts.semantic, "working memories": sum(counts.tasks)}
    return {**memories, "heads": sum(counts.heads), **statistics}


_STARTS = {
    "newest": "as the newest one is",
    "alike": "as the one is that told its classes apart best",
    "nothing": "from random weights",
}


_FITS = {"crop": "the centre square", "pad": "all of it, padded with the mean colour of its edge"}


def _trains(info: ModelInfo) -> bool:
    """Whether working memories are trained where pictures are enough: on a start nothing is."""
    return info.settings.start == "nothing"


def _overview(model: Whole, path: Path) -> Table:
    info = model.info
    rows = {
        "classes": f"{counted(len(info.classes), 'class', 'classes')} in {counted(len(info.tasks), 'task')}",
        "pictures": _pictures(info),
        "start": start_of(info),
        **(_of_a_net(info) if _trains(info) else {}),
        "features that describe classes": _described(info),
        "none of these": none_of_these(info),
        "file": f"{size(path.stat().st_size)}, format {model.version}",
        "made with": f"{one_line(info.made_with)}, seed {info.seed}",
    }
    if again := relearned(info):
        rows["learned more than once"] = shortened([f"{name} ({', '.join(tasks)})" for name, tasks in again.items()])
    if share := forgotten_share(info):
        rows["semantic memory of forgotten tasks"] = f"{share:.1%}"
    table = plain_table(one_line(path.name).replace("[", r"\["), "what", "value", words=True)
    for what, value in rows.items():
        table.add_row(what, Text(value))
    return table


def _of_a_net(info: ModelInfo) -> dict[str, str]:
    settings = info.settings
    return {
        "mean of each channel": _numbers(info.mean),
        "deviation of each channel": _numbers(info.std),
        "net": f"width {settings.width:g}, depth {settings.depth}, "
        f"{settings.shared:.0%} of the point-wise filters shared",
        "α, kept at a consolidation": f"{settings.alpha:g}",
        "κ, largest activation of a head": f"{settings.kappa:g}",
        "a working memory starts": _STARTS[settings.inherit],
        "mirror images": _of_mirrors(info),
    }


def _of_mirrors(info: ModelInfo) -> str:
    if info.settings.mirrors(info.flip):
        return "learned, and looked at"
    return "learned" if info.flip else "not learned"


def _accuracies(info: ModelInfo) -> Table:
    table = plain_table("Tasks", "task", "classes", "pictures", "% right\nin the task", "% right\namong all then")
    table.columns[1].justify = "left"
    for task in info.tasks:
        accuracies = (percent(accuracy, 1) for accuracy in (task.accuracy_in_task, task.accuracy_in_all))
        names = Text(shortened(task.classes))
        table.add_row(Text(one_line(task.name)), names, f"{sum(task.pictures):,}", *accuracies)
    return table


def _learning(info: ModelInfo) -> Table:
    of_memories = ("epochs", "parameters added", "share in\nsemantic") if _trains(info) else ()
    table = plain_table("Learning", "task", "learned", "seconds", *of_memories)
    for task, *numbers in _numbers_of_tasks(info):
        table.add_row(Text(one_line(task.name)), Text(_when(task)), *numbers)
    return table


def _numbers_of_tasks(info: ModelInfo) -> Iterator[tuple[LearnedTask, *tuple[str, ...]]]:
    """How long each took to learn, and what came of its working memory where such are trained."""
    for task, added in zip(info.tasks, parameters_added(info), strict=True):
        of_memory = (f"{task.epochs:,}", f"{added:,}", f"{task.share_in_semantic:.1%}")
        yield task, f"{task.seconds:,.1f}", *(of_memory if _trains(info) else ())


def _what_it_is(info: ModelInfo, path: Path) -> str:
    known = (
        f"It knows {counted(len(info.classes), 'class', 'classes')}, learned in {counted(len(info.tasks), 'task')} "
        "one after another"
        if info.tasks
        else "It knows no class yet"
    )
    return (
        f"# Model card: {markdown(path.stem)}\n\n"
        f"An image classifier that is taught new classes without the pictures of the old ones. {known}. "
        f"Pictures are brought to {_pictures(info)}."
    )


def _what_it_knows(info: ModelInfo) -> str:
    if not info.tasks:
        return "## What it knows\n\nNothing so far: no task was learned, or all were forgotten."
    lines = ["## What it knows", "", "| task | class | pictures seen |", "|---|---|---:|"]
    for task in info.tasks:
        for name, pictures in zip(task.classes, task.pictures, strict=True):
            lines.append(f"| {markdown(task.name)} | {markdown(name)} | {pictures:,} |")
    if again := relearned(info):
        listed = "; ".join(f"{markdown(name)} in {', '.join(map(markdown, tasks))}" for name, tasks in again.items())
        lines += ["", f"Learned more than once: {listed}."]
    lines += [
        "",
        "Accuracy in percent on pictures held out from training, when the task had just been learned: *in the task* "
        "the choice was among the task's own classes, *among all* among every class known by then.",
        "",
        "| task | learned | held out | in the task | among all |",
        "|---|---|---:|---:|---:|",
    ]
    for task in info.tasks:
        accuracies = " | ".join(percent(value, 1) for value in (task.accuracy_in_task, task.accuracy_in_all))
        lines.append(f"| {markdown(task.name)} | {markdown(_when(task))} | {task.held_out:,} | {accuracies} |")
    return "\n".join(lines)


def start_of(info: ModelInfo) -> str:
    kind = "from scratch" if info.settings.start == "nothing" else f"{info.settings.start}, pre-trained on ImageNet"
    return f"{kind}: {one_line(info.start_reason)}" if info.start_reason else kind


def _described(info: ModelInfo) -> str:
    settings = info.settings
    if settings.start != "nothing":
        return f"{START_FEATURES:,} of the start, of pictures at {settings.start_size} × {settings.start_size}"
    return f"{settings.statistics:,} of each memory, {info.common_kept:,} of patches"


def _how_it_was_trained(info: ModelInfo, path: Path) -> str:
    settings, owners = info.settings, _by_owner(info)
    net = (
        f". The net has width {settings.width:g} and depth {settings.depth}; pictures are normalized with mean "
        f"{_numbers(info.mean)} and deviation {_numbers(info.std)}"
    )
    lines = [
        "## How it was trained",
        "",
        " ".join(_method(info)),
        "",
        f"The file has {size(path.stat().st_size)} and {sum(owners.values()):,} parameters: "
        + ", ".join(f"{owner} {count:,}" for owner, count in owners.items())
        + (net if _trains(info) else "")
        + f". The seed is {info.seed}.",
    ]
    if info.tasks:
        of_memories = " epochs | parameters added | share in the semantic memory |" if _trains(info) else ""
        lines += ["", f"| task | seconds |{of_memories}", "|---|---:|" + of_memories.count("|") * "---:|"]
    lines += [f"| {markdown(task.name)} | {' | '.join(numbers)} |" for task, *numbers in _numbers_of_tasks(info)]
    return "\n".join(lines)


def _method(info: ModelInfo) -> Iterator[str]:
    settings = info.settings
    is_sparc = settings.inherit == "nothing" and not settings.statistics and not settings.describes_all
    method = "SPARC" if is_sparc else "Chorus, which builds on SPARC"
    yield f"With {method} ({PAPER}), by {markdown(info.made_with)}."
    if settings.start != "nothing":
        yield "Nothing was trained on these pictures: classes are told by their means, and one covariance for all, in"
        yield f"{START_FEATURES:,} features of EfficientNet-Lite0, which was pre-trained on ImageNet: it has seen"
        yield "pictures of a thousand classes before, of yours perhaps among them. That net is not in this file, nor"
        yield "are its parameters counted here: whoever uses the file needs `pip install 'sparc-cl[start]'` as well."
        return
    if settings.patches:
        yield f"All classes are described by their means, and one covariance for all, in {info.common_kept:,} features"
        yield "of patches, which nobody trains: how much a picture has in common with"
        yield f"{info.its_era.patches.filters} averages of small patches of the first task's pictures."
    if info.tasks and all(task.seen is None for task in info.tasks):
        yield "Pictures were too few for more, so nothing was trained."
        return
    yield "A task with enough pictures has a small net of its own, its working memory, made of depth-wise separable"
    yield "convolutions and frozen when the task ends."
    if settings.inherit != "nothing":
        yield f"It starts {_STARTS[settings.inherit]}."
    yield f"{settings.shared:.0%} of the point-wise filters belong to a semantic memory that all tasks share: it is"
    later = "stays" if settings.alpha == 1 else f"keeps {settings.alpha:g} of itself at each consolidation"
    yield f"learned with the first task, and afterwards {later}. Each"
    yield f"head is scaled so that its largest usual activation is {settings.kappa:g}."
    if settings.statistics:
        yield "When a task ends, every working memory there is describes the task's classes by their means in up to"
        yield f"{settings.statistics:,} features of its own and by one covariance for all classes; these and the heads"
        yield "answer together."
    if settings.mirrors(info.flip):
        yield "Features are the mean over a picture and its mirror image."


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


def _limits(info: ModelInfo) -> str:
    share = forgotten_share(info)
    remains = f"Tasks that were forgotten make up {share:.1%} of this file's semantic memory. " if share else ""
    return f"""\
## What it is not for, and its limits

- {unknown_pictures(info)} It is not for decisions about people's safety, health or rights.
- No old picture is kept, so nothing can be checked again, or learned again, on the pictures of an old task.
{_of_memories if _trains(info) else ""}\
- The accuracies are on held-out pictures of the same folders at the time of learning. Pictures from elsewhere do
  worse, and tasks learned later lower the figure among all classes.
- {probabilities(info)}
- {_forgetting if _trains(info) else _forgetting_with_a_start}
  {remains}To be rid of every trace, teach a new model without the class."""


_of_memories = """\
- Every working memory runs on each picture: time grows with the number of tasks that have one.
- Telling tasks apart is harder than telling classes within a task, as no two tasks were ever learned together.
- Held-out pictures of a task with a working memory told when to stop training it, so its accuracy is a little high.
"""
_forgetting = """\
Forgetting a class removes its output and its mean in every working memory, and the whole working memory when it was
  the task's last class. What the class taught the filters that its task still uses stays, and so does what later
  working memories have inherited of that, its part in covariances that all classes share, in the centre of its task's
  features, and in the semantic memory."""
_forgetting_with_a_start = """\
Forgetting a class removes its mean; its part in the covariance that all classes share stays."""


def _pictures(info: ModelInfo) -> str:
    height, width = info.shape.image_size
    kind = {1: "in grey", 3: "in colour"}.get(info.shape.channels, f"with {info.shape.channels} channels")
    fit = f" ({_FITS[info.shape.fit]})" if height == width else ""
    return f"{width} × {height} pixels {kind}{fit}"


def _when(task: LearnedTask) -> str:
    return one_line(task.learned[:16].replace("T", " "))


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)
