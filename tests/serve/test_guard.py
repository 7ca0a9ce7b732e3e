"""Nobody but this server's own page, and programs that mean it, is answered."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.serve.conftest import Site


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:8710", "127.0.0.2"])
def test_this_machine_is_known_by_its_names(site: Site, host: str) -> None:
    assert site.get("/model", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8710", "localhost.evil.example", "127.0.0.1.evil.example", "[::1", "10.0.0.1"],
)
def test_names_that_others_point_here_are_refused(site: Site, host: str) -> None:
    for path in ("/", "/model", "/nothing"):
        answer = site.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert answer.json()["error"].startswith("this is not the host")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "file://", "http://["]
)
def test_pages_of_other_sites_are_refused(site: Site, origin: str) -> None:
    for method, path in (("POST", "/stop"), ("POST", "/predict"), ("GET", "/model")):
        answer = site.client.request(method, path, headers={"Origin": origin})
        assert answer.status_code == 403
        assert "may not ask this server" in answer.json()["error"]


def test_what_browsers_say_of_other_sites(site: Site) -> None:
    for where in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": where, "Sec-Fetch-Mode": "no-cors"}
        assert site.get("/model", headers=headers).status_code == 403
        assert site.get("/", headers={**headers, "Sec-Fetch-Mode": "navigate"}).status_code == 200
        assert site.get("/download/onnx", headers={**headers, "Sec-Fetch-Mode": "navigate"}).status_code == 403
        assert site.post("/stop", headers={**headers, "Sec-Fetch-Mode": "navigate"}).status_code == 403
    assert site.get("/model", headers={"Sec-Fetch-Site": "same-origin", "Origin": site.url}).status_code == 200


def test_answers_tell_browsers_to_be_careful(site: Site) -> None:
    for answer in (site.get("/"), site.get("/model"), site.get("/nothing"), site.get("/", headers={"Host": "x.y"})):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("error", [RuntimeError("secret"), OSError(28, "No space left on device", "secret")])
def test_so_does_what_went_wrong_which_is_told_where_the_server_was_started(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    async def fail() -> None:
        raise error

    monkeypatch.setattr(site.server.served, "current", fail)
    answer = site.get("/model")
    assert answer.status_code == 500
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret" not in answer.text
    assert "secret" in capsys.readouterr().err
    closed = answer.headers.get("connection") == "close"
    assert closed is isinstance(error, RuntimeError), "nobody is to ask again where uvicorn hangs up"


def test_a_token(own: Path, serve: Callable[..., Site]) -> None:
    site = serve(own, host="0.0.0.0", token="räuber & co")
    assert site.get("/model", headers={"Host": "192.168.7.9:8710"}).status_code == 401
    assert site.get("/model", headers={"Host": "evil.example"}).status_code == 403
    missing = site.get("/model")
    assert missing.json()["error"] == "this server asks for a token: send the header Authorization: Bearer TOKEN"
    for wrong in (
        "",
        "Bearer",
        "Bearer nonsense",
        "Basic cmF1YmVy",
        "Bearer \udcff".encode("utf-8", "surrogateescape"),
    ):
        assert site.get("/model", headers={"Authorization": wrong}).status_code == 401
    page = site.get("/")
    assert page.status_code == 401
    assert "asks for a token" in page.text
    assert site.get("/?token=nonsense").status_code == 401
    assert site.get("/model?token=räuber %26 co").status_code == 401
    opened = site.get("/", params={"token": "räuber & co"})
    assert opened.status_code == 303
    cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "token" not in opened.headers["location"]
    assert site.get("/").status_code == 200
    assert site.get("/model").status_code == 200
    site.client.cookies.clear()
    assert site.get("/model").status_code == 401
    assert site.get("/model", headers={"Authorization": "bearer räuber & co".encode("latin-1")}).status_code == 200
