"""A study: what a report shows of the runs on one stream."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparc.experiment.folder import Run
from sparc.experiment.result import Result
from sparc.report.comparison import Row, compare, ranked, streams
from sparc.text import counted, one_line, spread


@dataclass(frozen=True)
class Study:
    rows: Sequence[Row]
    """Best first."""
    repeated: int = 0
    """Runs that are not in the rows, as they differ from one that is in nothing, seed included."""

    @property
    def first(self) -> Result:
        """All have its benchmark, its tasks and their sizes."""
        return self.rows[0].runs[0].measured

    @property
    def benchmark(self) -> str:
        return one_line(self.first.config["benchmark"])

    def in_a_line(self, row: Row | None = None) -> str:
        """What was run, of all or of one row, in so few words that every figure can say it."""
        rows = [row] if row else self.rows
        parts = [self.benchmark, counted(len(self.first.sizes), "task")]
        if epochs := epochs_text(rows):
            parts.append(f"{epochs} epoch{'s' * (epochs != '1')} a task")
        parts.append(spread([len(each.seeds) for each in rows], "seed"))
        return ", ".join(parts)


def epochs_text(rows: Sequence[Row]) -> str:
    """Of a task; the least and the most where the methods differ, and none where nobody knows."""
    known = {row.settings["epochs"] for row in rows if isinstance(row.settings.get("epochs"), int)}
    return f"{min(known)} to {max(known)}" if len(known) > 2 else " or ".join(map(str, sorted(known)))


def studies(runs: Iterable[Run]) -> list[Study]:
    """A study a stream, of runs that are done."""
    found = []
    for group in streams(runs):
        rows = ranked(compare(group))
        found.append(Study(rows, repeated=len(group) - sum(len(row.runs) for row in rows)))
    return found
