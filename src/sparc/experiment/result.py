"""What a run leaves: `result.json`, the only thing that a table or a picture is made from."""

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sparc.errors import InputError
from sparc.files import write_atomic
from sparc.metrics import Metrics, efficiency, summarize, task_probabilities

FORMAT = 1
Matrix = list[list[float | None]]
"""R with None above the diagonal, as JSON has no nan."""


@dataclass(frozen=True)
class Result:
    """A run's config and all that was measured."""

    config: dict[str, Any]
    class_names: list[str]
    sizes: list[int]
    """Classes of each task."""
    class_il: Matrix
    task_il: Matrix
    validation: dict[str, Matrix] | None
    landings: list[list[int]]
    """After the last task; [j][k] counts the test pictures of task j that were given a class of task k."""
    parameters: int
    parameters_by_owner: dict[str, int]
    passes: dict[str, int]
    """Forward and backward, a training step."""
    buffer_bytes: int
    seconds: dict[str, list[float]]
    """Of each task: training and testing."""
    state_sha256: str
    """Of the method's whole state at the end: same config, same bits."""
    data: dict[str, Any]
    environment: dict[str, Any]
    format: int = FORMAT

    def metrics(self) -> dict[str, Metrics]:
        return {"class_il": summarize(numbers(self.class_il)), "task_il": summarize(numbers(self.task_il))}

    def derived(self) -> dict[str, Any]:
        """Numbers that follow from the rest, written down for those who read the file by other means."""
        metrics = {setting: _no_nan(asdict(values)) for setting, values in self.metrics().items()}
        return {
            "metrics": metrics,
            "efficiency": efficiency(self.metrics()["class_il"].accuracy, self.parameters),
            "task_probabilities": task_probabilities(self.landings, self.sizes).tolist(),
        }

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), **self.derived()}

    def write(self, path: Path) -> None:
        write_atomic(path, (json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n").encode())


def read_result(path: Path) -> Result:
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise InputError(f"{path} is of format {content['format']}, not {FORMAT}: run it again with --fresh")
        return Result(**{field.name: content[field.name] for field in fields(Result)})
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a result ({error}): run it again with --fresh") from error


def triangle(rows: list[list[float]]) -> Matrix:
    """A row a stage, each one longer than the last, as a square matrix.

    >>> triangle([[90.0], [60.0, 80.0]])
    [[90.0, None], [60.0, 80.0]]
    """
    return [[*row, *([None] * (len(rows) - len(row)))] for row in rows]


def numbers(matrix: Matrix) -> list[list[float]]:
    return [[math.nan if value is None else value for value in row] for row in matrix]


def _no_nan(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
