"""Builders of tiny data sets in their official layouts, and a home without network for every test here."""

import functools
import http.server
import io
import json
import pickle
import ssl
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trustme
from PIL import Image


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty; whatever asks the web meets a proxy that is not there."""
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("SPARC_DATA", raising=False)
    return home / "sparc"


def _encode(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    return _encoded(pixels.tobytes(), pixels.shape, kind)


@functools.cache
def _encoded(pixels: bytes, shape: tuple[int, ...], kind: str) -> bytes:
    """Many tests build the same sets, and encoding takes longest."""
    file = io.BytesIO()
    Image.fromarray(np.frombuffer(pixels, np.uint8).reshape(shape)).save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="session")
def encode() -> Callable[..., bytes]:
    """A picture file from an array of pixels."""
    return _encode


def _pack(path: Path, files: dict[str, bytes]) -> Path:
    """Files as a folder, a zip or a tar, by the suffix of `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    elif path.suffix in (".gz", ".tar"):
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    else:
        path.mkdir(exist_ok=True)
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    return path


@pytest.fixture(scope="session")
def pack() -> Callable[[Path, dict[str, bytes]], Path]:
    return _pack


def _shard(
    path: Path, contents: list[bytes | None], labels: list[int | None], names: list[str], picture: str, label: str
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    struct = pa.array(
        [{"bytes": content, "path": f"{row}.png"} for row, content in enumerate(contents)],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    features = {picture: {"_type": "Image"}, label: {"names": names, "_type": "ClassLabel"}}
    notes = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({picture: struct, label: pa.array(labels, pa.int64())}).replace_schema_metadata(notes)
    pq.write_table(table, path)
    return path


@pytest.fixture(scope="session")
def shard() -> Callable[..., Path]:
    """One parquet file as Hugging Face writes it."""
    return _shard


@dataclass
class TinyCifar:
    """CIFAR with two training pictures and one test picture a class, in all of its layouts."""

    classes: int
    train: np.ndarray
    train_labels: list[int]
    test: np.ndarray
    test_labels: list[int]
    names: list[str]

    def files(self, layout: str) -> dict[str, bytes]:
        """Members of the official archives, by name."""
        return self._python() if layout == "python" else self._binary()

    def _python(self) -> dict[str, bytes]:
        names = [name.encode() for name in self.names]
        if self.classes == 100:
            parts = {"train": (self.train, self.train_labels), "test": (self.test, self.test_labels)}
            files = {name: {b"data": flat(x), b"fine_labels": y, b"coarse_labels": y} for name, (x, y) in parts.items()}
            meta = {"meta": {b"fine_label_names": names, b"coarse_label_names": names}}
            folder = "cifar-100-python"
        else:
            cuts = np.array_split(np.arange(len(self.train)), 5)
            files = {
                f"data_batch_{n}": {b"data": flat(self.train[cut]), b"labels": [self.train_labels[i] for i in cut]}
                for n, cut in enumerate(cuts, 1)
            }
            files["test_batch"] = {b"data": flat(self.test), b"labels": self.test_labels}
            meta = {"batches.meta": {b"label_names": names, b"num_vis": 3072}}
            folder = "cifar-10-batches-py"
        return {f"{folder}/{name}": pickle.dumps(content, protocol=2) for name, content in (files | meta).items()}

    def _binary(self) -> dict[str, bytes]:
        names = ("\n".join(self.names) + "\n").encode()
        if self.classes == 100:
            return {
                "cifar-100-binary/train.bin": self._records(self.train, self.train_labels),
                "cifar-100-binary/test.bin": self._records(self.test, self.test_labels),
                "cifar-100-binary/fine_label_names.txt": names,
                "cifar-100-binary/coarse_label_names.txt": b"things\n",
            }
        cuts = np.array_split(np.arange(len(self.train)), 5)
        files = {
            f"cifar-10-batches-bin/data_batch_{n}.bin": self._records(
                self.train[cut], [self.train_labels[i] for i in cut]
            )
            for n, cut in enumerate(cuts, 1)
        }
        files["cifar-10-batches-bin/test_batch.bin"] = self._records(self.test, self.test_labels)
        files["cifar-10-batches-bin/batches.meta.txt"] = names + b"\n"
        return files

    def _records(self, pixels: np.ndarray, labels: list[int]) -> bytes:
        columns = [np.array(labels, np.uint8)[:, None], flat(pixels)]
        if self.classes == 100:
            columns.insert(0, np.full((len(labels), 1), 7, np.uint8))  # the coarse label stands first
        return np.concatenate(columns, axis=1).tobytes()

    def parquet(self, train: list[Path], test: list[Path]) -> None:
        label = "fine_label" if self.classes == 100 else "label"
        for paths, pixels, labels in ((train, self.train, self.train_labels), (test, self.test, self.test_labels)):
            for path, cut in zip(paths, np.array_split(np.arange(len(pixels)), len(paths)), strict=True):
                contents = [_encode(pixels[i].transpose(1, 2, 0)) for i in cut]
                _shard(path, contents, [labels[i] for i in cut], self.names, "img", label)


def flat(pixels: np.ndarray) -> np.ndarray:
    return pixels.reshape(len(pixels), -1)


@pytest.fixture(scope="session")
def tiny_cifar() -> Callable[[int], TinyCifar]:
    def make(classes: int) -> TinyCifar:
        random = np.random.default_rng(classes)
        labels = random.permutation(np.repeat(np.arange(classes), 2)).tolist()
        return TinyCifar(
            classes,
            random.integers(0, 256, (2 * classes, 3, 32, 32), dtype=np.uint8),
            labels,
            random.integers(0, 256, (classes, 3, 32, 32), dtype=np.uint8),
            random.permutation(classes).tolist(),
            [f"kind_{label:02}" for label in range(classes)],
        )

    return make


@dataclass
class TinyTiny:
    """TinyImageNet with one training and one test picture a class, each of one colour by which it is known."""

    wnids: list[str]

    def picture(self, number: int, kind: str = "JPEG") -> bytes:
        return _encode(np.full((64, 64, 3), number, np.uint8), kind)

    def files(self) -> dict[str, bytes]:
        files = {
            "wnids.txt": "\n".join(reversed(self.wnids)).encode(),
            "words.txt": "\n".join(f"{wnid}\tthing" for wnid in self.wnids).encode(),
            "test/images/test_0.JPEG": self.picture(0),
        }
        lines = []
        for number, wnid in enumerate(self.wnids):
            files[f"train/{wnid}/images/{wnid}_0.JPEG"] = self.picture(number)
            files[f"train/{wnid}/{wnid}_boxes.txt"] = b"0\t0\t10\t10"
            files[f"val/images/val_{number}.JPEG"] = self.picture(number)
            lines.append(f"val_{number}.JPEG\t{wnid}\t0\t0\t62\t62")
        files["val/val_annotations.txt"] = ("\n".join(lines) + "\n").encode()
        return {f"tiny-imagenet-200/{name}": content for name, content in files.items()}

    def parquet(self, *paths: Path) -> None:
        """The classes are named backwards, as nothing promises their order."""
        contents = [self.picture(199 - label, "PNG") for label in range(200)]
        for path in paths:
            _shard(path, contents, list(range(200)), self.wnids[::-1], "image", "label")


@pytest.fixture(scope="session")
def tiny_tiny() -> TinyTiny:
    return TinyTiny([f"n{number:08}" for number in range(200)])


@dataclass
class Served:
    """A folder on an https server of this machine; some of its files are cut off, some have moved."""

    folder: Path
    port: int = 0
    asked: list[str] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def serve(authority, tmp_path_factory, monkeypatch) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("served"))
    authority.cert_pem.write_to_path(served.folder / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(served.folder / "authority.pem"))
    monkeypatch.delenv("https_proxy")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/")
            served.asked.append(name)
            if name in served.moved:
                self.send_response(302)
                self.send_header("Location", served.moved[name])
                self.end_headers()
            elif (served.folder / name).is_file():
                content = (served.folder / name).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: served.cut.get(name)])
            else:
                self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        served.port = running.server_address[1]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        running.shutdown()
        thread.join()
