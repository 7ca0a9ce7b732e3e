"""`sparc learn`: teach a model the classes in a folder, one folder of pictures a class."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from sparc.cli.display import duration
from sparc.cli.parse import parse
from sparc.cli.progress import RunDisplay
from sparc.cli.threads import use_threads
from sparc.data.class_folders import class_folders, of_folders_alone, split_of
from sparc.data.pictures import Fit
from sparc.data.skipped import Skipped, told
from sparc.data.tree import Tree, title
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.learner import Effort, Wishes, check_validation, settings_of, suitable_recipe, teach_folder
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import Model, load, save
from sparc.predictor import USUAL_SHARE, why_not
from sparc.report.model_card import start_of
from sparc.report.plain_table import plain_table
from sparc.starts import USUAL, StartChoice
from sparc.stored_model import parameters_added
from sparc.text import counted, one_line, percent

FEW = 10
"""Pictures of a class, below which somebody should know that more would help."""


@dataclass(frozen=True)
class NewModel(ChorusSettings):
    """Of a new model; one that is there keeps what it was made with."""

    patches: int = USUAL.patches
    start: StartChoice = "auto"  # type: ignore[assignment] # which is settled before there are settings
    """A net that was pre-trained on ImageNet, lite0 of sparc-cl[start], or nothing; by itself lite0 where it is
    installed and pictures are coloured."""
    image_size: int | None = None
    """Side in pixels that all pictures are brought to, instead of 32, 64 or 96 as suits the first, or of what suits the
    start."""
    fit: Fit = "crop"
    """Of a picture that is no square the centre is learned, or all of it, padded with the mean colour of its edge."""
    no_flip: bool = False
    """Do not learn mirror images as well; for letters and the like."""
    seed: int = 0
    """Same seed and pictures, same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed < 0:
            raise InputError(f"--seed {self.seed} must not be negative")


@dataclass(frozen=True)
class Learn:
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Holds one folder of pictures a class; or a zip or a tar of such folders."""
    model: Path
    """The model file; made if it is not there, else a task is added to it."""
    name: str | None = None
    """What the task is called; without it as the folder, or the archive, is."""
    quick: bool = False
    """Where a working memory is trained, for less than half of the usual time, for a first look."""
    thorough: bool = False
    """Train a working memory however few pictures there are, three to five times as long; a new model is then made from
    scratch."""
    epochs: int | None = None
    """Train a working memory however few pictures there are, with so many passes over them; a new model is then made
    from scratch."""
    validation: float = 0.1
    """Share of the pictures held out, to know when to stop and how good the model is."""
    threads: int = 1
    """Processor threads; batches of SPARC, its ablations and Chorus are split among them, unless pictures are small."""
    strict: bool = False
    """Stop at a picture that cannot be read, instead of passing it over."""
    cache: bool = True
    """Features that a start has found in pictures are kept for a day in the user's cache folder, so that another try
    takes no time; --no-cache keeps and takes nothing there."""
    json: bool = False
    """Print what was learned as JSON."""
    new_model: Annotated[NewModel, tyro.conf.OmitArgPrefixes] = NewModel()

    def __post_init__(self) -> None:
        if self.quick and self.thorough:
            raise InputError("--quick and --thorough say opposite things: give one of them")
        suitable_recipe(1, self.effort, self.epochs)  # refuses what makes no sense before a picture is read
        check_validation(self.validation)

    @property
    def effort(self) -> Effort:
        return "quick" if self.quick else "thorough" if self.thorough else "normal"


def main(arguments: list[str]) -> int:
    given = parse(Learn, "learn", __doc__, arguments)
    use_threads(given.threads)
    check_output(given.model)
    with locked(given.model):
        before = load(given.model) if given.model.exists() else None
        bytes_before = given.model.stat().st_size if before else 0
        if before is not None:
            _check_same(given.model, before, arguments)
        skipped: list[Skipped] = []
        model = _learned(given, before, skipped)
        save(model, given.model)
    if given.json:
        learned = {"model": str(given.model), **asdict(replace(model.info.tasks[-1], check=None))}
        print(json.dumps({**learned, "skipped": [asdict(each) for each in skipped]}))
    else:
        _print(model, before, given.model.stat().st_size, bytes_before)
    return 0


def _learned(given: Learn, before: Model | None, skipped: list[Skipped]) -> Model:
    new = given.new_model
    how = not new.no_flip, new.seed, given.effort, given.epochs, given.cache, given.threads
    wishes = Wishes(settings_of(new), new.start, new.image_size, new.fit, *how)
    name = title(given.folder) if given.name is None else given.name
    folder = Tree.at(given.folder)
    with RunDisplay(given.model.name) as display:
        if deep := of_folders_alone(class_folders(split_of(folder)[0])):
            display.warn(one_line(f"{', '.join(deep)}: pictures lie in folders inside, and all of them are one class"))

        def tell() -> None:
            for line in told(skipped):
                display.warn(line)

        pass_over = None if given.strict else skipped
        told_of = display, display.loading, pass_over, tell
        return teach_folder(before, wishes, name, folder, given.validation, *told_of)


def _check_same(path: Path, model: Model, arguments: list[str]) -> None:
    """A model's make-up is settled when it is made: with it as the default, whatever differs was asked for."""
    info = model.info
    info.shape.check_takes_pictures(path)
    flags = {"no_flip": not info.flip, "mirror": info.settings.mirror, "weigh": info.settings.weigh}
    settings = {name: value for name, value in asdict(info.settings).items() if name not in flags}
    own = NewModel(**settings, image_size=info.shape.side, fit=info.shape.fit, seed=info.seed)

    @dataclass(frozen=True)
    class Again(Learn):
        new_model: Annotated[NewModel, tyro.conf.OmitArgPrefixes] = own

    asked = parse(Again, "learn", __doc__, arguments).new_model
    for name, there in asdict(own).items():
        if name == "start" and asked.start == "auto":
            continue
        if getattr(asked, name) != there and name not in flags:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} of {path} is {there} for good: leave it out, or make another model")
        if getattr(asked, name) != there and flags[name] == there:
            flag = f"--no-{name.removeprefix('no_')}"
            raise InputError(f"{path} was made without {flag}: leave it out, or make another model")


