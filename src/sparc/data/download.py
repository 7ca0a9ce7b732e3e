"""Fetching one file whose content is known beforehand."""

import hashlib
import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sparc.data.progress import Progress
from sparc.errors import InputError
from sparc.files import whole_file

TIMEOUT = 30.0
"""Seconds without a byte after which a server is given up."""
_CHUNK = 2**18


@dataclass(frozen=True)
class Remote:
    """A file on the web, and what it must turn out to be."""

    url: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        assert self.url.startswith("https://")

    @property
    def filename(self) -> str:
        return self.url.rsplit("/", 1)[-1]


class DownloadError(InputError):
    """The network or the server is at fault, not the file: the user can bring the file by other means."""


def fetch(remote: Remote, folder: Path, progress: Progress) -> Path:
    """Download into `folder`; the file appears there whole and checked, or not at all."""
    target = folder / remote.filename
    try:
        with whole_file(target) as file:
            _download(remote, file, progress)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{target} cannot be written ({reason}): make room or name another folder") from error
    return target


def _download(remote: Remote, file: IO[bytes], progress: Progress) -> None:
    digest = hashlib.sha256()
    done = 0
    for chunk in _chunks(remote.url):
        done += len(chunk)
        if done > remote.size:
            break
        digest.update(chunk)
        file.write(chunk)
        progress(f"downloading {remote.filename}", done, remote.size)
    if done < remote.size:
        raise DownloadError(f"{remote.url} was cut off after {done:,} of {remote.size:,} bytes")
    if done > remote.size or digest.hexdigest() != remote.sha256:
        raise DownloadError(f"{remote.url} does not hold the file that it used to hold (its SHA-256 differs)")


def _chunks(url: str) -> Iterator[bytes]:
    try:
        request = Request(url, headers={"User-Agent": "sparc"})  # noqa: S310 - https, as Remote makes sure
        with build_opener(_OnlyHttps).open(request, timeout=TIMEOUT) as answer:
            while chunk := answer.read(_CHUNK):
                yield chunk
    except HTTPError as error:
        error.close()
        raise DownloadError(f"{url} could not be reached (the server answers {error.code} {error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"{url} could not be reached ({reason})") from error


class _OnlyHttps(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme != "https":
            fp.close()
            raise URLError(f"it redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
