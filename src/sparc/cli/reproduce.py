"""`sparc reproduce`: make a table or a figure of the paper again, with the paper's numbers beside ours.

Without a name, list them all: what each needs, and what is done.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from sparc.cli.display import Display
from sparc.cli.parse import parse
from sparc.cli.threads import use_threads
from sparc.cli.warn import warn
from sparc.cli.workers import Workers, check_all_done, do_all
from sparc.data.benchmarks import find
from sparc.errors import InputError
from sparc.experiment import Run, RunConfig, done_runs, find_done
from sparc.files import check_output
from sparc.methods import METHODS
from sparc.report.plain_table import plain_table
from sparc.reproduce.catalog import EXHIBITS, find_exhibit
from sparc.reproduce.counts import measured_work
from sparc.reproduce.estimate import estimate, images_per_second
from sparc.reproduce.exhibit import Exhibit, FigureExhibit
from sparc.reproduce.plan import SCALES, Scale
from sparc.reproduce.show import draw_exhibit, exhibit_tables, has_points, heading
from sparc.reproduce.tables import Filled, fill
from sparc.text import counted


@dataclass(frozen=True)
class Reproduce:
    exhibit: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[ID]")] = None
    """A table or a figure, by its name in the list that comes without one."""
    scale: Literal["quick", "half", "paper"] = "quick"
    """How much of the paper's effort: one epoch a task and narrow rivals, half of its epochs, or all of it."""
    dry_run: bool = False
    """Run nothing: show what is there, and what would be run."""
    figure: Path | None = None
    """Where a figure's picture goes, a PNG; without it, beside the runs."""
    json: bool = False
    """Print all of it as JSON."""
    workers: Annotated[Workers, tyro.conf.OmitArgPrefixes] = field(default_factory=Workers)


def main(arguments: list[str]) -> int:
    given = parse(Reproduce, "reproduce", __doc__, arguments)
    use_threads(1)
    scale = SCALES[given.scale]
    if given.exhibit is None:
        if given.figure is not None:
            raise InputError("--figure draws one figure: name it, as in sparc reproduce figure-size --figure size.png")
        return _list(given, scale)
    exhibit = find_exhibit(given.exhibit)
    if given.figure is not None:
        if not isinstance(exhibit, FigureExhibit):
            raise InputError(f"--figure is for figures, and {exhibit.id} is a table: leave it out")
        check_output(given.figure)
    done = done_runs(given.workers.out, warn)
    missing = _left(exhibit.needed(scale), done)
    runnable = _runnable(missing, given.workers.data)
    runs: list[Run] = []
    if runnable and not given.dry_run:
        _announce(runnable, given.workers.at_a_time)
        runs = do_all(runnable, given.workers, ["reproduce", *arguments])
        done += [run for run in runs if run.state == "done"]
        missing = _left(missing, done)
    filled = fill(exhibit, done, scale)
    picture = _picture(given, filled)
    todo = [_about(command, configs, given) for command, configs in commands(missing, given.workers).items()]
    if given.json:
        rest = {"missing": todo, "picture": picture and str(picture)}
        print(json.dumps({**filled.as_json(), **rest}, allow_nan=False))
    else:
        _print(filled, todo, given, picture)
    check_all_done(runs)
    return 0


def commands(configs: Sequence[RunConfig], place: Workers) -> dict[str, list[RunConfig]]:
    """What a person would give to have these run, one command for seeds of the same that follow each other."""
    groups: list[list[RunConfig]] = []
    for config in configs:
        if groups and replace(groups[-1][-1], seed=groups[-1][-1].seed + 1) == config:
            groups[-1].append(config)
        else:
            groups.append([config])
    return {_command(group, place): group for group in groups}


def _command(seeds: Sequence[RunConfig], place: Workers) -> str:
    config = seeds[0]
    arguments = ["sparc", "run", config.benchmark, "--method", config.method]
    for name, value in config.unusual().items():
        values = [] if value is True else value if isinstance(value, list) else [value]
        texts = [f"{one:g}" if isinstance(one, float) else str(one) for one in values]
        arguments += [f"--{name.replace('_', '-')}", *texts]
    arguments += ["--seed", str(config.seed), *(["--seeds", str(len(seeds))] if len(seeds) > 1 else [])]
    arguments += ["--out", str(place.out), *(["--data", str(place.data)] if place.data is not None else [])]
    return shlex.join(arguments)


