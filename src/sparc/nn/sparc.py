"""SPARC's net: one working memory a task, one semantic memory for all of them.

Bhat, Niesten, Arani and Zonooz, "Continual Learning Beyond Experience Rehearsal and Full Model Surrogates", ICML 2025.
Each working memory is a small ResNet of depth-wise separable convolutions; the semantic memory owns a share of the
point-wise filters in every one of its layers.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Generator, Tensor, nn

from sparc.data.pictures import SMALLEST_SIDE
from sparc.errors import InputError
from sparc.nn.functions import channels_last, two_of_each
from sparc.nn.growing import Freezable
from sparc.nn.head import Head, count_parameters
from sparc.nn.layout import BLOCKS, ParameterCounts, Unit, layer_filters, layout, suitable_depth
from sparc.nn.separable import SeparableConv, new_pointwise


class SemanticMemory(nn.Module):
    """The point-wise filters that every task uses: one bank a separable convolution."""

    def __init__(self, units: list[Unit], generator: Generator) -> None:
        super().__init__()
        self.filters = nn.ParameterList(
            new_pointwise(unit.channels, unit.shared, unit.own + unit.shared, generator) for unit in units
        )

    @torch.no_grad()
    def consolidate(self, working: "WorkingMemory", alpha: float) -> None:
        """semantic ← α·semantic + (1 − α)·own, filter by filter.

        Where a working memory owns more or fewer filters of a layer than the semantic memory (a share other than one
        half), as many as both have are paired.
        """
        for semantic, unit in zip(self.filters, working.separable(), strict=True):
            pairs = min(len(semantic), len(unit.pointwise))
            semantic[:pairs].mul_(alpha).add_(unit.pointwise[:pairs], alpha=1 - alpha)


class Shortcut(nn.Module):
    """Where the shape changes: every input channel, subsampled, goes to two output channels with a weight each."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2 * channels, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return two_of_each(x, self.weight)


class Block(nn.Module):
    """Two separable convolutions around a shortcut."""

    def __init__(self, first: Unit, second: Unit, generator: Generator) -> None:
        super().__init__()
        self.first = SeparableConv(first.channels, first.own, first.shared, first.stride, generator)
        self.second = SeparableConv(second.channels, second.own, second.shared, second.stride, generator)
        self.shortcut = Shortcut(first.channels) if first.stride > 1 else nn.Identity()

    def forward(self, x: Tensor, semantic: tuple[Tensor, Tensor]) -> Tensor:
        # In place: batch norm's backward pass needs what went into it, not what came out.
        out = self.first(x, semantic[0]).relu_()
        out = self.second(out, semantic[1])
        return cast(Tensor, out.add_(self.shortcut(x)).relu_())


class WorkingMemory(Freezable):
    """One task's sub-network: stem, blocks and head, all of its own but for the semantic filters it is handed."""

    def __init__(self, units: list[Unit], classes: int, generator: Generator) -> None:
        super().__init__()
        stem, *rest = units
        self.stem = SeparableConv(stem.channels, stem.own, stem.shared, stem.stride, generator)
        self.blocks = nn.ModuleList(
            Block(first, second, generator) for first, second in zip(rest[::2], rest[1::2], strict=True)
        )
        self.head = Head(units[-1].own + units[-1].shared, classes, generator)

    def maps(self, x: Tensor, semantic: SemanticMemory) -> list[Tensor]:
        """The map that leaves each layer."""
        stem, *rest = semantic.filters
        maps = [self.stem(channels_last(x), stem).relu_()]
        for block, first, second in zip(self.blocks, rest[::2], rest[1::2], strict=True):
            maps.append(block(maps[-1], (first, second)))
        return maps[BLOCKS::BLOCKS]

    def features(self, x: Tensor, semantic: SemanticMemory) -> Tensor:
        """What the head sees: the last map, averaged over its pixels."""
        return self.maps(x, semantic)[-1].mean((2, 3))

    def forward(self, x: Tensor, semantic: SemanticMemory) -> Tensor:
        logits: Tensor = self.head(self.features(x, semantic))
        return logits

    def separable(self) -> Iterator[SeparableConv]:
        """The separable convolutions, in the order of the semantic memory's filter banks."""
        return (module for module in self.modules() if isinstance(module, SeparableConv))

    @torch.no_grad()
    def inherit(self, older: "WorkingMemory") -> None:
        """Start as another working memory is, but for the head."""
        inherited = {name: value for name, value in older.state_dict().items() if not name.startswith("head.")}
        self.load_state_dict(inherited, strict=False)

    @torch.no_grad()
    def keep_outputs(self, indices: list[int]) -> None:
        """Drop all other outputs of the head, weights and all."""
        head = Head(self.head.in_features, len(indices), Generator()).to(self.head.weight.device)
        head.weight.copy_(self.head.weight[indices])
        head.bias.copy_(self.head.bias[indices])
        self.head = head
        if self.frozen:
            self.freeze()


