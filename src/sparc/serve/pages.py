"""The page, from the files beside this one; a request names none of them."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparc import __version__
from sparc.report.colours import DARK, LIGHT
from sparc.report.svg import safe

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def static(name: str) -> str:
    text = files("sparc.serve").joinpath("static", name).read_text(encoding="utf-8")
    light, dark = (" ".join(f"--{key}: {value};" for key, value in palette.items()) for palette in (LIGHT, DARK))
    return text.replace("/*LIGHT*/", light).replace("/*DARK*/", dark).replace("{{version}}", safe(__version__))


def page_routes() -> list[Route]:
    names = [file.name for file in files("sparc.serve").joinpath("static").iterdir()]
    shown = {"/" if name == "page.html" else f"/{name}": name for name in names if Path(name).suffix in KINDS}
    return [Route(path, _sender(name, KINDS[Path(name).suffix]), methods=["GET"]) for path, name in shown.items()]


def _sender(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def send(request: Request) -> Response:
        return Response(static(name), media_type=f"{kind}; charset=utf-8")

    return send
