"""Finding by name: a subclass with a `name`, in a module of a package, is registered by being there."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Generic, TypeVar

from sparc.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """The named subclasses of a base class among the modules of a package, imported when first asked for."""

    def __init__(self, package: str, base: type[T], kind: str) -> None:
        self.package = package
        self.base = base
        self.kind = kind

    @cached_property
    def classes(self) -> dict[str, type[T]]:
        found: dict[str, type[T]] = {}
        for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
            for value in vars(importlib.import_module(f"{self.package}.{module.name}")).values():
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
    """What to say of a name that is not there: the nearest ones that are."""
    known = sorted(known)
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    near = [each for each in near if _likeness(name, each) > _likeness(name, near[0]) - 0.1]
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return InputError(f"unknown {kind} “{name}”: {advice}")


def _likeness(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first.lower(), second).ratio()
