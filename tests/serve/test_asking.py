"""Those who ask are answered together, whatever becomes of some of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from sparc.data.pictures import Pixels
from sparc.serve.asking import Batcher


def asked(ask: Callable[[Batcher], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        batcher = Batcher()
        working = asyncio.create_task(batcher.work())
        try:
            return await asyncio.wait_for(ask(batcher), 60)
        finally:
            working.cancel()
            batcher.close()

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that gives back what it is shown."""
    monkeypatch.setattr("sparc.serve.asking.answer", lambda model, images: images)
    monkeypatch.setattr("sparc.serve.asking.part", lambda found, start, end: found[start:end].tolist())


def images(*values: int) -> Pixels:
    return np.array(values, np.uint8)


def test_those_who_have_gone_keep_nobody_waiting() -> None:
    async def ask(batcher: Batcher) -> Any:
        gone = asyncio.ensure_future(batcher.ask("one", images(1)))  # type: ignore[arg-type]
        other = asyncio.ensure_future(batcher.ask("other", images(2, 3)))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        batcher.waiting[0].answered.cancel()
        assert len(batcher.waiting) == 2
        answered = await other
        assert gone.cancelled()
        return answered

    assert asked(ask) == [2, 3]


def test_want_of_memory_is_said_and_the_next_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    together = np.concatenate
    wanting = [True]

    def concatenate(arrays: list[Pixels]) -> Pixels:
        if wanting.pop() if wanting else False:
            raise MemoryError
        return together(arrays)

    monkeypatch.setattr("sparc.serve.asking.np.concatenate", concatenate)

    async def ask(batcher: Batcher) -> Any:
        with pytest.raises(MemoryError):
            await batcher.ask("model", images(1))  # type: ignore[arg-type]
        return await batcher.ask("model", images(2))  # type: ignore[arg-type]

    assert asked(ask) == [2]
