"""onnxruntime, told to keep to itself what it would tell its makers."""

import os
from importlib import import_module
from typing import Any


def onnxruntime() -> Any:
    """The package; without this its builds put a device's number and what was run into a file, and send it off."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    return import_module("onnxruntime")
