"""Finding by name: a subclass with a `name`, in a module of a package, is registered by being there."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Generic, TypeVar

from sparc.errors import InputError

T = TypeVar("T")
NEAR = 0.65
"""How alike a name must be to be taken for a slip of the pen."""


class Registry(Generic[T]):
    """The named subclasses of a base class in a package and its sub-packages, imported when first asked for."""

    def __init__(self, package: str, base: type[T], kind: str) -> None:
        self.package = package
        self.base = base
        self.kind = kind

    @cached_property
    def classes(self) -> dict[str, type[T]]:
        found: dict[str, type[T]] = {}
        path = importlib.import_module(self.package).__path__
        for module in pkgutil.walk_packages(path, f"{self.package}."):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, self.base) and "name" in vars(value):
                    name: Any = vars(value)["name"]
                    assert found.get(name, value) is value, f"two go by the name {name}"
                    found[name] = value
        return dict(sorted(found.items()))

    def find(self, name: str) -> type[T]:
        if name not in self.classes:
            raise unknown(self.kind, name, self.classes)
        return self.classes[name]


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """What to say of a name that is not there."""
    return InputError(f"unknown {kind} “{name}”: {nearest(name, known)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Of names that are there, those that this one may have been meant to be, or all.

    >>> nearest("derpp", ["er", "der++", "lwf"]), nearest("nispa", ["sgd", "sparc"]), nearest("cat", [])
    ('did you mean der++?', 'there are sgd, sparc', 'there are none')
    """
    known = sorted(known)
    return did_you_mean(name, known) or f"there are {', '.join(known) or 'none'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Asks for at most three of these names, the most alike first; nothing where none is alike.

    >>> did_you_mean("--epochz", ["--epochs", "--lr"]), did_you_mean("--task", ["--threads"])
    ('did you mean --epochs?', '')
    """
    likeness = {each: _likeness(name, each) for each in sorted(known)}
    best = max(likeness.values(), default=0.0)
    alike = [each for each in likeness if likeness[each] >= max(NEAR, best - 0.1)]
    meant = sorted(alike, key=likeness.__getitem__, reverse=True)[:3]
    return f"did you mean {' or '.join(meant)}?" if meant else ""


def _likeness(first: str, second: str) -> float:
    """From 0 to 1; a plus is often spelled as a p, and the dashes of flags say nothing."""
    one, other = (each.lower().lstrip("-").replace("+", "p") for each in (first, second))
    return difflib.SequenceMatcher(None, one, other).ratio()
