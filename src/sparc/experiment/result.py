"""What a run leaves: `result.json`, the only thing that a table or a picture is made from."""

import json
import math
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from sparc.errors import InputError, reason
from sparc.experiment.config import completed
from sparc.files import write_atomic
from sparc.from_json import build, with_new_names
from sparc.metrics import Metrics, efficiency, summarize, task_probabilities

FORMAT = 1
MOST = 10**15
"""No count in a result comes near it; sums and logarithms of smaller ones can be taken."""
Matrix = list[list[float | None]]
"""R with None above the diagonal, as JSON has no nan."""
Setting = Literal["class_il", "task_il"]
"""Whether a class is chosen among all that were learned, or among its task's."""


@dataclass(frozen=True)
class Result:
    """A run's config and all that was measured."""

    renamed: ClassVar = {"landings": "task_confusion", "by_task": "diagnostics"}
    """Names that fields had in earlier versions."""

    config: dict[str, Any]
    """As this version writes it, whichever version wrote it, where this one knows its method and settings."""
    class_names: list[str]
    sizes: list[int]
    """Classes of each task."""
    class_il: Matrix | None
    """None where the method must be told the task."""
    task_il: Matrix
    validation: dict[str, Matrix | None] | None
    task_confusion: list[list[int]] | None
    """After the last task; [j][k] counts the test pictures of task j that were given a class of task k."""
    parameters: int
    parameters_by_owner: dict[str, int]
    passes: dict[str, float]
    """Forward and backward, a training step, in passes of its batch through the net."""
    buffer_bytes: int
    seconds: dict[str, list[float]]
    """Of each task: training and testing."""
    state_sha256: str
    """Of the method's whole state at the end: same config, same bits."""
    data: dict[str, Any]
    environment: dict[str, Any]
    diagnostics: dict[str, list[float]] = field(default_factory=dict)
    """What the method measured of itself, a number a task; results from before there was such a thing have none."""
    by_part: dict[str, dict[Setting, float]] = field(default_factory=dict)
    """Accuracy A_T with a part of the method left out of its answers, or with one alone; empty where it has no such
    parts, and in results from before they were tested."""
    title: str = ""
    """What the method is called in a table; empty in results from before it was written."""
    kind: str = ""
    """The method's family."""
    upper_bound: bool = False
    """The method sees old tasks' pictures again, so it shows what can be had and does not compete."""
    format: int = FORMAT

    @property
    def matrices(self) -> dict[Setting, Matrix | None]:
        return {"class_il": self.class_il, "task_il": self.task_il}

    @cached_property
    def metrics(self) -> dict[Setting, Metrics]:
        """Of both settings; all nan where there is no matrix."""
        return {setting: summarized(matrix) for setting, matrix in self.matrices.items()}

    @cached_property
    def efficiency(self) -> float | None:
        """Class-IL accuracy for every million parameters."""
        return None if self.class_il is None else efficiency(self.metrics["class_il"].accuracy, self.parameters)

    @cached_property
    def task_probabilities(self) -> list[float] | None:
        """Share of a balanced test set that is given a class of each task at the end."""
        if self.task_confusion is None:
            return None
        shares: list[float] = task_probabilities(self.task_confusion, self.sizes).tolist()
        return shares

    def metrics_json(self) -> dict[Setting, dict[str, float | None]]:
        """The metrics with None for nan, which JSON has not."""
        return {
            setting: {name: None if math.isnan(value) else value for name, value in asdict(metrics).items()}
            for setting, metrics in self.metrics.items()
        }

    def as_json(self) -> dict[str, Any]:
        """All fields, and the numbers that follow from them, for those who read the file by other means."""
        return {
            **asdict(self),
            "metrics": self.metrics_json(),
            "efficiency": self.efficiency,
            "task_probabilities": self.task_probabilities,
        }

    def write(self, path: Path) -> None:
        write_atomic(path, (json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n").encode())


def read_result(path: Path) -> Result:
    """Everything is checked, as the file may come from anybody."""
    try:
        content = with_new_names(Result, json.loads(path.read_bytes()))
        if content["format"] != FORMAT:
            raise InputError(f"{path} is of format {content['format']}, not {FORMAT}: remove it, and run it again")
        result = build(Result, {each.name: content[each.name] for each in fields(Result) if each.name in content})
        _check(result)
        return replace(result, config=completed(result.config))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read ({reason(error)}): check that it is yours to read") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is not a result ({reason(error)}): remove it, and run it again") from error


def triangle(rows: list[list[float]]) -> Matrix:
    """A row a stage, each one longer than the last, as a square matrix.

    >>> triangle([[90.0], [60.0, 80.0]])
    [[90.0, None], [60.0, 80.0]]
    """
    return [[*row, *([None] * (len(rows) - len(row)))] for row in rows]


def summarized(matrix: Matrix | None) -> Metrics:
    return Metrics(*[math.nan] * len(fields(Metrics))) if matrix is None else summarize(numbers(matrix))


def numbers(matrix: Matrix) -> list[list[float]]:
    return [[math.nan if value is None else value for value in row] for row in matrix]


def _check(result: Result) -> None:
    """ValueError where values of the right types cannot be those of a run."""
    tasks, config = len(result.sizes), result.config
    counts = [
        *(result.parameters, result.buffer_bytes, *result.passes.values()),
        *(count for row in result.task_confusion or () for count in row),
        *(second for seconds in result.seconds.values() for second in seconds),
    ]
    matrices = [result.class_il, result.task_il, *(result.validation or {}).values()]
    right = {
        "config should have a benchmark, a method and a seed": all(
            type(config.get(name)) is kind for name, kind in {"benchmark": str, "method": str, "seed": int}.items()
        ),
        "config, data and environment should have plain values": _is_plain([config, result.data, result.environment]),
        "counts and seconds should not be negative": all(0 <= count < MOST for count in counts),
        "diagnostics should be no larger than any count": all(
            abs(value) < MOST for values in result.diagnostics.values() for value in values
        ),
        "by_part should have percentages of both settings": all(
            each.keys() == result.matrices.keys() and all(0 <= value <= 100 for value in each.values())
            for each in result.by_part.values()
        ),
        "parameters should be some": result.parameters > 0,
        "passes should be forward and backward": result.passes.keys() == {"forward", "backward"},
        "seconds should be of training and testing each task": all(
            len(result.seconds.get(name, [])) == tasks for name in ("train", "test")
        ),
        "sizes should add up to the number of classes": min(result.sizes, default=0) > 0
        and sum(result.sizes) == len(result.class_names),
        "an accuracy matrix should have percentages up to its diagonal, a row and a column a task": all(
            _is_triangle(matrix, tasks) for matrix in matrices if matrix is not None
        ),
        "task_confusion should have a row and a column a task": result.class_il is None
        or (
            [len(row) for row in result.task_confusion or ()] == [tasks] * tasks
            and all(map(any, result.task_confusion or ()))
        ),
    }
    for sentence, holds in right.items():
        if not holds:
            raise ValueError(sentence)


def _is_triangle(matrix: Matrix, tasks: int) -> bool:
    return [len(row) for row in matrix] == [tasks] * tasks and all(
        value is None if column > stage else value is not None and 0 <= value <= 100
        for stage, row in enumerate(matrix)
        for column, value in enumerate(row)
    )


def _is_plain(value: Any, depth: int = 6) -> bool:
    """Of limited depth, and with no number that JSON does not have."""
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(part, depth - 1) for part in parts)
    return not isinstance(value, float) or math.isfinite(value)
