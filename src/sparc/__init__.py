"""SPARC: an image classifier that learns new classes for ever without keeping old pictures."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("sparc-cl")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
