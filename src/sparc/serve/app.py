"""The server's routes: the page, what it shows, and what it and programs ask."""

import asyncio
import contextlib
import tempfile
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sparc.data.class_folders import Classes, read_labelled
from sparc.data.pictures import Kept, Pixels
from sparc.data.progress import no_progress
from sparc.data.skipped import Skipped
from sparc.edit import edit_file, forget, rename, what_is_called, what_remains
from sparc.errors import InputError
from sparc.export import cuttings, export_onnx
from sparc.model_file import Model
from sparc.predictor import USUAL_SHARE, check_rejects, confusion
from sparc.report.model_card import card
from sparc.serve.asking import Asking
from sparc.serve.bounds import Bounds, Limits
from sparc.serve.guard import Careful, Guard
from sparc.serve.learning import Learning
from sparc.serve.looking import about, figures
from sparc.serve.openapi import api_page, specification
from sparc.serve.pages import page_routes
from sparc.serve.questions import json_of, kind_of, question_of, text_of
from sparc.serve.refused import RefusedError, refusal
from sparc.serve.served import Served
from sparc.serve.teaching import job_of
from sparc.serve.upload_tree import Upload
from sparc.serve.uploads import by_class, read_form
from sparc.testing import as_json, known_classes

Result = TypeVar("Result")