def _print(model: Model, before: Model | None, size: int, size_before: int) -> None:
    console = Console()
    task = model.info.tasks[-1]
    how = "by statistics alone, without training" if task.seen is None else counted(task.epochs, "epoch")
    title = f"{task.name}: learned in {duration(task.seconds)}, {how}"
    console.print(one_line(title), style="bold", markup=False, highlight=False)
    if before is None:
        console.print(f"a new model, {start_of(model.info)}", markup=False, highlight=False, soft_wrap=True)
    table = plain_table("", "class", "pictures learned from")
    for name, count in zip(task.classes, task.pictures, strict=True):
        table.add_row(escape(one_line(name)), str(count))
    console.print(table)
    if few := [name for name, count in zip(task.classes, task.pictures, strict=True) if count < FEW]:
        console.print(f"{escape(one_line(', '.join(few)))}: few pictures; about 20 of a class are a good start")
    known = set(before.info.classes) if before else set()
    if again := [name for name in task.classes if name in known]:
        told = f"{one_line(', '.join(again))}: known before; of pictures taught before, more are right than of new ones"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
    facts = plain_table("", "", "")
    facts.add_row("right among this task's classes", f"{percent(task.accuracy_in_task, 1)} %")
    facts.add_row("right among all classes", f"{percent(task.accuracy_in_all, 1)} %")
    facts.add_row("pictures held out for that", str(task.held_out))
    facts.add_row("classes that the model knows now", str(len(model.info.classes)))
    if model.info.limit(USUAL_SHARE) is None:
        console.print(f"“None of these” is not said yet: {why_not(model.info)}", highlight=False, soft_wrap=True)
    if task.seen is not None:
        facts.add_row("parameters added", f"{parameters_added(model.info)[-1]:,}")
    facts.add_row("bytes added", f"{size - size_before:,}")
    facts.add_row("file size in bytes", f"{size:,}")
    console.print(facts)
