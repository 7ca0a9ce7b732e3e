"""What methods share that answer by something which is worked out from their state once, and not for every batch."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar

from torch import Tensor

from sparc.methods.method import Method

P = TypeVar("P")


class Prepared(Method, Generic[P]):
    """It prepares its answers when it is asked for the first time, and anew after whatever may have changed it."""

    prepared: P | None = None

    @abstractmethod
    def prepare(self) -> P:
        """What follows from the state alone, such as inverse covariances, or a net with its batch norms folded."""

    def ready(self) -> P:
        if self.prepared is None:
            self.prepared = self.prepare()
        return self.prepared

    def train(self, mode: bool = True) -> Self:
        self.prepared = None  # whatever comes now may change the weights
        return super().train(mode)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        self.prepared = None
        return super().load_state_dict(state_dict, strict, assign)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.prepared = None  # or move them to another device
        moved: Self = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return moved
