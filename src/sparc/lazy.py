"""Packages that import a part of themselves when it is first asked for, so that who needs little waits little."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`: for each name the module that defines it, and behind a colon what it is called there.

    >>> get = lazily("sparc", {"a_line": "text:one_line"})
    >>> get("a_line")("a")
    'a'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, called = homes[name].partition(":")
        value = getattr(import_module(f"{package}.{module}"), called or name)
        setattr(sys.modules[package], name, value)
        return value

    return get
