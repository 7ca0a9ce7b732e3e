"""A model file, opened to be asked: through onnxruntime where that is there, so that nobody waits for torch."""

from pathlib import Path

from sparc.onnx_model import NoRuntimeError, of_file
from sparc.ready import ReadyModel
from sparc.stored_model import check_taught, read


def open_taught(path: Path, cache: bool = True) -> ReadyModel:
    """A model that knows at least one class; with a `cache`, its graph is kept for the next time."""
    stored = read(path)
    check_taught(stored.info, path)
    try:
        return of_file(stored, cache)
    except NoRuntimeError:
        from sparc.model_file import of_stored

        return of_stored(stored)
