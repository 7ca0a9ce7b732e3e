"""Settings that were varied by themselves: which rows of a comparison make up a curve."""

import json
from collections.abc import Sequence

from sparc.report.comparison import Row, setting_text
from sparc.text import one_line

FEWEST = 3
"""Values of a setting that make a curve."""
LARGEST = 1e15
"""What lies beyond is no setting that anybody varies."""

Curve = Sequence[tuple[float, int]]
"""Values of a setting, which rise, each with the index of its row; rows differ in that setting alone."""


def sweeps(rows: Sequence[Row]) -> dict[str, list[Curve]]:
    """The curves of each setting that is a number, by its name."""
    names = dict.fromkeys(name for row in rows for name in row.settings)
    found = {name: _curves(rows, name) for name in names}
    return {name: curves for name, curves in found.items() if curves}


def curve_label(row: Row, setting: str) -> str:
    """What the label of a row says beside this setting."""
    varied = setting_text(one_line(setting), row.settings[setting])
    return ", ".join(part for part in row.label.split(", ") if part != varied)


def _curves(rows: Sequence[Row], name: str) -> list[Curve]:
    groups: dict[str, list[tuple[float, int]]] = {}
    for index, row in enumerate(rows):
        value = row.settings.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
            others = {other: value for other, value in row.settings.items() if other != name}
            groups.setdefault(json.dumps([row.method, others], sort_keys=True), []).append((float(value), index))
    return [sorted(group) for group in groups.values() if len(group) >= FEWEST]
