"""What the model makes of pictures: decoded by a few threads, and answered together where several wait."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from sparc.data.pictures import decode
from sparc.discovery import unknown
from sparc.errors import UnreadableError
from sparc.model_file import Model
from sparc.model_input import Square
from sparc.predictor import USUAL_SHARE, Answers, answers
from sparc.serve.uploads import Sent

MOST = 64
"""Pictures that are answered together."""
DECODERS = 2


def answer(model: Model, images: Tensor) -> Answers:
    """To uint8 images, by whatever runs the model; nothing of them is kept."""
    return answers(model, model.net.look(images, cache=False))


@dataclass(eq=False)
class Waiting:
    model: Model
    images: Tensor
    answered: asyncio.Future[Answers]


class Batcher:
    """Asks the model on one thread; what comes in while that is busy is answered together next."""

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.news = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "model")
        self.batches = self.pictures = 0

    async def ask(self, model: Model, images: Tensor) -> Answers:
        answered: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(model, images, answered))
        self.news.set()
        return await answered

    async def work(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.news.wait()
            while together := self._together():
                images = torch.cat([each.images for each in together])
                self.batches, self.pictures = self.batches + 1, self.pictures + len(images)
                try:
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
        """The first that wait for the same model: at least one, and not too many pictures."""
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
        tasks = [task.name for task in model.info.tasks]
        if question.task is not None and question.task not in tasks:
            raise unknown("task", question.task, tasks)
        loop = asyncio.get_running_loop()
        read = partial(square_of, model)
        squares = await asyncio.gather(*(loop.run_in_executor(self.decoders, read, each) for each in pictures))
        readable = [each for each in squares if not isinstance(each, str)]
        images = model.info.shape.from_squares(readable)
        named: list[dict[str, object]] = []
        for chunk in images.split(MOST) if readable else ():
            named += describe(await self.batcher.ask(model, chunk), question)
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
    info = found.info
    chosen = [label for task in info.tasks if task.name == question.task for label in info.labels(task)]
    chosen = chosen or list(range(len(info.classes)))
    best, indices = found.probabilities(chosen).topk(min(question.top, len(chosen)), 1)
    known = [True] * len(best) if question.share is None else found.are_known(question.share).tolist()
    described: list[dict[str, object]] = []
    for row, probabilities, is_known in zip(indices.tolist(), best.tolist(), known, strict=True):
        names = [info.classes[chosen[index]] for index in row]
        predictions = [{"class": name, "probability": sure} for name, sure in zip(names, probabilities, strict=True)]
        tasks = [task.name for task in info.tasks if names[0] in task.classes]
        described.append({"none_of_these": not is_known, "tasks": tasks, "predictions": predictions})
    return described


def square_of(model: Model, sent: Sent) -> Square | str:
    """The picture, or why there is none."""
    try:
        return decode(sent.content, "it", model.info.shape.side, model.info.shape.fit)
    except UnreadableError as error:
        return str(error)
