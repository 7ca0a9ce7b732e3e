"""The page, from the files beside this one; a request names none of them."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparc import __version__
from sparc.report.colours import DARK, LIGHT
from sparc.report.svg import safe

SHOWN = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/teach.js": ("teach.js", "text/javascript"),
    "/ask.js": ("ask.js", "text/javascript"),
    "/look.js": ("look.js", "text/javascript"),
    "/camera.js": ("camera.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


@cache
def static(name: str) -> str:
    text = files("sparc.serve").joinpath("static", name).read_text(encoding="utf-8")
    light, dark = (" ".join(f"--{key}: {value};" for key, value in palette.items()) for palette in (LIGHT, DARK))
    return text.replace("/*LIGHT*/", light).replace("/*DARK*/", dark).replace("{{version}}", safe(__version__))


def page_routes() -> list[Route]:
    return [Route(path, _sender(*shown), methods=["GET"]) for path, shown in SHOWN.items()]


def _sender(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def send(request: Request) -> Response:
        return Response(static(name), media_type=f"{kind}; charset=utf-8")

    return send
