"""How fast `sparc serve` answers while it learns: row 10, many clients at once against the model in a loop."""

import asyncio
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import torch
from PIL import Image

from benchmarks.measure import Row, Size
from sparc.classifier import ContinualClassifier
from sparc.model_file import Model

CLASSES = 5
PICTURES = 20
"""Of each class."""
LOOP_SHARE = 0.3
"""Of the time, in which the model is asked in a loop."""


@dataclass
class Load:
    """What clients have seen."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    wrong: int = 0
    """Answers that are no answer, or another one than the model's."""

    @property
    def throughput(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        return float(np.quantile(self.latencies, share))


def serve_rows(size: Size) -> list[Row]:
    what = f"sparc serve, {size.clients} clients while a task is learned, against the model in a loop"
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "python_multipart")):
        return [Row("10", what, "sparc-cl[serve] is not installed")]
    with tempfile.TemporaryDirectory() as folder:
        path, contents, labels = taught(Path(folder), size.image)
        with served(path) as url:
            learn_on(url, contents, labels)
            expected, loop = asked_in_a_loop(
                ContinualClassifier.load(path).model_, contents, LOOP_SHARE * size.serve_seconds
            )
            load = asyncio.run(loaded(url, contents, expected, size.clients, size.serve_seconds))
            still = _ask(url, "GET", "/progress")["state"]
            _ask(url, "POST", "/stop")
    assert still == "learning", still
    times = load.throughput / loop
    figures = {"times": times, "a second": load.throughput, "a second in a loop": loop, "answers": len(load.latencies)}
    measured = f"{times:.2f} × ({load.throughput:.0f} pictures a second, {load.wrong} wrong or missing)"
    middle, last = (1000 * load.percentile(share) for share in (0.5, 0.99))
    return [
        Row("10", what, measured, figures=figures),
        Row(
            "10",
            f"the same, how long one of {size.clients} waits",
            f"{middle:.0f} ms in the middle, {last:.0f} ms at the 99th percentile",
            figures={"p50 ms": middle, "p99 ms": last, "ms in a loop": 1000 / loop},
        ),
    ]


def taught(folder: Path, side: int) -> tuple[Path, list[bytes], list[str]]:
    """A model file of the usual make, but from scratch, and the pictures that it was taught."""
    chance = np.random.default_rng(0)
    bases = chance.integers(0, 256, (CLASSES, 4, 4, 3), dtype=np.uint8)
    contents, labels = [], []
    for label, base in enumerate(bases):
        for _ in range(PICTURES):
            image = np.asarray(Image.fromarray(base).resize((side, side), Image.Resampling.BICUBIC)).astype(np.int16)
            image = (image + chance.integers(-20, 21, image.shape)).clip(0, 255).astype(np.uint8)
            file = io.BytesIO()
            Image.fromarray(image).save(file, "PNG")
            contents.append(file.getvalue())
            labels.append(f"class {label}")
    classifier = ContinualClassifier(start="nothing", image_size=side)
    classifier.learn([Image.open(io.BytesIO(content)) for content in contents], labels)
    classifier.save(folder / "model.sparc")
    return folder / "model.sparc", contents, labels


@contextmanager
def served(path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "sparc", "serve", str(path), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().rpartition(": ")[2].strip()
        finally:
            process.terminate()


def learn_on(url: str, contents: list[bytes], labels: list[str]) -> None:
    """Give it a task that it does not come to an end with, and wait until it is at it."""
    parts = [("epochs", "", b"10000"), ("task", "", b"more")]
    parts += [
        (f"more of {label}", f"{index}.png", content)
        for index, (label, content) in enumerate(zip(labels, contents, strict=True))
    ]
    body = b""
    for name, file, content in parts:
        filename = f"; filename={file}" if file else ""
        body += (
            f'--limit\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'.encode() + content + b"\r\n"
        )
    _ask(url, "POST", "/learn", body + b"--limit--\r\n", "multipart/form-data; boundary=limit")
    for _ in range(3000):
        progress = _ask(url, "GET", "/progress")
        if progress["state"] == "learning" and progress["epoch"]:
            return
        assert progress["state"] in ("starting", "reading", "learning"), progress
        time.sleep(0.1)
    raise AssertionError("it does not begin to learn")


def asked_in_a_loop(model: Model, contents: list[bytes], seconds: float) -> tuple[list[str], float]:
    """The class of each picture, and how many are named in a second, one after another."""
    from sparc.serve.asking import Question, describe, square_of
    from sparc.serve.asking import answer as asked
    from sparc.serve.uploads import Sent

    def name(content: bytes) -> str:
        square = square_of(model, Sent("", "", content))
        assert not isinstance(square, str), square
        (found,) = describe(asked(model, model.info.shape.from_squares([square])), Question())
        predictions = found["predictions"]
        assert isinstance(predictions, list)
        return str(predictions[0]["class"])

    torch.set_num_threads(1)
    expected = [name(content) for content in contents]
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        name(contents[count % len(contents)])
        count += 1
    return expected, count / (time.perf_counter() - begun)


async def loaded(url: str, contents: list[bytes], expected: list[str], clients: int, seconds: float) -> Load:
    """So many clients, each with one picture after another, for so long."""
    load = Load()
    place = urlsplit(url)
    head = f"POST /predict HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: image/png\r\nContent-Length: "
    begun = time.perf_counter()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        while time.perf_counter() - begun < seconds:
            number = (number + 7) % len(contents)
            start = time.perf_counter()
            writer.write(f"{head}{len(contents[number])}\r\n\r\n".encode() + contents[number])
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            load.latencies.append(time.perf_counter() - start)
            right = answer.startswith(b"HTTP/1.1 200")
            load.wrong += not right or json.loads(body)["pictures"][0]["predictions"][0]["class"] != expected[number]
        writer.close()

    await asyncio.gather(*map(client, range(clients)))
    load.seconds = time.perf_counter() - begun
    return load


def _ask(url: str, method: str, path: str, body: bytes = b"", kind: str = "") -> dict[str, object]:
    import http.client

    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        connection.request(method, path, body, {"Content-Type": kind} if kind else {})
        answer: dict[str, object] = json.load(connection.getresponse())
        return answer
    finally:
        connection.close()
