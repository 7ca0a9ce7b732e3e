"""Reading the dictionaries of arrays that Python 2 pickled, without running anything that a pickle asks for."""

import io
import pickle
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparc.data.archive import LARGEST
from sparc.errors import InputError


class StandIn:
    """Stands for a name of numpy's, and for what calling it would give: it records, and does nothing."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.arguments = arguments
        self.state: Any = None

    def __call__(self, *arguments: Any) -> object:
        return StandIn(self.name, arguments)

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Encode(StandIn):
    """Stands for `_codecs.encode`, by which Python 3 writes bytes into pickles that Python 2 can read."""

    __slots__ = ("room",)

    def __init__(self) -> None:
        super().__init__("encode")
        self.room = LARGEST

    def __call__(self, *arguments: Any) -> object:
        text, coding = arguments
        self.room -= len(text)  # so that one long text encoded again and again does not fill the memory
        if self.room < 0 or coding not in ("latin1", b"latin1"):
            raise pickle.UnpicklingError("it encodes more text than such a file holds")
        return text.encode("latin1")


_NUMPY = {(f"numpy{core}.multiarray", "_reconstruct") for core in (".core", "._core")} | {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
_OPCODES = [
    *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE),
    *(pickle.INT, pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG, pickle.LONG1),
    *(pickle.STRING, pickle.BINSTRING, pickle.SHORT_BINSTRING, pickle.BINBYTES, pickle.SHORT_BINBYTES),
    *(pickle.UNICODE, pickle.BINUNICODE, pickle.SHORT_BINUNICODE, pickle.BINBYTES8),
    *(pickle.EMPTY_DICT, pickle.DICT, pickle.SETITEM, pickle.SETITEMS),
    *(pickle.EMPTY_LIST, pickle.LIST, pickle.APPEND, pickle.APPENDS),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE, pickle.GET, pickle.BINGET, pickle.LONG_BINGET),
    *(pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.REDUCE, pickle.BUILD),
]


_KEYS = {pickle.SETITEM: slice(-2, -1), pickle.SETITEMS: slice(0, None, 2), pickle.DICT: slice(0, None, 2)}
"""Where an opcode that fills a dictionary finds the keys on the stack, which begins at the last mark."""


def _with_plain_keys(code: bytes, keys: slice) -> Callable[[Any], None]:
    """The opcode, refusing tuples as keys: a million of them, one in the other, overflow C's stack when hashed."""
    fill = pickle._Unpickler.dispatch[code[0]]

    def checked(reader: Any) -> None:
        if not all(isinstance(key, str | bytes | int) for key in reader.stack[keys]):
            raise pickle.UnpicklingError("a dictionary in it has keys other than texts and numbers")
        fill(reader)

    return checked


class Reader(pickle._Unpickler):
    """The parser written in Python: its memo is a dictionary, so that a forged index does not allocate gigabytes.

    It knows the opcodes that arrays, lists and dictionaries need and no others, and whatever those call or change is
    a stand-in.
    """

    dispatch = {code[0]: pickle._Unpickler.dispatch[code[0]] for code in _OPCODES} | {
        code[0]: _with_plain_keys(code, keys) for code, keys in _KEYS.items()
    }

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self.encode = Encode()

    def find_class(self, module: str, name: str) -> StandIn:
        if (module, name) == ("_codecs", "encode"):
            return self.encode
        if (module, name) in _NUMPY:
            return StandIn(name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which such a file has no need of")


def load(data: bytes, where: str) -> dict[Any, Any]:
    """The pickled dictionary; its arrays are stand-ins, for `array` to make real."""
    try:
        content = Reader(data).load()
    except (
        pickle.UnpicklingError,
        EOFError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        struct.error,
    ) as error:  # a pickle is a program: a broken one fails in whatever way a program can
        reason = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else str(error)
        raise _refused(where, reason) from error
    if not isinstance(content, dict):
        raise _refused(where, "it holds no dictionary")
    return content


def array(value: object, where: str) -> NDArray[np.uint8]:
    """The array of bytes that a stand-in has recorded."""
    match value:
        case StandIn(
            name="_reconstruct",
            state=(
                1,
                (int(rows), int(columns)),
                StandIn(name="dtype", arguments=(b"u1" | "u1", *_)),
                by_columns,
                bytes(raw),
            ),
        ) if rows >= 0 and rows * columns == len(raw):
            flat = np.frombuffer(raw, dtype=np.uint8)
            return flat.reshape(columns, rows).T if by_columns else flat.reshape(rows, columns)
    raise _refused(where, "its pictures are no table of bytes")


def _refused(where: str, reason: str) -> InputError:
    return InputError(f"{where} is not a pickle of arrays ({reason}): fetch the set again from its official place")
