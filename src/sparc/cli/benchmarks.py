"""`sparc benchmarks`: list the streams that can be learned."""

from dataclasses import dataclass

from rich.console import Console

from sparc.cli.parse import parse
from sparc.data.benchmarks import BENCHMARKS
from sparc.data.sources import find, names
from sparc.report.plain_table import plain_table
from sparc.text import counted


@dataclass(frozen=True)
class Benchmarks:
    """Takes no flags."""


def main(arguments: list[str]) -> int:
    parse(Benchmarks, "benchmarks", __doc__, arguments)
    table = plain_table("Benchmarks", "name", "data set", "tasks", words=True)
    for benchmark in BENCHMARKS.values():
        first = "" if benchmark.first is None else f", the first of {counted(benchmark.first, 'class', 'classes')}"
        table.add_row(benchmark.name, find(benchmark.source).title, f"{benchmark.tasks}{first}")
    table.add_row("[italic]a data set", f"{', '.join(names())}, by its bare name", "up to 5")
    table.add_row("[italic]a path", "your own: a folder with one folder of pictures a class", "up to 5")
    Console().print(table)
    return 0
