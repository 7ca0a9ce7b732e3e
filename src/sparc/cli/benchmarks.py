"""`sparc benchmarks`: list the streams that can be learned."""

from rich.console import Console

from sparc.cli.parse import no_flags, parse
from sparc.data.benchmarks import BENCHMARKS, FOLDER
from sparc.data.sources import find
from sparc.report.tables import plain_table


def main(arguments: list[str]) -> int:
    parse(no_flags, "benchmarks", __doc__, arguments)
    table = plain_table("Benchmarks", "name", "data set", "tasks", "epochs a task")
    for benchmark in BENCHMARKS.values():
        table.add_row(benchmark.name, find(benchmark.source).title, str(benchmark.tasks), str(benchmark.epochs))
    table.add_row("FOLDER", "one folder of pictures a class", f"up to {FOLDER.tasks}", str(FOLDER.epochs))
    Console().print(table)
    return 0
