"""How it learns: the contract in `method.py`, then one file a method, found by its name."""

from typing import TYPE_CHECKING

from sparc.lazy import lazily

if TYPE_CHECKING:
    from sparc.methods.method import Batch, Method, ParameterGroup, Phase
    from sparc.methods.recipe import Recipe
    from sparc.methods.registry import METHODS
    from sparc.methods.settings import Settings

__all__ = ["METHODS", "Batch", "Method", "ParameterGroup", "Phase", "Recipe", "Settings"]

__getattr__ = lazily(
    __name__,
    {
        **dict.fromkeys(("Batch", "Method", "ParameterGroup", "Phase"), "method"),
        "METHODS": "registry",
        "Recipe": "recipe",
        "Settings": "settings",
    },
)
