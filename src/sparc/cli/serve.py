"""`sparc serve`: a page, and an API, on which anyone teaches a model and asks it."""

import os
import secrets
import sys
import threading
import webbrowser
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import quote

from sparc.cli.parse import ModelFile, parse
from sparc.cli.threads import use_threads
from sparc.cli.warn import warn
from sparc.errors import InputError
from sparc.files import check_output
from sparc.text import one_line

PORT = 8710


@dataclass(frozen=True)
class Serve:
    model: ModelFile
    """The model file; the first task that is taught makes it if it is not there."""
    port: int = PORT
    """Where to listen; 0 takes one that is free."""
    host: str = "127.0.0.1"
    """The address to listen at, which only this machine reaches; with another one, such as 0.0.0.0, whoever asks needs
    a token."""
    token: str | None = None
    """What whoever asks has to know; made up and printed where it is needed and not given."""
    browser: bool = True
    """Open the page, where there is a screen; --no-browser does not."""
    threads: int = 1
    """Processor threads of whoever answers, and of whoever learns."""

    def __post_init__(self) -> None:
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and len(self.token) >= 8):
            raise InputError("--token is too short, or no plain letters: give at least eight, or leave it out")


def main(arguments: list[str]) -> int:
    given = parse(Serve, "serve", __doc__, arguments)
    try:
        for name in ("python_multipart", "starlette", "uvicorn"):
            import_module(name)
    except ImportError as error:
        raise InputError(
            "sparc serve needs starlette, uvicorn and python-multipart: pip install 'sparc-cl[serve]'"
        ) from error
    from sparc.serve.app import Server
    from sparc.serve.guard import is_loopback
    from sparc.serve.listen import bound, listen, url_of

    use_threads(given.threads)
    check_output(given.model)
    token = given.token
    if token is None and not is_loopback(given.host):
        token = secrets.token_urlsafe(16)
    with bound(given.host, given.port) as listening:
        server = Server(given.model, given.host, token, given.threads)
        page = url_of(listening, given.host) + ("" if token is None else f"/?token={quote(token, safe='')}")

        def ready() -> None:
            what = "" if given.model.exists() else ", which the first task that you teach will make"
            print(one_line(f"{given.model}{what}: {page}"), flush=True)
            warn("Ctrl-C ends it")
            if given.browser and _has_screen():
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

        listen(server.app(), listening, ready)
    return 0


def _has_screen() -> bool:
    """Where there is none, a browser for terminals would take over ours."""
    return sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
