"""`sparc compare`: run several methods on a benchmark, as far as they have not been run, and compare them.

A method may have values of its own after colons, `sparc:width=0.5:epochs=20`; --set gives some to all that take them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import tyro
from rich.console import Console

from sparc.cli.parse import BenchmarkName, parse
from sparc.cli.warn import warn
from sparc.cli.workers import Workers, check_all_done, do_all
from sparc.discovery import nearest
from sparc.errors import InputError
from sparc.experiment import RunConfig
from sparc.experiment.config import run_title
from sparc.report.study import studies
from sparc.report.tables import comparison_tables


@dataclass(frozen=True)
class Compare:
    benchmark: BenchmarkName
    methods: str = "sparc,sgd"
    """Names from `sparc methods`, with commas between; `sparc:width=0.5` gives one a value of its own."""
    seeds: int = 3
    """How many, from 0 on."""
    set: tuple[str, ...] = ()
    """Values for every method that takes them, such as epochs=5 width=0.25 buffer_size=500."""
    json: bool = False
    """Print the comparison as JSON instead of a table."""
    workers: Annotated[Workers, tyro.conf.OmitArgPrefixes] = field(default_factory=Workers)


def main(arguments: list[str]) -> int:
    given = parse(Compare, "compare", __doc__, arguments)
    if given.seeds < 1:
        raise InputError(f"--seeds {given.seeds} runs nothing: give at least 1")
    methods = chosen(given.benchmark, given.methods, given.set)
    configs = [replace(config, seed=seed) for seed in range(given.seeds) for config in methods]
    runs = do_all(configs, given.workers, ["compare", *arguments])
    done = [run for run in runs if run.state == "done"]
    compared = studies(done)
    if given.json:
        folders = [str(run.folder) for run in done]
        failed = [
            {"run": run_title(run.config, config.label(configs)), "error": run.note}
            for config, run in zip(configs, runs, strict=True)
            if run.state == "failed"
        ]
        rows = [row.as_json() for study in compared for row in study.rows]
        print(json.dumps({"rows": rows, "folders": folders, "failed": failed}))
    else:
        console = Console()
        for study in compared:
            console.print(study.in_a_line(), highlight=False, soft_wrap=True)
            for table in comparison_tables(study.rows):
                console.print(table)
    check_all_done(runs)
    return 0


def chosen(benchmark: str, methods: str, everywhere: Sequence[str]) -> list[RunConfig]:
    """A config a method, with the values that were set; what comes to the same is there once.

    >>> [config.recipe.epochs for config in chosen("seq-digits", "sparc:epochs=5,sgd", ["epochs=2"])]
    [5, 2]
    >>> len(chosen("seq-digits", "sparc,sparc:width=0.5", []))
    1
    """
    configs: dict[RunConfig, str] = {}
    renamed: dict[str, str] = {}
    chosen_methods = [each.strip() for each in methods.split(",") if each.strip()]
    if not chosen_methods:
        raise InputError("--methods names none: give names from sparc methods, with commas between")
    for each in chosen_methods:
        method, *own = each.split(":")
        config = RunConfig.default(benchmark, method)
        known = {*config.names(), *config.renamed()}
        given = {**{name: text for name, text in map(_pair, everywhere) if name in known}, **dict(map(_pair, own))}
        renamed |= {old: new for old, new in config.renamed().items() if old in given}
        config = config.with_values(given)
        if config in configs:
            warn(f"--methods has {each} twice, as {configs[config]} is the same: it is run once")
        configs.setdefault(config, each)
    for old, new in renamed.items():
        warn(f"{old} is called {new} now")
    for name, _ in map(_pair, everywhere):
        settings = {each for config in configs for each in config.names()}
        if renamed.get(name, name) not in settings:
            raise InputError(f"--set {name} is a setting of none of {methods}: {nearest(name, settings)}")
    return list(configs)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"“{text}” sets nothing: write NAME=VALUE, such as epochs=5")
    return name.replace("-", "_"), value
