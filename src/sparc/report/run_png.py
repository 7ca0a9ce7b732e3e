"""A picture of a run: both accuracy matrices, where test pictures land, and the metrics."""

from dataclasses import asdict
from pathlib import Path

from sparc.experiment.config import run_title
from sparc.experiment.folder import done_run
from sparc.experiment.result import Result
from sparc.files import write_atomic
from sparc.report.charts import Heading, table
from sparc.report.drawing import Drawing, arranged
from sparc.report.figures import matrix_figures, task_confusion_figures
from sparc.report.labels import METRIC_TITLES, SETTING_TITLES
from sparc.report.study import studies
from sparc.text import percent


def draw(result: Result, path: Path) -> Path:
    """Write a PNG of a run."""
    from sparc.report.raster import png  # half a second, which verbs that draw nothing should not wait for

    write_atomic(path, png(run_drawing(result), scale=2))
    return path


def run_drawing(result: Result) -> Drawing:
    (study,) = studies([done_run(Path(), result)])
    figures = [*matrix_figures(study, 0), *task_confusion_figures(study, 0)]
    drawings = [*(figure.drawing for figure in figures), _metrics(result)]
    return arranged(run_title(result.config), (), drawings, columns=2)


def _metrics(result: Result) -> Drawing:
    metrics = [asdict(values) for values in result.metrics.values()]
    rows = [[title, *(percent(values[name]) for values in metrics)] for name, title in METRIC_TITLES.items()]
    rows.append(["Parameters", "", f"{result.parameters / 1e6:.3f} M"])
    note = "in percent" if result.class_il else "in percent; no Class-IL, as it must be told the task"
    return table(Heading("Metrics", note), ["", *SETTING_TITLES.values()], rows)
