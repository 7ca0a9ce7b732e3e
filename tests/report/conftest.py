from collections.abc import Callable
from dataclasses import replace

import pytest

from sparc.experiment.result import Result, triangle

Make = Callable[..., Result]


@pytest.fixture(scope="session")
def result() -> Make:
    """A result as if it had been measured: two tasks of two classes, unless told otherwise."""

    def make(
        method: str = "sparc",
        seed: int = 0,
        rows: tuple[tuple[float, ...], ...] = ((90,), (60, 80)),
        needs_task_id: bool = False,
        change: dict[str, object] | None = None,
        **settings: object,
    ) -> Result:
        tasks = len(rows)
        made = Result(
            config={"method": method, "benchmark": "seq-digits", "seed": seed, "settings": settings},
            class_names=[str(label) for label in range(2 * tasks)],
            sizes=[2] * tasks,
            class_il=triangle([list(row) for row in rows]),
            task_il=triangle([[100.0] * (stage + 1) for stage in range(tasks)]),
            validation=None,
            task_confusion=[[3] + [1] * (tasks - 1)] * tasks,
            parameters=1_000_000,
            parameters_by_owner={"net": 1_000_000},
            passes={"forward": 1, "backward": 1},
            buffer_bytes=0,
            seconds={"train": [1.0 + seed] * tasks, "test": [1.0] * tasks},
            state_sha256="0" * 64,
            data={"train": 100, "test": 20, "image_size": [8, 8]},
            environment={"sparc": "0.1.0", "torch": "2.13.0", "threads": 1},
            title={"sparc": "SPARC", "sgd": "SGD", "packnet": "PackNet", "pnn": "PNN", "er": "ER"}.get(method, ""),
        )
        return replace(made, **({"class_il": None} if needs_task_id else {}), **(change or {}))  # type: ignore[arg-type]

    return make
