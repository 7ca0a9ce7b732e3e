"""`sparc run`: learn a stream of tasks and measure how much is kept."""

import json
import shlex
from dataclasses import dataclass, field, fields, make_dataclass, replace
from itertools import pairwise
from typing import Annotated, Any

import tyro
from rich.console import Console

from sparc.cli.parse import BenchmarkName, parse, with_new_flags
from sparc.cli.progress import RunDisplay
from sparc.cli.threads import use_threads
from sparc.data.benchmarks import BENCHMARKS, Benchmark
from sparc.errors import InputError
from sparc.experiment import (
    Run,
    RunConfig,
    RunWatcher,
    StopOnSignal,
    Stopped,
    StreamSettings,
    Watchers,
    Workplace,
    run,
    usual_recipe,
)
from sparc.methods import METHODS
from sparc.report.plain_table import parameters_table
from sparc.report.run_png import draw
from sparc.report.tables import matrix_table, metrics_table, parts_table, seeds_table, summary
from sparc.text import one_line

DEFAULT_METHOD = "sparc"


@dataclass(frozen=True)
class Choice:
    """What is run."""

    benchmark: BenchmarkName
    method: str = DEFAULT_METHOD
    """A name from `sparc methods`; name it before --help to see its settings."""
    seed: int = 0
    """Same seed, same bits, on the same device with as many threads."""
    seeds: int = 1
    """Run this many seeds, from --seed on, and print mean and deviation."""


@dataclass(frozen=True)
class Machine:
    """How fast, and what is written and printed."""

    threads: int = 1
    """Processor threads; batches of SPARC, its ablations and Chorus are split among them, unless pictures are small."""
    tensorboard: bool = False
    """Write curves for TensorBoard into the run's folder as well (install sparc-cl[tensorboard])."""
    json: bool = False
    """Print the results as JSON instead of tables."""


def main(arguments: list[str]) -> int:
    given = arguments_of(arguments)
    choice: Choice = given.choice
    machine: Machine = given.machine
    if choice.seeds < 1:
        raise InputError(f"--seeds {choice.seeds} runs nothing: give at least 1")
    use_threads(machine.threads)
    config = RunConfig(choice.benchmark, choice.method, given.method, given.recipe, given.stream, choice.seed)
    workplace: Workplace = given.workplace
    curves = [_new_tensorboard()] if machine.tensorboard else []
    runs: list[Run] = []
    with StopOnSignal(notice="keeping a checkpoint; once more to stop at once") as stop:
        for seed in range(choice.seed, choice.seed + choice.seeds):
            with RunDisplay(f"{choice.method}, seed {seed}") as display:
                try:
                    runs.append(run(replace(config, seed=seed), workplace, Watchers(display, stop, *curves)))
                except Stopped as where:
                    again = shlex.join(["sparc", "run", *(each for each in arguments if each != "--fresh")])
                    display.warn(f"stopped at {where}; to go on: {again}")
                    return stop.code
    for each in runs:
        if not each.was_there or not each.picture_path.exists():
            draw(each.measured, each.picture_path)
    if machine.json:
        results = [{"folder": str(each.folder), **each.measured.as_json()} for each in runs]
        print(json.dumps({"runs": results, "summary": summary([each.measured for each in runs])}, allow_nan=False))
    else:
        _print(runs)
    return 0


def _new_tensorboard() -> RunWatcher:
    from sparc.report.tensorboard import TensorBoard

    return TensorBoard()


def _print(runs: list[Run]) -> None:
    console = Console()
    results = [each.measured for each in runs]
    if len(runs) == 1:
        (result,) = results
        if result.class_il is not None:
            console.print(matrix_table("Class-IL accuracy, in percent", result.class_il, result.sizes))
        console.print(matrix_table("Task-IL accuracy, in percent", result.task_il, result.sizes))
        console.print(metrics_table(result))
    else:
        console.print(seeds_table(results))
    if (table := parts_table(results)).row_count:
        console.print(table)
    if len(runs) == 1:
        console.print(parameters_table(results[0].parameters_by_owner))
    for each in runs:
        again = " (run before; --fresh runs it again)" if each.was_there else ""
        print(f"picture: {one_line(str(each.picture_path))}{again}")


def arguments_of(arguments: list[str]) -> Any:
    """One flat set of flags out of the parts; which settings there are, and their defaults, is up to the method."""
    method = METHODS.find(_named_method(arguments))
    switches = _switches(method.Settings, type(method.recipe), Workplace, Machine)
    recipe = usual_recipe(method, _named_benchmark(arguments, switches))
    flat = tyro.conf.OmitArgPrefixes
    form = make_dataclass(
        "Arguments",
        [
            ("choice", Annotated[Choice, flat]),
            ("method", Annotated[method.Settings, flat], field(default=method.Settings())),
            ("recipe", Annotated[type(recipe), flat], field(default=recipe)),
            ("stream", Annotated[StreamSettings, flat], field(default=StreamSettings())),
            ("workplace", Annotated[Workplace, flat, tyro.conf.SuppressFixed], field(default_factory=Workplace)),
            ("machine", Annotated[Machine, flat], field(default=Machine())),
        ],
    )
    arguments = with_new_flags(arguments, {**recipe.renamed, **method.Settings.renamed})
    description = f"{__doc__}\n\n{method.summary} ({method.paper})"
    return parse(
        form, "run", description, arguments, "" if method.name == DEFAULT_METHOD else f" --method {method.name}"
    )


def _named_method(arguments: list[str]) -> str:
    """The method sets flags and defaults, so it must be known before they are read; the last one counts."""
    named = [after for argument, after in pairwise(arguments) if argument == "--method"]
    named += [argument.removeprefix("--method=") for argument in arguments if argument.startswith("--method=")]
    return named[-1] if named else DEFAULT_METHOD


def _switches(*kinds: Any) -> set[str]:
    """Flags that take no value."""
    return {f"--{each.name.replace('_', '-')}" for kind in kinds for each in fields(kind) if each.type is bool}


def _named_benchmark(arguments: list[str], switches: set[str]) -> Benchmark | None:
    """So does the benchmark; its name counts only where it is no flag's value."""
    names = [name for flag, name in pairwise(["", *arguments]) if not flag.startswith("--") or flag in switches]
    return next((BENCHMARKS[name] for name in names if name in BENCHMARKS), None)
