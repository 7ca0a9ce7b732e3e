"""Parts of a batch computed at the same time, each in a thread of its own.

Kernels of nets as small as these are too short to be shared out among threads; halves of a batch are not. Each part
goes through a twin of the method, which has the same weights, and gradients and batch norms' statistics of its own.
Gradients are added up, and statistics averaged, in an order that is always the same; so the bits follow from the number
of threads, and from nothing else.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor, nn

from sparc.methods.method import Batch, Method

FEWEST = 8
"""Pictures of a part: batch norm sees no others."""


class Split(AbstractContextManager["Split"]):
    """Twins of a method for one phase, in which its parameters stay where they are."""

    def __init__(self, method: Method, threads: int) -> None:
        self.method = method
        self.threads = threads
        self.threads_before = torch.get_num_threads()
        self.twins = [method.twin() for _ in range(threads - 1)]
        self.everybody = [method, *self.twins]
        learning = [place for place, parameter in enumerate(method.parameters()) if parameter.requires_grad]
        self.learning = [[[*each.parameters()][place] for place in learning] for each in self.everybody]
        self.norms = [[*_running(each)] for each in self.everybody]
        self.pool = ThreadPoolExecutor(max(1, threads - 1), initializer=torch.set_num_threads, initargs=(1,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()
        torch.set_num_threads(self.threads_before)

    def backward(self, batch: Batch, context: Callable[[], AbstractContextManager[object]]) -> Tensor:
        """Put the batch's gradients where the optimizer looks for them, and say what the loss is.

        The loss is computed in the context, of which every thread enters one.
        """
        parts = _parts(batch, min(self.threads, max(1, len(batch.images) // FEWEST)))

        def compute(number: int) -> Tensor:
            method, part = self.everybody[number], parts[number]
            with context():
                loss = method.loss(part)
            share = loss * (len(part.images) / len(batch.images))
            share.backward()
            return share.detach()

        for parameters in self.learning:
            for parameter in parameters:
                parameter.grad = None
        torch.set_num_threads(1)
        others = [self.pool.submit(compute, number) for number in range(1, len(parts))]
        losses = [compute(0), *(each.result() for each in others)]
        self._join(len(parts))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def _join(self, count: int) -> None:
        """Add up gradients, and average what batch norms have seen; twins are as the method is again."""
        for parameter, *others in zip(*self.learning[:count], strict=True):
            for other in others:
                assert (parameter.grad is None) == (other.grad is None), "twins do as the method does"
                if parameter.grad is not None and other.grad is not None:
                    parameter.grad += other.grad
        for statistic, *others in zip(*self.norms, strict=True):
            for other in others[: count - 1]:
                statistic += other
            statistic /= count
            for other in others:
                other.copy_(statistic)
        self.method.join(self.twins)


def _running(method: Method) -> list[Tensor]:
    """The running statistics of all batch norms that learn."""
    norms = [module for module in method.modules() if isinstance(module, nn.BatchNorm2d) and module.training]
    return [buffer for norm in norms for buffer in (norm.running_mean, norm.running_var) if buffer is not None]


def _parts(batch: Batch, count: int) -> Sequence[Batch]:
    pieces = [torch.tensor_split(each, count) for each in (batch.images, batch.labels, batch.raw_images, batch.indices)]
    return [
        replace(batch, images=images, labels=labels, raw_images=raw_images, indices=indices)
        for images, labels, raw_images, indices in zip(*pieces, strict=True)
    ]
