"""All that is known of a model beside its weights: its make-up, and what it was taught."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sparc.calibration import Check, known_strangeness, limit, temperature
from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_input import InputShape
from sparc.nn.eras import ERAS, TODAY, Era
from sparc.nn.layout import Unit, layer_filters, layout, pooled_features
from sparc.nn.lite0 import FEATURES as START_FEATURES
from sparc.nn.roll import Portion, Roll, Weights

if TYPE_CHECKING:
    from torch import Generator

    from sparc.nn.chorus import ChorusNet


def is_number(name: str) -> bool:
    """Whether a class goes by a whole number.

    >>> is_number("-7"), is_number("7a")
    (True, False)
    """
    return re.fullmatch("-?[0-9]{1,19}", name) is not None


@dataclass(frozen=True)
class LearnedTask:
    """What is known of one portion of classes, and of its working memory if it has one."""

    name: str
    classes: tuple[str, ...]
    """Some of them may have been taught before."""
    pictures: tuple[int, ...]
    """Of each class, learned from."""
    held_out: int
    """Pictures kept back from training for validation."""
    accuracy_in_task: float | None
    """On the pictures held out, in percent, among this task's classes."""
    accuracy_in_all: float | None
    """The same among all classes known by then."""
    learned: str
    """When, in UTC."""
    epochs: int
    seconds: float
    share_in_semantic: float
    """How much of the semantic memory comes from this task."""
    taught_semantic: bool = False
    """The semantic memory was trained along with this task, instead of its filters being mixed in afterwards."""
    seen: int | None = None
    """From how many pictures its working memory has learned, with those of older ones that it has started from; None
    where it has none, and its classes are told by statistics alone."""
    check: Check | None = None
    """What the pictures held out have said of probabilities and strangeness."""
    weights: tuple[float, float, float] | None = None
    """How much heads and statistics count where the pictures held out are told apart best, as `Weights` has it."""

    def __post_init__(self) -> None:
        if not self.classes or len(self.classes) != len(self.pictures):
            raise ValueError("a task should have classes, and a number of pictures for each")
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("a task should have every class once")
        if self.seen is not None and self.seen < 1:
            raise ValueError("a working memory should have learned from pictures")
        if self.weights is not None and not all(0.001 <= weight <= 1000 for weight in self.weights):
            raise ValueError("its weights should lie between 0.001 and 1000")


@dataclass(frozen=True)
class ModelInfo:
    """All that is known of a net, beside its weights."""

    shape: InputShape
    settings: ChorusSettings
    mean: tuple[float, ...]
    std: tuple[float, ...]
    tasks: tuple[LearnedTask, ...] = ()
    made_with: str = ""
    seed: int = 0
    flip: bool = True
    """Mirror images are learned as well."""
    numbered: bool = False
    """The classes' names are whole numbers, and are given back as such."""
    start_reason: str = ""
    """Why it was made with its start, or from scratch."""
    era: int = TODAY
    """In which it was made, and whose way to describe classes it keeps."""

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.std) == self.shape.channels or not all(value > 0 for value in self.std):
            raise ValueError("there should be a mean and a positive deviation for every channel")
        if self.settings.depth is None:
            raise ValueError("it should say how deep its net is")
        if self.era not in ERAS:
            raise ValueError("it should describe classes in a way that there was")
        if not self.settings.describes_all and any(task.seen is None for task in self.tasks):
            raise ValueError("without common features its tasks should have working memories")
        if not self.settings.describes_all and any(check.strangeness for check in self.checks):
            raise ValueError("without common features no picture should be strange")
        if len({task.name for task in self.tasks}) < len(self.tasks):
            raise ValueError("its tasks should have names of their own")
        if self.numbered and not all(map(is_number, self.classes)):
            raise ValueError("its classes should be numbers")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Every class once, in the order in which they were first learned."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in task.classes))

    @property
    def checks(self) -> list[Check]:
        return [task.check for task in self.tasks if task.check is not None]

    @cached_property
    def temperature(self) -> float:
        """What scores are divided by before they become probabilities."""
        return temperature(self.checks)

    @cached_property
    def known_strangeness(self) -> list[float]:
        """Of pictures of known classes that were held out, in rising order."""
        return known_strangeness(self.checks, len(self.classes))

    def limit(self, share: float) -> float | None:
        """How strange a picture may be, so that this share of pictures of known classes pass, if that is known."""
        return limit(self.known_strangeness, share)

    def labels(self, task: LearnedTask) -> list[int]:
        """Which of all classes a task's are."""
        return [self._index[name] for name in task.classes]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: label for label, name in enumerate(self.classes)}

    @cached_property
    def roll(self) -> Roll:
        """Who has a say about which classes."""
        portions = [
            Portion(tuple(self.labels(task)), task.seen, None if task.weights is None else Weights(*task.weights))
            for task in self.tasks
        ]
        return Roll(portions, self.settings.statistics > 0, self.settings.describes_all)

    @cached_property
    def units(self) -> list[Unit]:
        """The separable convolutions of each working memory."""
        assert self.settings.depth is not None
        filters = layer_filters(self.settings.width, self.settings.depth)
        return layout(self.shape.channels, filters, self.settings.shared)

    @property
    def common_features(self) -> int:
        """How many of them there are that all classes have in common."""
        if self.settings.start != "nothing":
            return START_FEATURES
        return self.its_era.patches.features if self.settings.patches else 0

    @property
    def common_kept(self) -> int:
        """The same after projection."""
        if self.settings.start != "nothing":
            return START_FEATURES
        return min(self.its_era.patches.features, self.settings.patches)

    @property
    def its_era(self) -> Era:
        """How classes are described in it."""
        return ERAS[self.era]

    def new_net(self, generator: "Generator | None" = None) -> "ChorusNet":
        """A net that has learned none of the tasks."""
        from sparc.methods.sparc.chorus import new_net  # which is torch's: nobody else has to wait for that

        return new_net(self.settings, self.shape.channels, self.shape.image_size, self.flip, generator, self.its_era)

    def grown_net(self) -> "ChorusNet":
        """A net that has room for all that the tasks have taught, and nothing in it but in which order."""
        net = self.new_net()
        for portion in self.roll.portions:
            if portion.seen is None:
                net.add_portion(len(portion.classes), portion.classes)
            else:
                net.add_task(len(portion.classes), portion.classes, portion.seen, portion.weights).freeze()
        for voice, known in zip(net.all_voices(), net.known_classes(), strict=True):
            voice.gaussians.grow(len(known))
        return net

    def fewest_bytes(self) -> int:
        """How large the weights of all tasks are at the least, before anything is allocated."""
        units = self.units
        trained = [task for task in self.tasks if task.seen is not None]
        outputs = sum(len(task.classes) for task in trained) * (units[-1].own + units[-1].shared)
        own = sum(unit.channels * (unit.shared + len(trained) * (9 + unit.own)) for unit in units)
        # A class is known to its own working memory at the least, and every working memory has a covariance.
        known = sum(len(task.classes) for task in trained)
        statistics = [
            (min(pooled_features(units), self.settings.statistics), known, len(trained)),
            (self.common_kept, len(self.classes), 1),
        ]
        described = sum(
            features * classes + scatters * features * (features + 1) // 2 for features, classes, scatters in statistics
        )
        return 4 * (outputs + own) + 8 * described
