"""Settings that were varied by themselves: which rows of a comparison make up a curve."""

import json
from collections.abc import Sequence

from sparc.experiment.config import differing
from sparc.experiment.result import MOST
from sparc.report.comparison import Row

FEWEST = 3
"""Values of a setting that make a curve."""

Curve = Sequence[tuple[float, int]]
"""Values of a setting, which rise, each with the index of its row; rows differ in that setting alone."""


def sweeps(rows: Sequence[Row]) -> dict[str, list[Curve]]:
    """The curves of each setting that is a number, by its name."""
    found = {name: _curves(rows, name) for name in differing([row.settings for row in rows])}
    return {name: curves for name, curves in found.items() if curves}


def _curves(rows: Sequence[Row], name: str) -> list[Curve]:
    groups: dict[str, list[tuple[float, int]]] = {}
    for index, row in enumerate(rows):
        value = row.settings.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST:
            others = {other: value for other, value in row.settings.items() if other != name}
            groups.setdefault(json.dumps([row.method, others], sort_keys=True), []).append((float(value), index))
    return [sorted(group) for group in groups.values() if len({value for value, _ in group}) >= FEWEST]
