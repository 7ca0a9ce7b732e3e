"""Damages files at random and feeds them to their readers, in a process of its own so that its memory can be told.

    python tests/fuzz.py model|picture|result FILE[,FILE…] TIMES

Prints what happened as JSON; anything but an `InputError` is a traceback and a failure.
"""

import json
import random
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from sparc.errors import InputError

PIECES = [b"9", b"[", b'"', b"-", b"e99", b"\xff\xff", bytes(8), b"\x7f\xff\xff\xff"]


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, cut out or put in, most of them near the beginning, where files describe themselves."""
    content = bytearray(whole)
    for _ in range(chance.choice([1, 1, 2, 5, 50])):
        place = chance.randrange(max(1, min(len(content), 2048) if chance.random() < 0.6 else len(content)))
        kind = chance.randrange(5)
        if kind == 0:
            content[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del content[place : place + chance.randrange(1, 20)]
        elif kind == 2:
            content[place:place] = chance.choice(PIECES)
        elif kind == 3:
            del content[place:]
        else:
            content[place : place + 1] = bytes([(content[place : place + 1] or b"\0")[0] ^ 1 << chance.randrange(8)])
    return bytes(content)


def model_reader(folder: Path) -> Callable[[bytes], object]:
    from sparc.model_file import load

    def read(content: bytes) -> object:
        (folder / "damaged.sparc").write_bytes(content)
        return load(folder / "damaged.sparc")

    return read


def picture_reader(folder: Path) -> Callable[[bytes], object]:
    from sparc.data.pictures import decode

    return lambda content: decode(content, "damaged", 32)


def result_reader(folder: Path) -> Callable[[bytes], object]:
    from sparc.experiment import find_runs
    from sparc.report.page import page
    from sparc.report.study import studies

    def read(content: bytes) -> object:
        (folder / "result.json").write_bytes(content)
        return page(studies(find_runs([folder])))

    return read


def main(kind: str, files: str, times: str) -> None:
    paths = [Path(name) for name in files.split(",")]
    folder = paths[0].parent
    readers = {"model": model_reader, "picture": picture_reader, "result": result_reader}
    read = readers[kind](folder)
    contents = [path.read_bytes() for path in paths]
    chance = random.Random(0)
    refused = 0
    for number in range(int(times)):
        try:
            read(damaged(contents[number % len(contents)], chance))
        except InputError:
            refused += 1
    print(json.dumps({"tried": int(times), "refused": refused, "megabytes": peak() / 1024}))


def peak() -> int:
    """KiB. `ru_maxrss` also holds what the process had before it became this program, so Linux is asked otherwise."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = (int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return next(found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main(*sys.argv[1:])
