"""What a method will ask for on a stream, found without learning anything."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.methods.method import Costs, Method, Settings


def expected_costs(
    kind: type[Method],
    sizes: Sequence[int],
    settings: Settings | None = None,
    channels: int = 3,
    image_size: tuple[int, int] = (32, 32),
) -> Costs:
    """After tasks of so many classes each; buffers are still empty.

    >>> from sparc.methods import METHODS
    >>> expected_costs(METHODS.find("sparc"), sizes=[20] * 5).parameters
    1039659
    """
    nothing = ImageSet(
        torch.empty(0, channels, *image_size, dtype=torch.uint8), torch.empty(0, dtype=torch.int64), class_names=()
    )
    generator = Generator()
    with _NothingDrawn():
        method = kind(kind.Settings() if settings is None else settings, channels, image_size, generator)
        for index, classes in enumerate(sizes):
            first = sum(sizes[:index])
            task = Task(index, range(first, first + classes), nothing, nothing, nothing, tasks=len(sizes))
            method.begin_task(task)
    return method.costs()


class _NothingDrawn(TorchFunctionMode):
    """Initialisation left out: it takes the time, and memory that nobody has written to is not taken at all.

    Torch's meta device would do too, but some operations on it import a second's worth of modules.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (Tensor.normal_, Tensor.uniform_):
            return args[0]
        return func(*args, **(kwargs or {}))
