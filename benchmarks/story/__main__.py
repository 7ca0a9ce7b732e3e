"""All learners on all draws of a story, as tables and one JSON file, which is gone on with."""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import mean, stdev

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.story.learners import LEARNERS
from benchmarks.story.measure import STORIES, Figures, drawn, measured, strangers
from sparc.allocator import keep_freed_memory
from sparc.data.imageset import Splits
from sparc.data.sources import find
from sparc.errors import InputError
from sparc.files import check_output, locked, write_atomic

Cells = list[list[str]]
"""Of a table, a list a line, the titles first."""


@dataclass(frozen=True)
class Case:
    """What is measured once, and never again into the same file."""

    story: str
    source: str
    held_out: bool
    pictures: int
    draw: int
    row: str

    def __str__(self) -> str:
        return f"{self.source}, {self.pictures} pictures a class, draw {self.draw}, {self.row}"


class Book:
    """Figures of cases, in a file that is whole at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.figures = self._read()

    def add(self, case: Case, figures: Figures) -> None:
        """Other processes may add to the same file."""
        with locked(self.path, wait=lambda: None):
            self.figures = {**self._read(), case: figures}
            written = [{"case": asdict(case), "figures": asdict(figures)} for case, figures in self.figures.items()]
            write_atomic(self.path, (json.dumps(written, indent=1, ensure_ascii=False) + "\n").encode())

    def _read(self) -> dict[Case, Figures]:
        written = json.loads(self.path.read_bytes()) if self.path.exists() else []
        return {Case(**each["case"]): Figures(**each["figures"]) for each in written}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        _tell(asked)
    except InputError as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.story", description=__doc__)
    parser.add_argument("--story", choices=STORIES, default="months", help="how many classes in which tasks")
    parser.add_argument("--source", nargs="+", metavar="NAME", help="data sets (the story's own)")
    parser.add_argument("--pictures", nargs="+", type=int, metavar="N", help="pictures a class (the story's own)")
    parser.add_argument("--draws", type=int, default=3, help="how often classes and pictures are drawn (3)")
    parser.add_argument("--rows", nargs="+", choices=LEARNERS, default=list(LEARNERS), help="who is taught (all)")
    parser.add_argument("--held-out", action="store_true", help="test on other pictures of the training part")
    parser.add_argument("--markdown", action="store_true", help="print the tables as markdown")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parents[1] / "story.json", help="what is in this file stays as it is"
    )
    return parser


def _tell(asked: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    story = STORIES[asked.story]
    sources, pictures = asked.source or story.sources, asked.pictures or story.pictures
    if asked.draws < 1 or min(pictures) < 1:
        raise InputError("--draws and --pictures are at least 1")
    cases = [
        Case(asked.story, source, asked.held_out, count, draw, row)
        for source in sources
        for count in pictures
        for draw in range(asked.draws)
        for row in asked.rows
    ]
    check_output(asked.out)
    book = Book(asked.out)
    fill(book, cases)
    console = Console()
    for source in sources:
        title = f"{find(source).title}, {story.title}{', held-out pictures' if asked.held_out else ''}"
        mine = [case for case in cases if case.source == source]
        for name, cells in ((title, table(book, mine)), (f"{title}: who passes as known", passing(book, mine))):
            if asked.markdown and len(cells) > 1:
                print(f"{name}\n\n{as_markdown(cells)}")
            elif len(cells) > 1:
                console.print(as_rich(name, cells))
    console.print("\n".join(sorted({book.figures[case].machine for case in cases})), highlight=False, soft_wrap=True)


def fill(book: Book, cases: Iterable[Case], load: Callable[[str], Splits] = lambda name: find(name).load()) -> None:
    """Measure what is missing, and say so as it comes in."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    start = time.perf_counter()
    load = cache(load)
    for case in cases:
        if case not in book.figures:
            story = STORIES[case.story]
            source = load(case.source)
            splits = drawn(source, story, case.pictures, case.draw, case.held_out)
            others = strangers(source, splits, case.draw, case.held_out)
            book.add(case, measured(LEARNERS[case.row](seed=case.draw), story, splits, others))
            console.print(f"{time.perf_counter() - start:5.0f} s  {case}: {book.figures[case]}")


def table(book: Book, cases: Sequence[Case]) -> Cells:
    """A line a learner: what it gets right with each number of pictures, and what it costs."""
    counts = list(dict.fromkeys(case.pictures for case in cases))
    lines = [
        [
            "",
            *(f"{count} pictures: right, %" for count in counts),
            *(f"{count} pictures: teaching, s" for count in counts),
            "asking, ms",
        ]
    ]
    for row in dict.fromkeys(case.row for case in cases):
        mine = {
            count: [book.figures[case] for case in cases if (case.row, case.pictures) == (row, count)]
            for count in counts
        }
        lines.append(
            [
                LEARNERS[row].title,
                *(_spread([each.accuracy for each in found]) for found in mine.values()),
                *(f"{mean(each.seconds for each in found):.1f}" for found in mine.values()),
                f"{mean(each.milliseconds for found in mine.values() for each in found):.2f}",
            ]
        )
    return lines


def passing(book: Book, cases: Sequence[Case]) -> Cells:
    """A line a learner that can tell: how many pictures of known classes, and of others, pass as known."""
    counts = list(dict.fromkeys(case.pictures for case in cases))
    lines = [["", *(f"{count} pictures: {who}, %" for count in counts for who in ("known", "unknown"))]]
    for row in dict.fromkeys(case.row for case in cases):
        found = [
            [getattr(book.figures[case], who) for case in cases if (case.row, case.pictures) == (row, count)]
            for count in counts
            for who in ("known", "unknown")
        ]
        if all(value is not None for values in found for value in values):
            lines.append([LEARNERS[row].title, *map(_spread, found)])
    return lines


def as_rich(title: str, cells: Cells) -> Table:
    shown = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, head in enumerate(cells[0]):
        shown.add_column(head, justify="right" if number else "left", overflow="fold")
    for line in cells[1:]:
        shown.add_row(*line)
    return shown


def as_markdown(cells: Cells) -> str:
    head, *lines = cells
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---", *("---:" for _ in head[1:])], *lines))


def _spread(values: Sequence[float]) -> str:
    """The mean, and the deviation of a sample where there is one."""
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


if __name__ == "__main__":
    main()
