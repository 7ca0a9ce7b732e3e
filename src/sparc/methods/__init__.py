"""How it learns: the contract in `method.py`, then one file a method, found by its name."""

from sparc.discovery import Registry
from sparc.methods.method import Batch, Method, ParameterGroup, Phase, Settings
from sparc.methods.recipe import Recipe

METHODS: Registry[Method] = Registry(__name__, Method, "method")  # type: ignore[type-abstract]

__all__ = ["METHODS", "Batch", "Method", "ParameterGroup", "Phase", "Recipe", "Settings"]
