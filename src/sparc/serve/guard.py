"""Who may ask: requests to another host's name, from other sites' pages and without the token are refused.

A page of another site can make a browser send requests to this machine, and by a name that it points here (DNS
rebinding) read the answers as well. The names in Host and Origin tell both.
"""

import hmac
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparc.serve.refused import RefusedError, refusal

COOKIE = "sparc-token"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""On every answer: the page runs its own scripts alone, asks no other host, and is shown in no other page."""
ASK_FOR_IT = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>sparc serve</title></head>
<body><main><h1>This page asks for a token</h1>
<p>Whoever started <code>sparc serve</code> has it: it was printed there.</p>
<form action="/" method="get"><label>Token <input name="token" type="password" autocomplete="off" required></label>
<button>Open</button></form></main></body></html>
"""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


@dataclass(frozen=True)
class Careful:
    """Tells browsers, on every answer, what they may do with it."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)


@dataclass(frozen=True)
class Guard:
    """Lets through what comes from this server's own page, or from a program, to this server."""

    app: ASGIApp
    host: str
    """That is listened at."""
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            check_origin(scope, headers)
            answer = self._check_token(scope, headers)
        except RefusedError as error:
            answer = refusal(error)
        await (answer or self.app)(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        name = _name(headers.get("host", ""))
        if is_loopback(name) or name.lower() == self.host.lower():
            return
        if not is_loopback(self.host):
            own = socket.gethostname().lower()
            # No name leads to a bare address by somebody else's wish.
            if _address(name) is not None or name.lower() in (own, f"{own}.local"):
                return
        raise RefusedError(403, f"this is not the host “{name[:100]}”: use the address that sparc serve has printed")

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None where the request may pass."""
        if self.token is None:
            return None
        is_page = scope["path"] == "/" and scope["method"] == "GET"
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0] if is_page else ""
        if self._is_token(given):
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, quote(given, safe=""), httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        if (scheme.lower() == "bearer" and self._is_token(bearer.strip())) or self._is_token(cookie, quoted=True):
            return None
        if is_page:
            return HTMLResponse(ASK_FOR_IT, 401)
        raise RefusedError(401, "this server asks for a token: send the header Authorization: Bearer TOKEN")

    def _is_token(self, given: str, quoted: bool = False) -> bool:
        assert self.token is not None
        token = quote(self.token, safe="") if quoted else self.token
        return hmac.compare_digest(given.encode(), token.encode())


def check_origin(scope: Scope, headers: Headers) -> None:
    """Refuse what a browser sends on behalf of another site's page; programs do not say where they come from."""
    origin = headers.get("origin")
    if origin is not None and not _is_of(origin, headers.get("host", "")):
        raise RefusedError(403, f"a page of {origin[:100]} may not ask this server: open its own page")
    # A browser says so of every request to this machine; to follow a link to the page is no harm.
    is_page = scope["path"] in ("/", "/api") and scope["method"] == "GET"
    is_link = headers.get("sec-fetch-mode") == "navigate" and is_page
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_link:
        raise RefusedError(403, "a page of another site may not ask this server: open its own page")


def _is_of(origin: str, host: str) -> bool:
    """Whether a page comes from a host, given with its port.

    >>> [_is_of(origin, "localhost:80") for origin in ("http://localhost:80", "http://evil.example", "http://[")]
    [True, False, False]
    """
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _name(host: str) -> str:
    """Without the port.

    >>> _name("localhost:80"), _name("[::1]:80"), _name("[::1")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
