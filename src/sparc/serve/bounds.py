"""How much may be sent, and how slowly: bytes are counted as they come, before anybody looks at them."""

import asyncio
import time
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparc.serve.refused import RefusedError, refusal

UPLOADS = frozenset({"/learn", "/test"})
"""Where many pictures may be sent at once."""


@dataclass(frozen=True)
class Limits:
    """Of what requests may bring; what exceeds them is refused."""

    upload_bytes: int = 512 * 2**20
    """Of all pictures that are sent to learn from, or to test with."""
    upload_pictures: int = 20_000
    request_bytes: int = 64 * 2**20
    """Of any other request, such as the pictures that are asked about."""
    request_pictures: int = 256
    picture_bytes: int = 64 * 2**20
    """Of one picture."""
    held_bytes: int = 1024 * 2**20
    """Of all requests that are under way at a time."""
    silence: float = 10.0
    """Seconds in which something more of a request has to come."""
    patience: float = 30.0
    """Seconds that a request may take in any case."""
    slowest: int = 32 * 2**10
    """Bytes a second that it has to bring after that."""
    draining: float = 2.0
    """Seconds in which the rest of a request that is refused is thrown away, so that its sender reads the answer."""

    def most_bytes(self, path: str) -> int:
        return self.upload_bytes if path in UPLOADS else self.request_bytes


@dataclass
class Bounds:
    """Refuses requests that are too large, or too slow, or too many at a time."""

    app: ASGIApp
    limits: Limits
    held: int = field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = _Body(self, receive, self.limits.most_bytes(scope["path"]), "expect" in headers)

        async def send_when_read(message: Message) -> None:
            # Whoever is refused while sending, and is cut off at once, never reads why.
            if message["type"] == "http.response.start" and message["status"] not in (200, 408):
                await body.drain()
            await send(message)

        try:
            body.check_announced(headers)
            await self.app(scope, body.receive, send_when_read)
        except RefusedError as error:
            await refusal(error)(scope, receive, send_when_read)
        finally:
            self.held -= body.received


class _Body:
    """What a request brings."""

    def __init__(self, bounds: Bounds, receive: Receive, most: int, asks_first: bool) -> None:
        """Whoever `asks_first` sends nothing before it is asked for more."""
        self.bounds = bounds
        self.limits = bounds.limits
        self.receive_more = receive
        self.most = most
        self.received = 0
        self.begun = time.monotonic()
        self.ended = False
        self.asks_first = asks_first

    def check_announced(self, headers: Headers) -> None:
        announced = headers.get("content-length", "0")
        if not announced.isascii() or not announced.isdigit():
            raise RefusedError(400, "the header Content-Length is no number: leave it to the program that sends")
        if len(announced) > 18 or int(announced) > self.most:
            raise self._too_large()
        if self.bounds.held + int(announced) > self.limits.held_bytes:
            raise RefusedError(503, "too much is being sent to this server at a time: try again later")

    async def receive(self) -> Message:
        if self.ended:  # what follows is that the other side has gone, whenever it does
            return await self.receive_more()
        left = self.begun + self.limits.patience + self.received / self.limits.slowest - time.monotonic()
        try:
            async with asyncio.timeout(max(min(self.limits.silence, left), 0)):
                message = await self.receive_more()
        except TimeoutError:
            raise RefusedError(408, "the request comes too slowly, or its end is missing: send it again") from None
        size = len(message.get("body", b""))
        self.received += size
        self.bounds.held += size
        self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        if self.received > self.most:
            raise self._too_large()
        if self.bounds.held > self.limits.held_bytes:
            raise RefusedError(503, "too much is being sent to this server at a time: try again later")
        return message

    async def drain(self) -> None:
        """Throw away what is still to come."""
        if self.asks_first and not self.received:
            return
        try:
            async with asyncio.timeout(self.limits.draining):
                while not self.ended:
                    message = await self.receive_more()
                    self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        except TimeoutError:
            pass

    def _too_large(self) -> RefusedError:
        return RefusedError(413, f"the request is larger than {self.most // 2**20} MiB: send fewer or smaller pictures")
