"""SPARC: an image classifier that learns new classes for ever without keeping old pictures."""


def __getattr__(name: str) -> str:
    """`__version__`, when it is asked for: to look it up takes longer than all else that is imported here."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("sparc-cl")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"
