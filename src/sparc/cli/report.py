"""`sparc report`: make a page, figures or tables of runs."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sparc.cli.parse import parse
from sparc.cli.warn import warn
from sparc.errors import InputError
from sparc.experiment import find_runs, read_losses
from sparc.files import check_output, check_writable, write_atomic
from sparc.report.figures import all_figures
from sparc.report.page import page
from sparc.report.raster import png
from sparc.report.study import Study, studies
from sparc.report.svg import standalone
from sparc.report.table_formats import as_csv, as_latex, as_markdown
from sparc.text import one_line

USUAL = {
    "html": "report.html",
    "csv": "report.csv",
    "latex": "report.tex",
    "markdown": "report.md",
    "svg": "figures",
    "png": "figures",
}
ENDINGS = {Path(usual).suffix or f".{kind}": kind for kind, usual in USUAL.items()}
"""What the end of a file's name says of its format."""


@dataclass(frozen=True)
class Report:
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS …")] = (Path("runs"),)
    """Folders of runs, as given to `sparc run --out`, single runs' folders, or their result.json."""
    out: Path | None = None
    """The file, or for svg and png the folder, that is written; by default report.html, .csv, .tex, .md, or figures;
    - prints it instead."""
    format: Literal["html", "png", "svg", "csv", "latex", "markdown"] = "html"
    """One page with everything, a folder of figures, a line a run, or a table for a paper or a README."""
    json: bool = False
    """Print the numbers that are compared as JSON, beside what is written."""


def main(arguments: list[str]) -> int:
    given = parse(Report, "report", __doc__, arguments)
    out = Path(USUAL[given.format]) if given.out is None else given.out
    figures = given.format in ("svg", "png")
    printed = out == Path("-")
    if printed and (figures or given.json):
        raise InputError("--out - prints a page or a table alone: name a file or a folder")
    if figures:
        if out.suffix.lower() in ENDINGS and not out.is_dir():
            raise InputError(f"--format {given.format} makes a folder, not {out}: name it without {out.suffix}")
        if out.exists() and not out.is_dir():
            raise InputError(f"--out {out} is a file: name a folder for the figures")
        check_writable(out, "--out")
    elif not printed:
        check_output(out)
        meant = ENDINGS.get(out.suffix.lower(), given.format)
        if meant != given.format:
            raise InputError(f"--out {out} has the ending of --format {meant}, and not of {given.format}: change one")
    left_out: list[str] = []
    runs = find_runs(given.runs, left_out.append)
    for sentence in left_out:
        warn(sentence)
    if out.resolve() in {run.result_path.resolve() for run in runs}:
        raise InputError(f"--out {out} is a result itself: name another file")
    compared = studies([replace(run, losses=read_losses(run.log_path)) for run in runs])
    if figures:
        _write_figures(compared, out, given.format)
    else:
        flat = {"csv": as_csv, "latex": as_latex, "markdown": as_markdown}
        text = page(compared, left_out) if given.format == "html" else flat[given.format](compared)
        if printed:
            sys.stdout.buffer.write(text.encode())  # a file has the same bytes, whatever the terminal can show
            return 0
        write_atomic(out, text.encode())
    if given.json:
        rows = [{"benchmark": study.benchmark, "rows": [row.as_json() for row in study.rows]} for study in compared]
        print(json.dumps({"out": str(out), "studies": rows}, allow_nan=False))
    else:
        what = "page" if given.format == "html" else "figures" if figures else "table"
        print(f"{what}: {one_line(str(out))}")
    return 0


def _write_figures(compared: list[Study], folder: Path, kind: str) -> None:
    for number, study in enumerate(compared, 1):
        subfolder = folder / f"{number:02}" if len(compared) > 1 else folder
        for figure in all_figures(study):
            content = png(figure.drawing) if kind == "png" else standalone(figure.drawing).encode()
            write_atomic(subfolder / f"{figure.name}.{kind}", content)
