"""Flags from dataclasses, for every verb alike."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from sparc.cli.warn import warn
from sparc.errors import InputError

_TYROS_WIDTH = 129
"""Columns at which tyro breaks no word here; with one more it sets groups of options side by side."""
Form = TypeVar("Form")
ModelFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL", help="The model file.")]
AskedShare = Annotated[
    float,
    tyro.conf.arg(
        metavar="SHARE",
        help="Ask only the working memories that have this share of what is likely by patches, 1 for all of them: "
        "sooner where there are many memories and many pictures, and a few answers change.",
    ),
]


class Paths(tuple[Path, ...]):
    """As `tuple[Path, ...]`, to check one of which tyro would import typeguard, and with it asyncio and unittest."""

    __slots__ = ()


PicturePaths = Annotated[
    Paths,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="PATH …"),
    tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="PATH",
        instance_from_str=lambda words: Paths(map(Path, words)),
        is_instance=lambda instance: isinstance(instance, Paths),
        str_from_instance=lambda paths: [str(path) for path in paths],
    ),
]
BenchmarkName = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="BENCHMARK",
        help="A name from `sparc benchmarks`, a data set's, or a folder that holds one folder of pictures a class.",
    ),
]


def parse(form: type[Form], verb: str, description: str | None, arguments: list[str], further: str = "") -> Form:
    """An instance of the form, filled in from the flags; what is wrong with them is said in one sentence.

    `further` words, beside the verb, decide what help there is.
    """
    cli: Callable[..., Form] = partial(
        tyro.cli, form, prog=f"sparc {verb}", description=description, config=(tyro.conf.FlagCreatePairsOff,)
    )
    if not {"-h", "--help"}.isdisjoint(before_dashes(arguments)):
        from sparc.cli.help_text import rewrapped  # which nobody else has to wait for

        print(rewrapped(_help(cli), shutil.get_terminal_size().columns), flush=True)
        sys.exit(0)
    error_text = io.StringIO()
    try:
        with _captured(error_text):
            return cli(args=arguments)
    except SystemExit as end:
        for cause in _causes(end):
            if isinstance(cause, InputError):
                raise cause from None
        from sparc.cli.complaint import complaint

        why = complaint(error_text.getvalue(), arguments, _surplus(cli, arguments), _help(cli))
        raise InputError(f"{why} (see sparc {verb}{further} --help)") from None


def _help(cli: Callable[..., object]) -> str:
    """tyro's help text, asked for with `--help` alone, as tyro leaves out words that were given."""
    text = io.StringIO()
    with _captured(text), contextlib.suppress(SystemExit):
        cli(args=["--help"])
    return text.getvalue()


def _surplus(cli: Callable[..., Any], arguments: list[str]) -> list[str]:
    """Arguments that tyro has no use for, where nothing else is wrong with them."""
    with _captured(io.StringIO()), contextlib.suppress(SystemExit):
        return list(cli(args=arguments, return_unknown_args=True)[1])
    return []


@contextlib.contextmanager
def _captured(text: io.StringIO) -> Iterator[None]:
    """Captures tyro's output in `text`, without frames, as standard output is no terminal then."""
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text), _columns(_TYROS_WIDTH):
        yield


@contextlib.contextmanager
def _columns(count: int) -> Iterator[None]:
    """As if the terminal had so many."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(count)
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def before_dashes(arguments: Iterable[str]) -> list[str]:
    """The arguments before `--`, after which nothing is a flag."""
    return list(takewhile(lambda word: word != "--", arguments))


def with_new_flags(arguments: list[str], renamed: Mapping[str, str]) -> list[str]:
    """The same arguments with flags that had another name in earlier versions called as they are now.

    >>> with_new_flags(["--lr=1", "--epochs", "3"], {"batch": "batch_size"})
    ['--lr=1', '--epochs', '3']
    """
    flags = {f"--{old}".replace("_", "-"): f"--{new}".replace("_", "-") for old, new in renamed.items()}
    current = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if flag in flags:
            warn(f"{flag} is called {flags[flag]} now")
        current.append(flags.get(flag, flag) + equals + value)
    return current


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
