"""`sparc run`: learn a stream of tasks and measure how much is kept."""

import json
import os
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console

from sparc.cli.parse import parse
from sparc.cli.progress import Display
from sparc.data.benchmarks import BENCHMARKS, FOLDER, Benchmark
from sparc.errors import InputError
from sparc.experiment import Finished, RunConfig, StreamSettings, run, usual_recipe
from sparc.methods import METHODS
from sparc.report import draw, matrix_table, metrics_table, parameters_table, seeds_table, summary

DEFAULT_METHOD = "sparc"


@dataclass(frozen=True)
class What:
    """What is run."""

    benchmark: tyro.conf.Positional[str]
    """A name from `sparc benchmarks`, or a folder that holds one folder of pictures a class."""
    method: str = DEFAULT_METHOD
    """A name from `sparc methods`; its own settings are listed under --help once it is named."""
    seed: int = 0
    """Same seed, same bits."""
    seeds: int = 1
    """Run this many seeds, from --seed on, and print mean and deviation."""


@dataclass(frozen=True)
class How:
    """How it is run; none of this changes the result."""

    out: Path = Path("runs")
    """Where the run's folder is made."""
    data: Path | None = None
    """Where the data sets lie; without it $SPARC_DATA, then the user's cache, then a download."""
    device: str = "cpu"
    """Where to compute: cpu, cuda, mps."""
    threads: int | None = None
    """Processor threads; without it as many as there are cores."""
    fresh: bool = False
    """Run again what has been run already."""
    json: bool = False
    """Print the results as JSON instead of tables."""


def main(arguments: list[str]) -> int:
    given = arguments_of(arguments)
    what: What = given.what
    how: How = given.how
    if what.seeds < 1:
        raise InputError(f"--seeds {what.seeds} runs nothing: give at least 1")
    if how.threads is not None:
        if not 1 <= how.threads <= 4 * (os.cpu_count() or 1):
            raise InputError(f"--threads {how.threads} must lie between 1 and {4 * (os.cpu_count() or 1)}")
        torch.set_num_threads(how.threads)
    config = RunConfig(what.benchmark, what.method, given.settings, given.recipe, given.stream, what.seed)
    finished = []
    for seed in range(what.seed, what.seed + what.seeds):
        with Display(f"{what.method}, seed {seed}") as display:
            finished.append(
                run(
                    replace(config, seed=seed),
                    how.out,
                    how.data,
                    how.device,
                    how.fresh,
                    display.loading,
                    display.observe,
                )
            )
    if how.json:
        results = [each.result for each in finished]
        runs = [{"folder": str(each.folder), **each.result.as_json()} for each in finished]
        print(json.dumps({"runs": runs, "summary": summary(results)}, allow_nan=False))
    else:
        _print(finished)
    return 0


def _print(finished: list[Finished]) -> None:
    console = Console()
    if len(finished) == 1:
        result = finished[0].result
        console.print(matrix_table("Class-IL accuracy, in percent", result.class_il, result.sizes))
        console.print(matrix_table("Task-IL accuracy, in percent", result.task_il, result.sizes))
        console.print(metrics_table(result))
        console.print(parameters_table(result))
    else:
        console.print(seeds_table([each.result for each in finished]))
    for each in finished:
        picture = draw(each.result, each.folder / "result.png")
        again = " (run before; --fresh runs it again)" if each.was_there else ""
        console.print(f"picture: {picture}{again}", soft_wrap=True, highlight=False)


def arguments_of(words: list[str]) -> Any:
    """One flat set of flags out of the parts; which settings there are, and their defaults, is up to the method."""
    method, benchmark = METHODS.find(_named_method(words)), _named_benchmark(words)
    flat = tyro.conf.OmitArgPrefixes
    recipe = usual_recipe(method, benchmark)
    form = make_dataclass(
        "Arguments",
        [
            ("what", Annotated[What, flat]),
            ("settings", Annotated[method.Settings, flat], field(default=method.Settings())),
            ("recipe", Annotated[type(recipe), flat], field(default=recipe)),
            ("stream", Annotated[StreamSettings, flat], field(default=StreamSettings())),
            ("how", Annotated[How, flat], field(default=How())),
        ],
    )
    return parse(form, "run", __doc__, words)


def _named_method(arguments: list[str]) -> str:
    for place, argument in enumerate(arguments):
        if argument == "--method" and place + 1 < len(arguments):
            return arguments[place + 1]
        if argument.startswith("--method="):
            return argument.removeprefix("--method=")
    return DEFAULT_METHOD


def _named_benchmark(arguments: list[str]) -> Benchmark:
    """The benchmark sets defaults, so it must be known before the flags are; any other word may be a flag's value."""
    return next((BENCHMARKS[argument] for argument in arguments if argument in BENCHMARKS), FOLDER)