class Server:
    """What the routes share."""

    def __init__(
        self, path: Path, host: str, token: str | None, threads: int = 1, limits: Limits | None = None
    ) -> None:
        self.served = Served(path)
        self.learning = Learning(self.served)
        self.asking: Asking
        self.limits = limits or Limits()
        self.host, self.token, self.threads = host, token, threads
        self.work = ThreadPoolExecutor(1, "work")
        """For what takes its time and is rare: edits, tests, exports."""

    def routes(self) -> list[Route]:
        return [
            *page_routes(),
            Route("/api", self.api, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/predict", self.predict, methods=["POST"]),
            Route("/learn", self.learn, methods=["POST"]),
            Route("/progress", self.progress, methods=["GET"]),
            Route("/stop", self.stop, methods=["POST"]),
            Route("/model", self.model, methods=["GET"]),
            Route("/figures", self.figures, methods=["GET"]),
            Route("/test", self.test, methods=["POST"]),
            Route("/rename", self.rename, methods=["POST"]),
            Route("/forget", self.forget, methods=["POST"]),
            Route("/download/model", self.download_model, methods=["GET"]),
            Route("/download/onnx", self.download_onnx, methods=["GET"]),
            Route("/download/card", self.download_card, methods=["GET"]),
        ]

    def app(self) -> ASGIApp:
        app = Starlette(
            routes=self.routes(),
            middleware=[
                Middleware(Bounds, limits=self.limits),
                Middleware(Guard, host=self.host, token=self.token),
            ],
            exception_handlers={
                InputError: _refused,
                HTTPException: _http,
                ClientDisconnect: _gone,
                OSError: _system,
                Exception: _failed,
            },
            lifespan=self._lifespan,
        )
        return Careful(app)  # from outside: Starlette answers what went wrong above all middleware

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.asking = Asking()
        batching = asyncio.create_task(self.asking.batcher.work())
        try:
            yield
        finally:
            batching.cancel()
            await asyncio.to_thread(self.learning.close)
            self.asking.close()
            self.work.shutdown(wait=False, cancel_futures=True)

    async def api(self, request: Request) -> Response:
        return api_page(str(request.base_url).rstrip("/"), self.token is not None)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(specification())

    async def predict(self, request: Request) -> Response:
        await self.served.current()
        question = question_of(request)
        model = self.served.taught()
        if "reject" in request.query_params:
            check_rejects(model.info, question.share or USUAL_SHARE)
        form = await read_form(request, self.limits, self.limits.request_pictures)
        if not form.pictures:
            raise InputError("there is nothing to look at: send pictures, such as curl -F picture=@cat.jpg")
        named = await self.asking.name(model, form.pictures, question)
        if all("error" in each for each in named):
            raise InputError(str(named[0]["error"]))
        return JSONResponse({"model": self.served.name, "pictures": named})

    async def learn(self, request: Request) -> Response:
        self.learning.check_free()
        await self.served.current()
        form = await read_form(request, self.limits, self.limits.upload_pictures)
        contents = by_class(form.pictures)
        job = job_of(self.served, form.settings, tuple(contents), self.threads)
        progress = self.learning.begin(job, list(contents.values()))
        return JSONResponse(progress.as_json(), 202)

    async def progress(self, request: Request) -> Response:
        return JSONResponse(self.learning.now().as_json())

    async def stop(self, request: Request) -> Response:
        if not self.learning.busy:
            raise RefusedError(409, "nothing is being learned: there is nothing to stop")
        return JSONResponse(self.learning.stop().as_json())

    async def model(self, request: Request) -> Response:
        await self.served.current()
        return JSONResponse(await self._done(lambda: about(self.served)))

    async def figures(self, request: Request) -> Response:
        await self.served.current()
        info = self.served.model.info if self.served.model else None
        return JSONResponse({"figures": [] if info is None else await self._done(lambda: figures(info))})

    async def test(self, request: Request) -> Response:
        await self.served.current()
        model = self.served.taught()
        form = await read_form(request, self.limits, self.limits.upload_pictures)
        upload = Upload.of(by_class(form.pictures))
        classes = known_classes(upload, model.info, self.served.name)
        return JSONResponse(await self._done(lambda: _tested(model, upload, classes)))

    async def rename(self, request: Request) -> Response:
        given = await json_of(request, {"old", "new", "kind"})
        old, new, kind = text_of(given, "old"), text_of(given, "new"), kind_of(given)
        before, after = await self._edited(lambda model: rename(model, old, new, kind))
        return JSONResponse({"message": what_is_called(before, after, kind)})

    async def forget(self, request: Request) -> Response:
        given = await json_of(request, {"classes", "task"})
        classes = given.get("classes", [])
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
            raise InputError('“classes” is a list of names, such as {"classes": ["cat"]}')
        if bool(classes) == ("task" in given):
            raise InputError("say what to forget: either names of classes, or a task, and not both")
        tasks = [text_of(given, "task")] if "task" in given else []
        before, after = await self._edited(lambda model: forget(model, classes, tasks))
        return JSONResponse({"message": "\n".join(what_remains(before, after))})

    async def download_model(self, request: Request) -> Response:
        self.served.taught()
        content = await self._done(self.served.path.read_bytes)
        return _download(content, "application/octet-stream", self.served.path.name)

    async def download_onnx(self, request: Request) -> Response:
        await self.served.current()
        model = self.served.taught()
        content = await self._done(lambda: _exported(model))
        return _download(content, "application/octet-stream", f"{self.served.path.stem}.onnx")

    async def download_card(self, request: Request) -> Response:
        await self.served.current()
        model = self.served.taught()
        content = (await self._done(lambda: card(model, self.served.path))).encode()
        return _download(content, "text/markdown; charset=utf-8", f"{self.served.path.stem}.md")

    async def _edited(self, change: Callable[[Model], Model]) -> tuple[Model, Model]:
        self.learning.check_free()
        self.served.taught()

        def edit() -> tuple[Model, Model]:
            found = edit_file(self.served.path, change)
            self.served.read()
            return found

        return await self._done(edit)

    def _done(self, work: Callable[[], Result]) -> Awaitable[Result]:
        return asyncio.get_running_loop().run_in_executor(self.work, work)


def _tested(model: Model, upload: Upload, classes: Classes) -> dict[str, object]:
    shape, ready, skipped = model.info.shape, model.ready, list[Skipped]()

    def look(images: Pixels) -> Kept:
        return ready.look(shape.from_rgb(images), cache=False)

    found = confusion(ready, read_labelled(upload, classes, shape.side, no_progress, shape.fit, skipped, look))
    accepted = None
    if model.info.limit(USUAL_SHARE) is not None:
        accepted = 100 * float(found.answers.are_known(USUAL_SHARE).mean())
    return {**as_json(found), "known_accepted": accepted, "skipped": [asdict(each) for each in skipped]}


def _exported(model: Model) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path, cuttings(model.info.shape))
        return path.read_bytes()


def _download(content: bytes, kind: str, name: str) -> Response:
    answer = Response(content, media_type=kind)
    ascii_name = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-_. ") else "_" for letter in name
    )
    answer.headers["Content-Disposition"] = f'attachment; filename="{ascii_name}"'
    return answer


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, InputError)
    return refusal(error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {
        404: "there is nothing at this address: see /api for what there is",
        405: "this address is asked otherwise: see /api",
    }
    sentence = said.get(error.status_code, error.detail)
    return JSONResponse({"error": sentence}, error.status_code, error.headers)


async def _system(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    traceback.print_exception(error)
    return JSONResponse({"error": error.strerror or str(error)}, 500)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # which nobody reads any more


async def _failed(request: Request, error: Exception) -> Response:
    traceback.print_exception(error)
    sentence = "this went wrong in the server, which tells more where it was started"
    return JSONResponse({"error": sentence}, 500, {"Connection": "close"})  # as uvicorn does after an exception
