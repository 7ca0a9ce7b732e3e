import hashlib

import pytest
import trustme

from sparc.data.download import DownloadError, Remote, fetch
from sparc.data.progress import no_progress
from sparc.errors import InputError

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(serve):
    """Serves one file whole under any name, and some names in the ways that servers fail."""
    (serve.folder / "set.bin").write_bytes(CONTENT)
    (serve.folder / "cut.bin").write_bytes(CONTENT)
    serve.cut["cut.bin"] = 300_000
    return serve


def remote(server, name: str, sha256: str = SHA256, size: int = len(CONTENT)) -> Remote:
    return Remote(f"https://127.0.0.1:{server.port}/{name}", sha256, size)


def test_a_file_arrives_whole(server, tmp_path):
    steps: list[tuple[str, int, int | None]] = []
    path = fetch(remote(server, "set.bin"), tmp_path / "new", lambda *step: steps.append(step))
    assert path == tmp_path / "new" / "set.bin"
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    (tmp_path / "usual").touch()
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert steps[-1] == ("downloading set.bin", len(CONTENT), len(CONTENT))


def test_a_redirect_within_https_is_followed(server, tmp_path):
    server.moved["old.bin"] = remote(server, "set.bin").url
    assert fetch(remote(server, "old.bin"), tmp_path, no_progress).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://127.0.0.1:{port}/set.bin", r"\(it redirects to http://.*, which is not https\)"),
        ("ftp://127.0.0.1/set.bin", r"\(it redirects to ftp://.*, which is not https\)"),
        ("file:///etc/passwd", "could not be reached"),
    ],
)
def test_a_redirect_away_from_https_is_refused(server, tmp_path, target, message):
    server.moved["old.bin"] = target.format(port=server.port)
    with pytest.raises(DownloadError, match=message):
        fetch(remote(server, "old.bin"), tmp_path, no_progress)
    assert len(server.asked) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "sha256", "message"),
    [
        ("set.bin", "0" * 64, "SHA-256 differs"),
        ("cut.bin", SHA256, "cut off after 300,000 of 1,024,000 bytes"),
        ("gone.bin", SHA256, "404 Not Found"),
    ],
)
def test_nothing_is_left_of_a_failure(server, tmp_path, name, sha256, message):
    with pytest.raises(DownloadError, match=message):
        fetch(remote(server, name, sha256), tmp_path, no_progress)
    assert not list(tmp_path.iterdir())


def test_no_more_is_taken_than_the_file_is_long(server, tmp_path):
    taken: list[int] = []
    with pytest.raises(DownloadError, match="does not hold the file"):
        fetch(remote(server, "set.bin", size=500_000), tmp_path, lambda what, done, total: taken.append(done))
    assert max(taken) <= 500_000
    assert not list(tmp_path.iterdir())


def test_an_old_file_stays_when_its_successor_does_not_arrive(server, tmp_path):
    (tmp_path / "cut.bin").write_bytes(b"old")
    with pytest.raises(DownloadError):
        fetch(remote(server, "cut.bin"), tmp_path, no_progress)
    assert (tmp_path / "cut.bin").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_interrupt_leaves_nothing(server, tmp_path):
    def interrupt(what: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(remote(server, "set.bin"), tmp_path, interrupt)
    assert not list(tmp_path.iterdir())


def test_a_server_that_nobody_vouches_for_is_refused(server, tmp_path, monkeypatch):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with pytest.raises(DownloadError, match="certificate verify failed"):
        fetch(remote(server, "set.bin"), tmp_path / "new", no_progress)
    assert server.asked == []


def test_no_server(server, tmp_path):
    with pytest.raises(DownloadError, match=r"https://127.0.0.1:1/x could not be reached \(.*refused"):
        fetch(Remote("https://127.0.0.1:1/x", SHA256, 1), tmp_path, no_progress)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be written") as caught:
        fetch(Remote("https://127.0.0.1:1/x", SHA256, 1), tmp_path / "file" / "below", no_progress)
    assert not isinstance(caught.value, DownloadError)
