"""A model file, opened to be asked: through onnxruntime where that is there, so that nobody waits for torch."""

from pathlib import Path

from sparc.errors import InputError
from sparc.model_info import ModelInfo
from sparc.onnx_model import NoRuntimeError, of_file
from sparc.ready import ReadyModel
from sparc.stored_model import check_taught, read


def open_taught(path: Path, cache: bool = True, ask: float = 1.0) -> ReadyModel:
    """A model that knows at least one class; with a `cache`, its graph is kept for the next time.

    Where `ask` is below 1 only the working memories are asked, for each picture, that have this share of what is
    likely.
    """
    stored = read(path)
    check_taught(stored.info, path)
    if ask < 1:
        check_can_choose(stored.info, path)
    try:
        return of_file(stored, cache, ask)
    except NoRuntimeError as error:
        if ask < 1:
            raise InputError(f"--ask {ask:g} is for onnxruntime alone, and {error}: leave it out") from error
        from sparc.model_file import of_stored

        return of_stored(stored)


def check_ask(ask: float) -> None:
    if not 0 < ask <= 1:
        raise InputError(f"--ask {ask:g} is no share of what is likely: choose above 0, and up to 1")


def check_can_choose(info: ModelInfo, path: Path) -> None:
    """Refuse a model in which nothing tells whom to ask."""
    if sum(task.seen is not None for task in info.tasks) < 2:
        raise InputError(f"{path} has no working memories to choose from: leave --ask out")
    if not info.settings.describes_all:
        raise InputError(f"{path} has no features that all classes have in common to choose by: leave --ask out")
