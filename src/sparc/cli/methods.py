"""`sparc methods`: list the methods that can learn a stream."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console

from sparc.cli.display import Display
from sparc.cli.parse import parse
from sparc.cli.threads import use_threads
from sparc.methods import METHODS, Method
from sparc.report.plain_table import plain_table
from sparc.train import count_kept, measure_work

SIZES = [20] * 5
"""Seq-CIFAR100 in 5 tasks, on which the paper counts parameters."""
WIDE = 110
"""Columns of a terminal that has room for titles, which are the names in other letters."""
NARROW = 100
"""Columns of one that has no room for bytes beside numbers."""
WIDE_WITH_COSTS = 150
"""Columns of one that has room for all there is; costs take the place of papers in others."""
LEGEND = {
    "buffer": "pictures kept, unless --buffer-size says otherwise",
    "told": "what it must be told: the task, at test time, so there is no Class-IL accuracy; or how many tasks or "
    "classes there will be",
    "params": "numbers kept after Seq-CIFAR100 in 5 tasks, copies and masks included; – where that "
    "follows from the pictures",
    "bytes": "of these numbers, of which some are in double precision and masks a byte each",
    "passes": "work of a training step of a later task, forward and backward, in passes of its batch through the net",
}


@dataclass(frozen=True)
class Methods:
    costs: bool = False
    """Count parameters and passes as well, on a few pictures; takes some minutes for all."""
    json: bool = False
    """Print the list as JSON instead of a table."""


def main(arguments: list[str]) -> int:
    given = parse(Methods, "methods", __doc__, arguments)
    listed = [about(method) for method in METHODS.classes.values()]
    if given.costs:
        use_threads(1)
        with Display("methods") as display:
            for number, each in enumerate(listed):
                display.loading(f"counting {each['title']}", number, len(listed))
                each |= costs_of(METHODS.find(each["name"]))
    if given.json:
        print(json.dumps(listed))
        return 0
    console = Console()
    rows = [cells(each) for each in listed]
    narrow = console.width < (WIDE_WITH_COSTS if given.costs else WIDE)
    left_out = {"method", "from"} if narrow and given.costs else {"method"} if narrow else set()
    if console.width < NARROW:
        left_out |= {"bytes"}
    columns = [column for column in rows[0] if column not in left_out]
    table = plain_table("Methods", *columns, words=True)
    table.padding = (0, 1, 0, 0)
    for column in table.columns:
        column.no_wrap = column.header != ("told" if "from" in left_out else "from")
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    console.print(table)
    for name, meaning in LEGEND.items():
        if name in columns:
            console.print(f"{name}: {meaning}", highlight=False)
    if not given.costs:
        console.print("parameters and passes of each: sparc methods --costs", highlight=False)
    console.print("what one does, and its settings: sparc run --method NAME --help", highlight=False)
    return 0


def cells(method: dict[str, Any]) -> dict[str, str]:
    told = [*(["task"] if method["needs_task_id"] else []), *(f"number of {what}" for what in method["knows_ahead"])]
    row = {
        "name": method["name"],
        "method": method["title"],
        "kind": method["kind"],
        "buffer": "–" if method["buffer_size"] is None else str(method["buffer_size"]),
        "told": ", ".join(told) or "–",
        "from": method["paper"],
    }
    if "passes" in method:
        row["params"], row["bytes"] = "–", "–"
        if method["parameters"] is not None:
            row["params"] = f"{method['parameters'] / 1e6:.2f} M"
            row["bytes"] = f"{method['bytes'] / 1e6:.1f} MB"
        row["passes"] = "{forward:.3g}F {backward:.3g}B".format(**method["passes"])
    return row


def about(method: type[Method]) -> dict[str, Any]:
    settings = method.Settings()
    return {
        "name": method.name,
        "title": method.title,
        "kind": method.kind,
        "summary": method.summary,
        "paper": method.paper,
        "needs_task_id": method.needs_task_id,
        "knows_ahead": sorted(method.knows_ahead),
        "sees_old_tasks": method.sees_old_tasks,
        "buffer_size": getattr(settings, "buffer_size", None),
        "settings": asdict(settings),
        "recipe": asdict(method.recipe),
    }


def costs_of(method: type[Method]) -> dict[str, Any]:
    """Parameters at the method's own width; passes, which do not depend on it, with a narrow net."""
    settings = method.Settings()
    narrow: Any = replace(settings, **{"width": 1 / 8}) if hasattr(settings, "width") else settings
    work = measure_work(method, settings=narrow, image_size=(16, 16))
    passes = {"forward": work.forward, "backward": work.backward}
    if method.keeps_by_pictures:
        return {"parameters": None, "bytes": None, "passes": passes}
    kept = count_kept(method, SIZES, settings)
    return {"parameters": kept.numbers, "bytes": kept.bytes, "passes": passes}
