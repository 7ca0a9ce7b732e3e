"""Whatever is sent, the answer is a sentence with a 4xx, and memory stays as it is."""

import io
import random
import select
import socket
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from PIL import Image

from sparc.serve.bounds import Limits
from tests.fuzz import damaged
from tests.serve.conftest import Site, form_of


def test_more_than_there_may_be_is_refused(site: Site) -> None:
    limits = site.server.limits
    announced = site.post("/predict", content=bytes(limits.request_bytes + 1))
    assert (announced.status_code, announced.json()["error"]) == (
        413,
        "the request is larger than 1 MiB: send fewer or smaller pictures",
    )

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield bytes(2**16)

    assert site.post("/predict", content=chunks()).status_code == 413
    many = site.post("/predict", files=[("p", ("1.png", b"x"))] * (limits.request_pictures + 1))
    assert many.json()["error"] == "there are more than 256 pictures: send fewer at a time"
    learn = site.post("/learn", files=[("cat", ("1.png", bytes(limits.upload_bytes)))])
    assert (learn.status_code, learn.json()["error"].startswith("the request is larger than 2 MiB")) == (413, True)
    assert site.get("/model").status_code == 200


def test_too_much_at_a_time(own: Path, serve: Callable[..., Site]) -> None:
    site = serve(own, limits=Limits(held_bytes=2**18))
    answer = site.post("/predict", content=bytes(2**19))
    assert (answer.status_code, answer.json()["error"]) == (
        503,
        "too much is being sent to this server at a time: try again later",
    )
    assert site.post("/predict", content=b"x").status_code == 400


def test_pictures_of_too_many_pixels_are_not_decoded(site: Site) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = (40_000).to_bytes(4, "big")
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + size + bytes([8, 2, 0, 0, 0]))
    bomb += chunk(b"IDAT", zlib.compress(bytes(10**6), 9)) + chunk(b"IEND", b"")
    start = time.monotonic()
    answer = site.post("/predict", content=bomb)
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "it has more than 64 million pixels: make it smaller",
    )
    assert time.monotonic() - start < 5


