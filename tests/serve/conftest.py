"""A real server on a port of its own, and small pictures that it is taught quickly."""

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from sparc.cli.main import main
from sparc.serve.app import Server
from sparc.serve.bounds import Limits
from sparc.serve.listen import bound, new_server

TASKS = {"shapes": ("round", "square"), "marks": ("cross", "ring")}
LIMITS = Limits(request_bytes=2**20, upload_bytes=2**21, silence=0.6, patience=1.2, draining=0.3)
ENDED = ("learned", "failed", "stopped", "died")


class Site:
    """A server that runs, and somebody who asks it."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(path, **options)

    def learn(self, folder: Path, **settings: str) -> httpx.Response:
        return self.post("/learn", data=settings, files=form_of(folder))

    def progress(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/progress").json()
        return found

    def until(self, *states: str, seconds: float = 600) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            progress = self.progress()
            if progress["state"] in states:
                return progress
            assert progress["state"] not in ENDED, progress
            time.sleep(0.05)
        raise AssertionError(f"{progress} and none of {states}")


def form_of(folder: Path) -> list[tuple[str, tuple[str, bytes]]]:
    """As the page sends a folder of class folders."""
    return [(path.parent.name, (path.name, path.read_bytes())) for path in sorted(folder.glob("*/*"))]


def picture(kind: str, chance: np.random.Generator) -> Image.Image:
    """One that is easy to tell from those of other kinds."""
    y, x = np.mgrid[-1:1:32j, -1:1:32j]
    shapes = {
        "round": x**2 + y**2 < 0.4,
        "square": np.maximum(abs(x), abs(y)) < 0.6,
        "cross": np.minimum(abs(x), abs(y)) < 0.15,
        "ring": abs(x**2 + y**2 - 0.5) < 0.2,
    }
    colours = chance.integers(0, 70, 3), chance.integers(150, 230, 3)
    image = np.where(shapes[kind][:, :, None], colours[1], colours[0]) + chance.integers(0, 25, (32, 32, 3))
    return Image.fromarray(image.astype(np.uint8))


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of class folders for each task, to be left as they are."""
    folder = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(0)
    for task, kinds in TASKS.items():
        for kind in kinds:
            (folder / task / kind).mkdir(parents=True)
            for number in range(30):
                (folder / task / kind / f"{number}.png").write_bytes(png(picture(kind, chance)))
    return folder


@pytest.fixture(scope="session")
def taught(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `sparc learn` makes of both tasks, to be left as it is."""
    path = tmp_path_factory.mktemp("taught") / "demo.sparc"
    for task in TASKS:
        few = ["--patches", "64"]  # features, so that the file is read in no time
        assert main(["learn", str(pictures / task), "--model", str(path), *few, "--json"]) == 0
    return path


@contextlib.contextmanager
def running(path: Path, **options: Any) -> Iterator[Site]:
    """By the same code as `sparc serve`, but in a thread."""
    host = options.pop("host", "127.0.0.1")
    with bound("127.0.0.1", 0) as listening:
        server = Server(path, host, options.pop("token", None), **options)
        ready = threading.Event()
        uvicorn = new_server(server.app(), ready.set)
        thread = threading.Thread(target=uvicorn.run, args=([listening],))
        thread.start()
        assert ready.wait(120)
        site = Site(server, listening.getsockname()[1])
        try:
            with site.client:
                yield site
        finally:
            uvicorn.should_exit = True
            thread.join(120)
            assert not thread.is_alive()


@pytest.fixture
def serve() -> Iterator[Callable[..., Site]]:
    with contextlib.ExitStack() as stack:
        yield lambda path, **options: stack.enter_context(running(path, **options))


@pytest.fixture
def own(taught: Path, tmp_path: Path) -> Path:
    """A copy of the taught model, to do anything with."""
    copy = tmp_path / "demo.sparc"
    copy.write_bytes(taught.read_bytes())
    return copy


@pytest.fixture(scope="module")
def site(taught: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One that nobody teaches, for all tests of a module."""
    path = tmp_path_factory.mktemp("served") / "demo.sparc"
    path.write_bytes(taught.read_bytes())
    with running(path, limits=LIMITS) as made:
        yield made
