"""A net that grows by a column a task, each one fed by all columns before it.

Rusu et al., "Progressive Neural Networks", 2016, with a ResNet as column. What older columns say at each layer is
scaled, channel by channel and pixel by pixel, brought to one column's number of channels by a 1×1 convolution, and sent
through a residual layer of its own, whose output joins the column's next layer; after the last layer it goes to a head
of its own. The layout of these adapters is that of the field's implementation, Mammoth's.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import conv2d, relu

from sparc.errors import InputError
from sparc.nn.functions import channels_last
from sparc.nn.growing import Freezable
from sparc.nn.head import Head
from sparc.nn.layout import layer_filters, suitable_depth
from sparc.nn.resnet import Conv, residual_layer


class Adapter(nn.Module):
    """What older columns say at one layer, as one map of as many channels as a column's own."""

    def __init__(self, columns: int, channels: int, size: tuple[int, int], generator: Generator) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(columns * channels, *size).uniform_(0, 0.1, generator=generator))
        self.project = Head(columns * channels, channels, generator)
        """A 1×1 convolution with bias, initialised as torch would."""

    def forward(self, older: Sequence[Tensor]) -> Tensor:
        weight = self.project.weight[:, :, None, None]
        return relu(conv2d(torch.cat(list(older), 1) * self.scale, weight, self.project.bias))


class Column(Freezable):
    """A ResNet for one task, with adapters from the columns before it."""

    def __init__(
        self,
        channels: int,
        image_size: tuple[int, int],
        filters: list[int],
        classes: int,
        older: int,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(Conv(channels, filters[0], 3, 1, generator), nn.BatchNorm2d(filters[0]))
        self.layers = nn.ModuleList(
            nn.Sequential(*residual_layer(filters[max(layer - 1, 0)], out, 2 if layer else 1, generator))
            for layer, out in enumerate(filters)
        )
        self.head = Head(filters[-1], classes, generator)
        self.adapters = nn.ModuleList()
        self.laterals = nn.ModuleList()
        if older:
            height, width = image_size
            for inputs, out in pairwise(filters):
                self.adapters.append(Adapter(older, inputs, (height, width), generator))
                self.laterals.append(nn.Sequential(*residual_layer(inputs, out, 2, generator)))
                height, width = (height + 1) // 2, (width + 1) // 2
            self.adapters.append(Adapter(older, filters[-1], (1, 1), generator))
            self.laterals.append(Head(filters[-1], classes, generator))

    def maps(self, x: Tensor, older: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """The output of each layer; `older` has those of the columns before."""
        x = relu(self.stem(x))
        maps: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number and older:
                x = x + self._lateral(number - 1, [column[number - 1] for column in older])
            maps.append(x)
        return maps

    def forward(self, maps: Sequence[Tensor], older: Sequence[Sequence[Tensor]]) -> Tensor:
        """Logits of this task's classes, from the maps of this column and of those before it."""
        logits: Tensor = self.head(maps[-1].mean((2, 3)))
        if older:
            logits = logits + self._lateral(-1, [column[-1].mean((2, 3), keepdim=True) for column in older])
        return logits

    def _lateral(self, number: int, older: Sequence[Tensor]) -> Tensor:
        adapted = self.adapters[number](older)
        lateral: Tensor = self.laterals[number](adapted.flatten(1) if number < 0 else adapted)
        return lateral


class ProgressiveNet(nn.Module):
    """
    >>> net = ProgressiveNet(channels=1, image_size=(8, 8), width=1 / 16)
    >>> for classes in (2, 3):
    ...     net.add_task(classes)
    >>> net(torch.zeros(7, 1, 8, 8)).shape
    torch.Size([7, 5])
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 1.0,
        depth: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.image_size = image_size
        self.filters = layer_filters(width, suitable_depth(image_size) if depth is None else depth)
        self.generator = generator if generator is not None else Generator().manual_seed(0)
        self.columns = nn.ModuleList()
        # Says where the net is, also before it has a column.
        self.place = nn.Parameter(torch.empty(0), requires_grad=False)

    @property
    def task_sizes(self) -> list[int]:
        return [column.head.out_features for column in self.all_columns()]

    def all_columns(self) -> list[Column]:
        return cast(list[Column], list(self.columns))

    def add_task(self, classes: int) -> None:
        """Grow by a column; those before it will not change any more."""
        if classes < 1:
            raise InputError(f"a task has at least one class, not {classes}")
        for column in self.all_columns():
            column.freeze()
        new = Column(self.channels, self.image_size, self.filters, classes, len(self.columns), self.generator)
        self.columns.append(new.to(self.place.device))

    def task_logits(self, x: Tensor, task: int) -> Tensor:
        """Of one task's classes, from its column and those before it."""
        return self._answers(x, task + 1)[-1]

    def forward(self, x: Tensor) -> Tensor:
        """What every column says of its own classes, in the order of the tasks."""
        return torch.cat(self._answers(x, len(self.columns)), 1)

    def _answers(self, x: Tensor, columns: int) -> list[Tensor]:
        x = channels_last(x)
        maps: list[list[Tensor]] = []
        answers = []
        for column in self.all_columns()[:columns]:
            with torch.set_grad_enabled(torch.is_grad_enabled() and not column.frozen):
                own = column.maps(x, maps)
                answers.append(column(own, maps))
            maps.append(own)
        return answers

    def get_extra_state(self) -> Tensor:
        """How many classes each column has, so that their weights can be put back into a net without columns."""
        return torch.tensor(self.task_sizes, dtype=torch.int64)

    def set_extra_state(self, state: Tensor) -> None:
        for classes in state.tolist()[len(self.columns) :]:
            self.add_task(classes)
