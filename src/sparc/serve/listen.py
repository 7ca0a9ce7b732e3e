"""Listening: a socket of our own, so that a port in use is said kindly, and connections that say nothing are closed."""

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from sparc.errors import InputError

HEADER_SECONDS = 15.0
"""In which the head of a request has to come."""
CONNECTIONS = 512
"""At a time; more are told to come again."""
CLOSING = 3
"""Seconds that answers which are under way have when the server ends."""


class PatientProtocol(H11Protocol):
    """Closes a connection on which no request comes, however slowly its beginning trickles in."""

    waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def handle_events(self) -> None:
        super().handle_events()
        if self.waiting is not None and self.cycle is not None and not self.cycle.response_complete:
            self.waiting.cancel()
            self.waiting = None

    def on_response_complete(self) -> None:
        self._await_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
        self.waiting = self.loop.call_later(HEADER_SECONDS, self.transport.close)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, or one sentence on why there is none."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port} is out of range: choose from 1 to 65535, or 0 for one that is free")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except socket.gaierror as error:
        raise InputError(f"--host {host} is no address of this machine: give one, such as 0.0.0.0") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is in use: give another with --port, or --port 0 for one that is free"
            ) from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"--host {host} is no address of this machine: give one, such as 0.0.0.0") from error
        if error.errno == errno.EACCES:
            raise InputError(f"port {port} may not be used ({error.strerror}): give one from 1024 on") from error
        raise


def url_of(listening: socket.socket, host: str) -> str:
    port = listening.getsockname()[1]
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()


def new_server(app: ASGIApp, ready: Callable[[], None] = lambda: None) -> uvicorn.Server:
    settings: dict[str, Any] = {
        "http": PatientProtocol,
        "ws": "none",
        "lifespan": "on",
        "log_level": "critical",  # what goes wrong is told by the app; that a request was cut off at the end, by nobody
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "limit_concurrency": CONNECTIONS,
        "timeout_keep_alive": 10,
        "timeout_graceful_shutdown": CLOSING,
    }
    return _Server(uvicorn.Config(app, **settings), ready)


def listen(app: ASGIApp, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Until a signal comes, which is raised again when all has been put away."""
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # what it warns of is told to whoever has sent it
    server = new_server(app, ready)
    server.run(sockets=[listening])
    sys.stdout.flush()
    if server.started:  # so it was Ctrl-C, which the loop has swallowed
        raise KeyboardInterrupt