def raw(site: Site, *parts: bytes, pause: float = 0.0) -> bytes:
    """What the server says to bytes that need not be HTTP."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        said = b""
        try:
            for part in parts:
                connection.sendall(part)
                if select.select([connection], [], [], pause)[0]:
                    break  # it has had enough
            while more := connection.recv(65536):
                said += more
        except (ConnectionResetError, BrokenPipeError):
            pass
        return said


def test_slow_requests_are_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/png\r\nContent-Length: 100000\r\n\r\n"
    start = time.monotonic()
    silent = raw(site, head + b"x")
    assert silent.startswith(b"HTTP/1.1 408 ")
    assert b"the request comes too slowly, or its end is missing: send it again" in silent
    assert time.monotonic() - start < 4
    dripping = raw(site, head, *[b"x"] * 30, pause=0.2)
    assert dripping.startswith(b"HTTP/1.1 408 ")
    monkeypatch.setattr("sparc.serve.listen.HEADER_SECONDS", 0.5)
    start = time.monotonic()
    assert raw(site, b"GET / HT", b"TP/1.1\r\n", b"Host: a\r\n", b"X: a\r\n", pause=0.3) == b""
    assert raw(site) == b""
    assert time.monotonic() - start < 5
    assert site.get("/model").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"\x00\xff nonsense\r\n\r\n",
        b"GET /\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(site: Site, body: bytes) -> None:
    assert raw(site, body).startswith(b"HTTP/1.1 4")
    assert site.get("/model").status_code == 200


def test_forms_that_are_none(site: Site) -> None:
    for kind, status in (
        ("multipart/form-data", 400),
        ("multipart/form-data; boundary=x", 400),
        ("multipart/form-data; boundary=" + 200 * "x", 400),
        ("application/json", 415),
        ("text/html", 415),
    ):
        answer = site.post("/predict", content=b"--x\r\nnonsense", headers={"Content-Type": kind})
        assert answer.status_code == status, (kind, answer.text)
        assert "error" in answer.json()
    assert site.post("/rename", content=b"{}").status_code == 415
    for content in (b"{", b"[]", b"[" * 100_000, b'"\\ud800"', b'{"old": "\\ud800", "new": "x"}', b"\xff"):
        answer = site.post("/rename", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert "error" in answer.json()


class Mutated:
    """Whole requests, and what chance makes of them."""

    def __init__(self, site: Site, pictures: Path, seed: int) -> None:
        self.site = site
        self.chance = random.Random(seed)
        image = Image.open(next(pictures.glob("*/*/*.png")))
        self.contents = []
        for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"):
            file = io.BytesIO()
            image.save(file, kind)
            self.contents.append(file.getvalue())
        self.forms = []
        for path, files in (
            ("/predict", [("picture", ("1.png", content)) for content in self.contents]),
            ("/test", form_of(pictures / "marks")[::10]),
            ("/learn", [("a/b", ("1.png", self.contents[0]))]),  # which is refused, so that nothing is learned
        ):
            request = site.client.build_request("POST", path, files=files)
            self.forms.append((path, request.headers["content-type"], request.read()))

    def request(self) -> httpx.Request:
        chance, build = self.chance, self.site.client.build_request
        kind = chance.randrange(4)
        if kind == 0:
            return build("POST", "/predict", content=damaged(chance.choice(self.contents), chance))
        if kind == 1:
            path, content_type, body = chance.choice(self.forms)
            if chance.random() < 0.3:
                content_type = damaged(content_type.encode(), chance).decode("latin-1")
                content_type = "".join(letter for letter in content_type if " " <= letter <= "~").strip()
            return build("POST", path, content=damaged(body, chance), headers={"Content-Type": content_type})
        if kind == 2:
            body = damaged(chance.choice([b'{"classes": ["x"]}', b'{"old": "x", "new": "y", "kind": "task"}']), chance)
            path = chance.choice(["/forget", "/rename"])
            return build("POST", path, content=body, headers={"Content-Type": "application/json"})
        letters = "".join(
            chr(chance.choice([*range(33, 127), 228, 8364, 0x1F600])) for _ in range(chance.randrange(30))
        )
        path = chance.choice(["/", "/predict?", "/download/", "/../../etc/passwd", "/%2e%2e/", "/static/"]) + letters
        url = httpx.URL(self.site.url).copy_with(raw_path=quote(path, safe="/?%&=").encode())
        return build(chance.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS"]), url)


def mutate(site: Site, pictures: Path, times: int) -> Counter[int]:
    mutated = Mutated(site, pictures, seed=times)
    before, statuses = site.get("/download/model").content, Counter[int]()
    for _ in range(times):
        try:
            answer = site.client.send(mutated.request())
        except (httpx.RemoteProtocolError, httpx.ReadError):
            statuses[0] += 1
            continue
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400 and answer.headers.get("content-type") == "application/json":
            assert len(answer.json()["error"]) > 10
    assert statuses[0] == 0
    assert site.get("/download/model").content == before
    assert site.progress()["state"] == "idle"
    return statuses


def test_mutated_requests(site: Site, pictures: Path) -> None:
    statuses = mutate(site, pictures, 150)
    assert sum(statuses[status] for status in statuses if status >= 400) > 50


def resident() -> float:
    """MiB of this process, which has the server in it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@pytest.mark.long
def test_memory_stays_flat_over_2000_mutated_requests(
    site: Site, pictures: Path, record_property: Callable[[str, object], None]
) -> None:
    mutate(site, pictures, 300)
    before = resident()
    statuses = mutate(site, pictures, 2000)
    for _ in range(50):
        site.post("/predict", content=bytes(2**20 - 1))
        site.post("/learn", files=[("cat", ("1.png", bytes(2**21)))])
    grown = resident() - before
    record_property("figures", f"2,000 mutated requests: {dict(sorted(statuses.items()))}, {grown:+.1f} MiB")
    assert grown < 30
