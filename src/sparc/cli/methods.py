"""`sparc methods`: list the methods that can learn a stream."""

from rich.console import Console

from sparc.cli.parse import no_flags, parse
from sparc.methods import METHODS
from sparc.report.tables import plain_table


def main(arguments: list[str]) -> int:
    parse(no_flags, "methods", __doc__, arguments)
    table = plain_table("Methods", "name", "method", "learning rate", "epochs", "from", words=True)
    for method in METHODS.classes.values():
        recipe = method.recipe
        table.add_row(
            method.name, method.title, f"{recipe.lr:g} ({recipe.optimizer})", str(recipe.epochs), method.paper
        )
    Console().print(table)
    return 0
