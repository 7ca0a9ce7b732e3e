"""The one kind of table that verbs print, and one that runs and models share."""

from collections.abc import Mapping

from rich import box
from rich.table import Table


def plain_table(title: str, first: str, *columns: str, words: bool = False) -> Table:
    """A table with a first column of names, and then numbers, or words."""
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=any((first, *columns)),
    )
    table.add_column(first, overflow="fold")  # a name that is cut off may be another's
    for column in columns:
        table.add_column(column, justify="left" if words else "right")
    return table


def parameters_table(owners: Mapping[str, int]) -> Table:
    """Who has how many of them."""
    table = plain_table("Parameters", "owner", "number")
    for owner, count in owners.items():
        table.add_row(owner, f"{count:,}")
    table.add_row("[bold]all", f"[bold]{sum(owners.values()):,}")
    return table
