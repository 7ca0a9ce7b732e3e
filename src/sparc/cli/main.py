"""The command `sparc`: finds the verb and turns what went wrong into one sentence.

Nothing heavy is imported before a verb asks for it, so that help comes at once.
"""

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence

from sparc.cli.warn import warn
from sparc.discovery import unknown
from sparc.errors import InputError

VERBS = {
    "learn": "teach a model the classes in a folder of pictures",
    "predict": "name what is in pictures",
    "test": "count how many pictures a model gets right",
    "inspect": "show what a model knows",
    "rename": "call a class of a model by another name",
    "forget": "take classes out of a model for good",
    "export": "write a model as one ONNX file",
    "card": "write a model card",
    "serve": "open a page on which anyone teaches a model and asks it",
    "demo": "draw folders of pictures to try things on",
    "run": "learn a stream of tasks and measure how much is kept",
    "compare": "run several methods, as far as they are missing, and compare them",
    "runs": "list runs: done, part-way, failed",
    "report": "make a page, figures or tables of runs",
    "reproduce": "make the paper's tables and figures again, beside its numbers",
    "benchmarks": "list the streams that can be learned",
    "methods": "list the methods that can learn them",
}

HELP = """\
usage: sparc VERB ...

Learns new classes for ever without keeping old pictures.

{verbs}

  sparc VERB --help    what a verb takes
  sparc --version

Try: sparc demo pictures, which draws some to learn from
"""

READER_GONE = 141
"""The exit code when whoever read our output has gone: 128 + SIGPIPE, as shells report it. To some verbs 1 is another
thing."""


def main(arguments: Sequence[str] | None = None) -> int:
    verb, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if sys.stdout is None:  # as it is where whoever called us has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for as long as we run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter shows a question mark
    try:
        code = _dispatch(verb, rest)
        sys.stdout.flush()
        return code
    except InputError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except SystemExit as error:  # rich has done the same
        if isinstance(error.__context__, BrokenPipeError):
            return READER_GONE
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _complain(f"{error.strerror or error}{where}")
    except KeyboardInterrupt:
        return _complain("stopped", code=130)


def _dispatch(verb: str, rest: list[str]) -> int:
    if verb == "help" and rest:
        verb, rest = rest[0], ["--help"]
    if verb in ("-h", "--help", "help"):
        width = max(map(len, VERBS))
        print(HELP.format(verbs="\n".join(f"  {name:<{width}}  {what}" for name, what in VERBS.items())), end="")
        return 0
    if verb == "--version":
        from sparc import __version__

        print(f"sparc {__version__}")
        return 0
    if verb not in VERBS:
        raise unknown("verb", verb, VERBS)
    with _stopping_at_once():
        module = importlib.import_module(f"sparc.cli.{verb}")
    code: int = module.main(rest)
    return code


@contextlib.contextmanager
def _stopping_at_once() -> Iterator[None]:
    """Ctrl-C ends the process there and then: an exception in the middle of an import can come out as any other."""

    def stop(*_: object) -> None:
        os._exit(_complain("stopped", code=130))

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _complain(sentence: str, code: int = 2) -> int:
    warn(sentence)
    return code
