"""All rows, as one table and one JSON file."""

import argparse
import json
import os
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.answering import answering_rows
from benchmarks.inference import inference_rows
from benchmarks.machine import machine
from benchmarks.measure import Row, Size, two_processes
from benchmarks.process import memory_rows, startup_rows
from benchmarks.serve import serve_rows
from benchmarks.start import start_rows
from benchmarks.training import later_task_rows, thread_rows, training_rows

WORDS = {True: "yes", False: "no", None: ""}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast SPARC is on this machine.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "latest.json", help="where the JSON goes")
    out: Path = parser.parse_args().out
    console = Console(stderr=True)
    start = time.perf_counter()
    load = os.getloadavg()
    size = Size()
    rows: list[Row] = []
    with two_processes() as workers:
        for name, part in (
            ("training", training_rows),
            ("later tasks", later_task_rows),
            ("threads", thread_rows),
            ("inference", inference_rows),
            ("onnxruntime", answering_rows),
            ("a start", start_rows),
        ):
            console.print(f"{time.perf_counter() - start:4.0f} s  {name}", highlight=False)
            rows += part(size, workers)
    console.print(f"{time.perf_counter() - start:4.0f} s  processes", highlight=False)
    rows += memory_rows(size) + startup_rows(size)
    console.print(f"{time.perf_counter() - start:4.0f} s  a server", highlight=False)
    rows += serve_rows(size)
    rows.sort(key=lambda row: int(row.number))
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load before": load[0],
        "load after": os.getloadavg()[0],
        "seconds": round(time.perf_counter() - start),
        "size": asdict(size),
        "rows": [asdict(row) for row in rows],
    }
    out.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    print_table(report, rows)


def print_table(report: dict[str, object], rows: list[Row]) -> None:
    where = ", ".join(str(value) for value in machine().values())
    table = Table(title="SPARC's speed", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("", "what", "measured", "aim", "reached"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(row.number, row.what, row.measured, row.aim, WORDS[row.reached])
    console = Console()
    console.print(table)
    console.print(
        f"{where}\nOne thread; others kept {report['load before']:.1f} processors busy when it began. "
        f"{report['seconds']} s.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
