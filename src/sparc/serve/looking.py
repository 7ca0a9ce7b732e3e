"""What the model knows, as the page and the API show it."""

from dataclasses import replace

from sparc.model_file import Model, bytes_after
from sparc.model_info import ModelInfo
from sparc.report.axis import Axis
from sparc.report.charts import Heading, Series, lines
from sparc.report.comparison import Cell
from sparc.report.model_card import facts, start_of
from sparc.report.reliability import none_of_these
from sparc.report.svg import inline
from sparc.serve.served import Served

POINTS = 30
"""Of the chart of growth, for each of which a net is laid out."""


def about(served: Served) -> dict[str, object]:
    """All that is known of the model; of none, that there is none."""
    shown: dict[str, object] = {"name": served.name, "exists": served.model is not None, "trouble": served.trouble}
    model = served.model
    if model is None:
        return {**shown, "classes": [], "tasks": []}
    try:
        known = facts(model, served.path)
    except OSError as error:  # the file has gone since it was read, or nobody may look at it any more
        return {**shown, "exists": not isinstance(error, FileNotFoundError), "classes": [], "tasks": []}
    known.pop("path")  # where it lies is nobody's business
    classes = statistics(model)
    return {
        **shown,
        **known,
        "classes": classes,
        "pictures": sum(count for task in model.info.tasks for count in task.pictures),
        "start": start_of(model.info),
        "none_of_these": none_of_these(model.info) if model.info.tasks else "",
    }


def statistics(model: Model) -> list[dict[str, object]]:
    """Of each class."""
    info = model.info
    nearest = model.most_alike
    shown: list[dict[str, object]] = []
    for label, name in enumerate(info.classes):
        tasks = [task for task in info.tasks if name in task.classes]
        shown.append(
            {
                "name": name,
                "pictures": sum(task.pictures[task.classes.index(name)] for task in tasks),
                "tasks": [task.name for task in tasks],
                "learned": tasks[-1].learned,
                "most_like": None if nearest is None else info.classes[nearest[label]],
            }
        )
    return shown


def figures(info: ModelInfo) -> list[str]:
    """How the model has grown, and how good it was, after each task, as SVG in the page's colours."""
    if not info.tasks:
        return []
    step = -(-len(info.tasks) // POINTS)
    stages = sorted({*range(step, len(info.tasks) + 1, step), len(info.tasks)})
    megabytes = [(float(stage), Cell(bytes_after(info, stage) / 1e6, None)) for stage in stages]
    x = Axis("tasks learned", 0.5, len(info.tasks) + 0.5, integers=True)
    y = Axis("MB", 0, 1.1 * max(cell.mean or 0.0 for _, cell in megabytes))
    grown = lines(Heading("Growth", "MB, after each task"), x, y, [Series("size of the model", 0, megabytes)])
    series = [
        Series(label, index, [(float(number), Cell(value, None)) for number, value in enumerate(accuracies, 1)])
        for index, (label, accuracies) in enumerate(
            {
                "in the task": [task.accuracy_in_task for task in info.tasks],
                "among all then": [task.accuracy_in_all for task in info.tasks],
            }.items()
        )
    ]
    heading = Heading("Accuracy", "% of held-out pictures, when each task was learned")
    right = lines(heading, replace(x, title="task"), Axis("%", 0, 100), series)
    return [inline(grown, "growth"), inline(right, "accuracy")]
