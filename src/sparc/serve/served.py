"""The model that is served: many read it while somebody, here or elsewhere, replaces its file."""

import asyncio
import threading
from pathlib import Path

from sparc.errors import InputError
from sparc.model_file import Model, load
from sparc.serve.refused import RefusedError

Identity = tuple[int, int, int]
"""Of a file that is replaced and never changed: its number, when it was written, its size."""
UNSEEN: Identity = (-1, -1, -1)
"""Of a file that cannot be looked at."""


class Served:
    """A model file as it was last read; None where there is none yet."""

    def __init__(self, path: Path) -> None:
        """What is wrong with the file is said at once; later on, by `trouble`."""
        self.path = path
        self.model: Model | None = None
        self.trouble = ""
        """Why the file, which somebody has changed since, is not what is served."""
        self.seen: Identity | None = None
        self._reading = threading.Lock()
        self.read()
        if self.trouble:
            raise InputError(self.trouble)

    @property
    def name(self) -> str:
        return self.path.name

    def taught(self) -> Model:
        """The model, if it knows a class."""
        if self.model is None or not self.model.info.tasks:
            raise RefusedError(409, f"{self.name} knows no class: teach it some first")
        return self.model

    async def current(self) -> None:
        """Read the file if somebody has replaced it; until that is done, whoever else asks is answered by the old."""
        if self._identity() != self.seen and not self._reading.locked():
            await asyncio.to_thread(self.read)

    def read(self) -> None:
        """Read the file, if it is not the one that was read last."""
        with self._reading:
            found = self._identity()
            if found == self.seen and not self.trouble:
                return
            try:
                model = None if found is None else load(self.path)
                if model is not None:
                    model.info.shape.check_takes_pictures(self.path)
                    if model.info.tasks:
                        _ = model.ready  # made now, while nobody waits for an answer
            except InputError as error:
                self.trouble = str(error)
            except OSError as error:
                self.trouble = f"{self.path} cannot be read ({error.strerror}): see who may look at it"
            else:
                self.model, self.trouble = model, ""
            self.seen = found

    def _identity(self) -> Identity | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return UNSEEN
        return status.st_ino, status.st_mtime_ns, status.st_size
