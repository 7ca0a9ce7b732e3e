"""Many ask at once while a task is learned."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.serve import asked_in_a_loop, learn_on, loaded, served, taught
from sparc.model_file import load


@pytest.mark.long
def test_32_clients_for_a_minute_while_a_task_is_learned(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path, contents, labels = taught(tmp_path, 32)
    with served(path) as url:
        learn_on(url, contents, labels)
        expected, _ = asked_in_a_loop(load(path), contents, 0.1)
        found = asyncio.run(loaded(url, contents, expected, clients=32, seconds=60))
    record_property("figures", f"{found.throughput:.0f} pictures a second, p99 {1000 * found.percentile(0.99):.0f} ms")
    assert found.wrong == 0
    assert len(found.latencies) > 32
