"""Dataclasses from JSON, with every type checked: what comes from a file is not believed."""

import math
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin

T = TypeVar("T")


def build(kind: type[T], value: object) -> T:
    """An instance of a dataclass of plain fields; ValueError says which field is wrong.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: float
    ...     tags: tuple[str, ...] = ()
    >>> build(Point, {"x": 1, "tags": ["a"]})
    Point(x=1.0, tags=('a',))
    >>> build(Point, {"x": "1"})
    Traceback (most recent call last):
    ValueError: x should be a number
    """
    result: T = _build(kind, value, "it")
    return result


def with_new_names(kind: type, values: object, where: str = "it") -> dict[str, Any]:
    """An object as JSON has it, with a dataclass's fields called as they are now, not as `renamed` says they were."""
    if not isinstance(values, dict):
        raise ValueError(f"{where} should be an object")
    renamed: Any = getattr(kind, "renamed", {})
    return {renamed.get(name, name): value for name, value in values.items()}


def _build(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (tuple, list):
        any_length = origin is list or Ellipsis in inner
        if not isinstance(value, list) or not (any_length or len(value) == len(inner)):
            raise ValueError(f"{where} should be a list" + ("" if any_length else f" of {len(inner)}"))
        kinds = [inner[0]] * len(value) if any_length else inner
        return origin(_build(each, part, where) for each, part in zip(kinds, value, strict=True))
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where} should be an object")
        return {name: _build(inner[1], part, where) for name, part in value.items()}
    if origin in (types.UnionType, typing.Union):
        if value is None and types.NoneType in inner:
            return None
        (kind,) = (each for each in inner if each is not types.NoneType)
        return _build(kind, value, where)
    if origin is typing.Literal:
        if value not in inner:
            raise ValueError(f"{where} should be {' or '.join(map(str, inner))}")
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass
        raise ValueError(f"{where} should be a finite number")
    if kind is float or not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        wanted = {float: "a number", int: "a whole number", str: "text", bool: "true or false"}
        raise ValueError(f"{where} should be {wanted.get(kind, kind)}")
    return value


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    value = with_new_names(kind, value, where)
    hints = typing.get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    for name in value:
        if name not in known:
            raise ValueError(f"{str(name)[:50]!r} is not known")
    for name, field in known.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{name} is missing")
    return kind(**{name: _build(hints[name], part, name) for name, part in value.items()})