def _list(given: Reproduce, scale: Scale) -> int:
    done = done_runs(given.workers.out, warn)
    left = {exhibit.id: _left(exhibit.needed(scale), done) for exhibit in EXHIBITS.values()}
    methods = list(dict.fromkeys(METHODS.find(config.method) for configs in left.values() for config in configs))
    with Display("reproduce") as display:
        for number, method in enumerate(methods):
            display.loading("counting the work of methods", number, len(methods))
            measured_work(method)  # which is remembered
    rows = [_needs(exhibit, left[exhibit.id], scale, given.workers.data) for exhibit in EXHIBITS.values()]
    if given.json:
        print(json.dumps({"scale": {**asdict(scale), "text": scale.text}, "exhibits": rows}, allow_nan=False))
        return 0
    console = Console()
    console.print(f"The paper's tables and figures, {scale.text}", style="bold", highlight=False)
    table = plain_table(
        "", "id, and what it shows", "runs\ndone", "rough\nhours", "data", "methods\nmissing", words=True
    )
    for column in (*table.columns[1:3], table.columns[4]):
        column.justify = "right"
    table.columns[0].min_width = max(map(len, EXHIBITS))
    for row in rows:
        runs = f"{row['done']} of {row['needed']}" if row["needed"] else "–"
        hours = hours_text(row["hours"]) if row["done"] < row["needed"] else ""
        lacking = len(row["methods missing"])
        table.add_row(
            f"[bold]{row['id']}[/bold]\n{row['title']}",
            f"[green]{runs}" if row["done"] == row["needed"] else runs,
            hours,
            ", ".join(f"{source} {state}" for source, state in row["data"].items() if state != "there")
            or ("there" if row["data"] else ""),
            str(lacking or ""),
        )
    console.print(table)
    console.print(
        "Hours are for what is left, one run after another with one thread, and rough: training alone, judged by a "
        "probe of this machine.\nsparc reproduce ID runs what is missing and shows it beside the paper's numbers; look "
        "first with --dry-run, do more with --scale half or paper.",
        highlight=False,
    )
    return 0


def _left(configs: Sequence[RunConfig], done: list[Run]) -> list[RunConfig]:
    return [config for config in configs if find_done(config, done) is None]


def _needs(exhibit: Exhibit, left: Sequence[RunConfig], scale: Scale, data: Path | None) -> dict[str, Any]:
    configs = exhibit.needed(scale)
    benchmarks = dict.fromkeys(config.benchmark for config in configs)
    return {
        "id": exhibit.id,
        "label": exhibit.shown.label,
        "title": exhibit.shown.title,
        "needed": len(configs),
        "done": len(configs) - len(left),
        "hours": sum(_hours(config) for config in left),
        "data": {find(name).source: _data_state(name, data) for name in benchmarks},
        "methods missing": exhibit.missing_methods(),
    }


def _data_state(benchmark: str, data: Path | None) -> str:
    if find(benchmark).present(data):
        return "there"
    return "to be fetched" if find(benchmark).fetchable() else "missing"


def _hours(config: RunConfig) -> float:
    return estimate(config, images_per_second(config))


def hours_text(hours: float) -> str:
    """
    >>> hours_text(0.01), hours_text(3.14), hours_text(31.4), hours_text(1234.5)
    ('< 0.1', '3.1', '31', '1,200')
    """
    return "< 0.1" if hours < 0.1 else f"{hours:.1f}" if hours < 10 else f"{float(f'{hours:.2g}'):,.0f}"


def _runnable(configs: Sequence[RunConfig], data: Path | None) -> list[RunConfig]:
    """Without those whose pictures cannot be had; what is there comes first, and each set is loaded once."""
    states = {name: _data_state(name, data) for name in dict.fromkeys(config.benchmark for config in configs)}
    order = [name for state in ("there", "to be fetched") for name in states if states[name] == state]
    return [config for name in order for config in configs if config.benchmark == name]


def _announce(configs: list[RunConfig], at_a_time: int) -> None:
    hours, few = hours_text(sum(map(_hours, configs))), min(at_a_time, len(configs))
    print(
        f"{counted(len(configs), 'run')} to do, {few} at a time, roughly {hours} hours if it were one after another; "
        "Ctrl-C stops, and the same command goes on",
        file=sys.stderr,
    )


def _picture(given: Reproduce, filled: Filled) -> Path | None:
    """Drawn where there is something to draw, and somewhere to put it."""
    if not has_points(filled) or (given.dry_run and given.figure is None):
        return None
    return draw_exhibit(filled, given.figure or given.workers.out / f"{filled.exhibit.id}-{filled.scale.name}.png")


def _about(command: str, configs: Sequence[RunConfig], given: Reproduce) -> dict[str, Any]:
    return {
        "command": command,
        "configs": [config.as_json() for config in configs],
        "hours": sum(map(_hours, configs)),
        "data": _data_state(configs[0].benchmark, given.workers.data),
    }


def _print(filled: Filled, todo: list[dict[str, Any]], given: Reproduce, picture: Path | None) -> None:
    console = Console()
    console.print(heading(filled), style="bold", highlight=False)
    console.print(filled.exhibit.shown.caption, highlight=False)
    for table in exhibit_tables(filled):
        console.print(table)
    for note in filled.notes:
        console.print(f"• {note}", highlight=False, markup=False)
    if picture is not None or given.figure is not None:
        print(f"picture: {picture or 'none, as there is nothing to draw yet'}")
    if todo:
        print(f"\nNot run, roughly {hours_text(sum(each['hours'] for each in todo))} hours in all:")
    for each in todo:
        source = find(each["configs"][0]["benchmark"]).source
        print(f"  {each['command']}" + ("" if each["data"] == "there" else f"  # {source} {each['data']}"))
