"""What the model makes of pictures: decoded by a few threads, and answered together where several wait."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from sparc.data.pictures import Pixels, decode
from sparc.errors import UnreadableError
from sparc.model_file import Model
from sparc.model_input import Square
from sparc.predictor import USUAL_SHARE, Answers, answers, check_task, likeliest
from sparc.serve.uploads import Sent

MOST = 64
"""Pictures that are answered together."""
DECODERS = 2


def answer(model: Model, images: Pixels) -> Answers:
    """By whatever runs the model fastest; nothing of the images is kept."""
    return answers(model.ready, model.ready.look(images, cache=False))


@dataclass(eq=False)
class Waiting:
    model: Model
    images: Pixels
    answered: asyncio.Future[Answers]


class Batcher:
    """Asks the model on one thread; what comes in while that is busy is answered together next."""

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.news = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "model")
        self.batches = self.pictures = 0

    async def ask(self, model: Model, images: Pixels) -> Answers:
        answered: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(model, images, answered))
        self.news.set()
        return await answered

    async def work(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.news.wait()
            while self.waiting:
                together = self._together()
                if not together:  # whoever asked has gone, and others may wait
                    continue
                try:
                    images = np.concatenate([each.images for each in together])
                    self.batches, self.pictures = self.batches + 1, self.pictures + len(images)
                    found = await loop.run_in_executor(self.thread, answer, together[0].model, images)
                except Exception as error:  # whoever asked must know
                    for each in together:
                        if not each.answered.done():
                            each.answered.set_exception(error)
                    continue
                start = 0
                for each in together:
                    end = start + len(each.images)
                    if not each.answered.done():  # whoever asked may have gone
                        each.answered.set_result(part(found, start, end))
                    start = end
            self.news.clear()

    def _together(self) -> list[Waiting]:
        """The first that wait for the same model, and not too many pictures; none if nobody waits for them any more."""
        taken: list[Waiting] = []
        pictures = 0
        while self.waiting and (not taken or self.waiting[0].model is taken[0].model):
            pictures += len(self.waiting[0].images)
            if taken and pictures > MOST:
                break
            taken.append(self.waiting.popleft())
        return [each for each in taken if not each.answered.done()]

    def close(self) -> None:
        self.thread.shutdown(wait=False, cancel_futures=True)


def part(found: Answers, start: int, end: int) -> Answers:
    strangeness = None if found.strangeness is None else found.strangeness[start:end]
    return Answers(found.scores[start:end], strangeness, found.info)


@dataclass(frozen=True)
class Question:
    """How pictures are to be named."""

    top: int = 5
    task: str | None = None
    """Only choose among its classes."""
    share: float | None = USUAL_SHARE
    """Of pictures of known classes that pass as such; None names a class in any case."""


class Asking:
    """Names pictures."""

    def __init__(self) -> None:
        self.batcher = Batcher()
        self.decoders = ThreadPoolExecutor(DECODERS, "decoder")

    async def name(self, model: Model, pictures: Sequence[Sent], question: Question) -> list[dict[str, object]]:
        """Of each picture its classes, likeliest first, or why it has none."""
        check_task(model.info, question.task)
        loop = asyncio.get_running_loop()
        read = partial(square_of, model)
        squares = await asyncio.gather(*(loop.run_in_executor(self.decoders, read, each) for each in pictures))
        readable = [each for each in squares if not isinstance(each, str)]
        images = model.info.shape.from_squares(readable)
        named: list[dict[str, object]] = []
        for start in range(0, len(images), MOST):
            named += describe(await self.batcher.ask(model, images[start : start + MOST]), question)
        found = iter(named)
        return [
            {"name": sent.name, **({"error": square} if isinstance(square, str) else next(found))}
            for sent, square in zip(pictures, squares, strict=True)
        ]

    def close(self) -> None:
        self.batcher.close()
        self.decoders.shutdown(wait=False, cancel_futures=True)


def describe(found: Answers, question: Question) -> list[dict[str, object]]:
    """As `sparc predict --json` does, and with the tasks that have taught the first class."""
    described: list[dict[str, object]] = []
    for classes, is_known in likeliest(found, question.top, question.task, question.share):
        first, _ = classes[0]
        tasks = [task.name for task in found.info.tasks if first in task.classes]
        predictions = [{"class": name, "probability": sure} for name, sure in classes]
        described.append({"none_of_these": not is_known, "tasks": tasks, "predictions": predictions})
    return described


def square_of(model: Model, sent: Sent) -> Square | str:
    """The picture, or why there is none."""
    try:
        return decode(sent.content, sent.name, model.info.shape.side, model.info.shape.fit)
    except UnreadableError as error:
        return error.reason
