"""The command `sparc`: finds the verb and turns what went wrong into one sentence.

Nothing heavy is imported before a verb asks for it, so that help comes at once.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from sparc.discovery import unknown
from sparc.errors import InputError

VERBS = {
    "learn": "teach a model the classes in a folder of pictures",
    "predict": "name what is in pictures",
    "inspect": "show what a model knows",
    "forget": "take classes out of a model for good",
    "export": "write a model as one ONNX file",
    "card": "write a model card",
    "demo": "draw folders of pictures to try things on",
    "run": "learn a stream of tasks and measure how much is kept",
    "benchmarks": "list the streams that can be learned",
    "methods": "list the methods that can learn them",
}

HELP = """\
usage: sparc VERB ...

Learns new classes for ever without keeping old pictures.

{verbs}

  sparc VERB --help    what a verb takes
  sparc --version

Try: sparc run seq-digits
"""


def main(arguments: Sequence[str] | None = None) -> int:
    verb, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        return _dispatch(verb, rest)
    except InputError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _complain(f"{error.strerror or error}{where}")
    except KeyboardInterrupt:
        return _complain("stopped", code=130)


def _dispatch(verb: str, rest: list[str]) -> int:
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
    code: int = importlib.import_module(f"sparc.cli.{verb}").main(rest)
    return code


def _complain(sentence: str, code: int = 2) -> int:
    print(f"sparc: {sentence}", file=sys.stderr)
    return code