class SparcNet(nn.Module):
    """A net that grows by a working memory a task, with no number of tasks known beforehand.

    >>> net = SparcNet(channels=1, image_size=(8, 8), width=0.25)
    >>> for classes in (2, 3):
    ...     memory = net.add_task(classes)
    >>> net(torch.zeros(7, 1, 8, 8)).shape
    torch.Size([7, 5])
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 0.5,
        depth: int | None = None,
        shared: float = 0.5,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        if channels < 1:
            raise InputError(f"a picture has at least one channel, not {channels}")
        if min(image_size) < SMALLEST_SIDE:
            raise InputError(
                f"pictures of {image_size[0]} × {image_size[1]} are too small: {SMALLEST_SIDE} × {SMALLEST_SIDE} up"
            )
        depth = suitable_depth(image_size) if depth is None else depth
        self.units = layout(channels, layer_filters(width, depth), shared)
        self.generator = generator if generator is not None else torch.Generator().manual_seed(0)
        self.semantic = SemanticMemory(self.units, self.generator)
        self.working = nn.ModuleList()

    @property
    def task_sizes(self) -> list[int]:
        """How many classes each task has."""
        return [memory.head.out_features for memory in self.memories()]

    def memories(self) -> list[WorkingMemory]:
        return cast(list[WorkingMemory], list(self.working))

    def add_task(self, classes: int) -> WorkingMemory:
        """Grow by a working memory for a task of so many classes."""
        if classes < 1:
            raise InputError(f"a task has at least one class, not {classes}")
        memory = WorkingMemory(self.units, classes, self.generator).to(self.semantic.filters[0].device)
        self.working.append(memory)
        return memory

    def task_logits(self, x: Tensor, task: int) -> Tensor:
        """Task-IL: the logits of one task's classes, from its working memory alone."""
        logits: Tensor = self.working[task](x, self.semantic)
        return logits

    def forward(self, x: Tensor) -> Tensor:
        """Class-IL: the logits of every class, in the order in which the classes were learned."""
        return torch.cat([self.task_logits(x, task) for task in range(len(self.working))], dim=1)

    def parameter_counts(self) -> ParameterCounts:
        """
        >>> net = SparcNet()
        >>> for _ in range(5):
        ...     memory = net.add_task(20)
        >>> net.parameter_counts().total
        1039659
        """
        heads = [count_parameters(memory.head) for memory in self.memories()]
        tasks = [count_parameters(memory) - head for memory, head in zip(self.memories(), heads, strict=True)]
        return ParameterCounts(tuple(tasks), tuple(heads), count_parameters(self.semantic))

    def get_extra_state(self) -> Tensor:
        """What shape the net has grown to, so that its weights can be put back into a net that has not."""
        return torch.tensor([[memory.head.out_features, memory.frozen] for memory in self.memories()]).reshape(-1, 2)

    def set_extra_state(self, state: Tensor) -> None:
        for task, (classes, frozen) in enumerate(state.tolist()):
            memory = self.memories()[task] if task < len(self.working) else self.add_task(classes)
            if frozen:
                memory.freeze()
