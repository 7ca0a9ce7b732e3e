"""Axes: where values lie along one, and at which of them it is marked."""

import math
from collections.abc import Callable
from dataclasses import dataclass

MAX_TICKS = 10
SMALLEST = 1e-300
"""What lies closer together is taken to be the same: it could not be divided any more."""


@dataclass(frozen=True)
class Axis:
    title: str
    low: float
    high: float
    log: bool = False
    integers: bool = False
    """Whether only whole numbers are marked."""
    format: Callable[[float], str] = "{:g}".format
    values: tuple[float, ...] = ()
    """What is marked if there is room for it, instead of round numbers."""

    def fraction(self, value: float) -> float:
        """The position of a value along the axis, from 0 to 1; halfway where low and high are the same."""
        if self.log and value <= 0:
            return -math.inf
        low, high, value = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return (value - low) / (high - low) if high > low else 0.5

    def ticks(self) -> list[float]:
        """Round numbers at which the axis is marked.

        >>> Axis("", 0, 100).ticks(), Axis("", 0.04, 3, log=True).ticks()
        ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
        >>> Axis("", 1, 20, integers=True).ticks()
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0]
        """
        if self.high - self.low < SMALLEST:
            return [self.low]
        if self.integers:
            first, last = math.ceil(self.low), math.floor(self.high)
            step = max(1, math.ceil((last - first + 1) / MAX_TICKS))
            return [float(value) for value in range(first, last + 1, step)]
        values = self._powers() if self.log else self._steps()
        return [value for value in values if -1e-9 <= self.fraction(value) <= 1 + 1e-9]

    def _powers(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = math.ceil(len(powers) / MAX_TICKS)
        steps = (1, 2, 5) if len(powers) <= 4 else (1,)
        return [float(f"{step}e{power}") for power in powers[::every] for step in steps]

    def _steps(self) -> list[float]:
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * 0.999)
        first = math.ceil(self.low / step)
        # 0.1 · 3 is not quite 0.3: written down and read again it is.
        return [float(f"{step * multiple:.12g}") for multiple in range(first, first + 7)]
