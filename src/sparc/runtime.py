"""onnxruntime, told to keep to itself what it would tell its makers."""

import os
from importlib import import_module
from typing import Any


def imported(package: str) -> Any:
    """onnx, or onnxruntime, whose builds put a device's number and what was run into a file, to be sent off, unless
    they are told not to.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    return import_module(package)
