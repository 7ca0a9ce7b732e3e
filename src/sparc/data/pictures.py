"""From the bytes of picture files, as they lie on people's disks, to arrays."""

import io
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from sparc.data.archive import unreadable
from sparc.data.progress import Progress
from sparc.data.skipped import Skipped
from sparc.errors import InputError, UnreadableError

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""Pillow knows dozens more; their parsers are old and nobody's photographs need them."""
EXTENSIONS = frozenset(
    ".png .jpg .jpeg .jpe .jfif .webp .bmp .dib .gif .tif .tiff .ppm .pgm .pbm .pnm .apng".split()  # noqa: SIM905
)
UNSUPPORTED_EXTENSIONS = frozenset(".heic .heif .hif .avif .jxl .jp2".split())  # noqa: SIM905
"""Of pictures that cannot be decoded here, as telephones leave them: such files are reported, not ignored."""
Named = tuple[str, bytes | UnreadableError]
"""A picture file's name and its content, or what kept it from being read."""
Fit = Literal["crop", "pad"]
"""How a picture becomes a square: its centre is cut out, or it is padded with the mean colour of its edge."""
Pixels = NDArray[np.uint8]
"""N × channels × height × width."""
Kept = NDArray[np.uint8] | NDArray[np.float32]
"""What is kept of pictures: they themselves, or features of them."""
SMALLEST_SIDE = 8
LARGEST_SIDE = 1024
"""The longest side, in pixels, of the pictures that the nets take."""
PIXELS = 64_000_000
"""The largest picture that is decoded, checked before a byte of it is."""

_CHUNK_PICTURES = 64
_CHUNK_BYTES = 16 * 2**20
_CHUNK_PIXELS = 4 * 2**20
"""Bytes of a chunk once it is decoded."""
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What undoes each value of the EXIF orientation."""


def is_hidden(part: str) -> bool:
    """Whether a folder or a file, by its own name, is hidden or what macOS adds to archives."""
    return part.startswith(".") or part == "__MACOSX"


def is_picture(name: str) -> bool:
    """Whether a file goes by the name of a picture; hidden files and what macOS adds to archives do not.

    >>> [is_picture(name) for name in ("cat/1.JPG", "cat/1.heic", "cat/notes.txt", "cat/._1.jpg", "__MACOSX/cat/1.jpg")]
    [True, True, False, False, False]
    """
    return not any(map(is_hidden, name.split("/"))) and _extension(name) in EXTENSIONS | UNSUPPORTED_EXTENSIONS


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a name, not a path


def decode(data: bytes, name: str, size: int | None = None, fit: Fit = "crop") -> NDArray[np.uint8]:
    """Height × width × RGB; with a `size`, a square of that many pixels a side."""
    with _quiet:
        return _prepared(_open(io.BytesIO(data), name), name, size, fit)


def from_pillow(image: Image.Image, name: str, size: int | None = None, fit: Fit = "crop") -> NDArray[np.uint8]:
    """As `decode`, of a picture that somebody has opened already."""
    with _quiet:
        return _prepared(image, name, size, fit)


def square_side(path: Path, fit: Fit = "crop") -> int:
    """The side of the square that a picture is cut or padded to, read from the file's header alone."""
    with _quiet:
        try:
            with path.open("rb") as file:
                return side_of(_open(file, str(path)), fit)
        except OSError as error:
            raise unreadable(path, error) from error


def square_side_of(data: bytes | UnreadableError, name: str, fit: Fit = "crop") -> int:
    """As `square_side`, from a file's content."""
    with _quiet:
        return side_of(_open(io.BytesIO(_readable(data)), name), fit)


def side_of(image: Image.Image, fit: Fit) -> int:
    """The side of the square that a picture is cut or padded to."""
    return max(image.size) if fit == "pad" else min(image.size)


def themselves(images: Pixels) -> Kept:
    """What is kept of pictures, where that is all of them."""
    return images


def decode_all(
    pictures: Iterable[Named],
    count: int,
    size: int,
    progress: Progress,
    *,
    fit: Fit | None,
    skipped: MutableMapping[int, Skipped] | None = None,
    places: Mapping[str, int] | None = None,
    keep: Callable[[Pixels], Kept] = themselves,
) -> Kept:
    """N × RGB × `size` × `size` from `count` names and contents; without a `fit` another size is an error.

    Some chunks are decoded at a time, so that hardly more than the result is ever in memory: the pictures, or what
    `keep` makes of each chunk of them. Where pictures do not come in the order of the result, `places` has the index of
    each by its name.

    Those that cannot be read are put into `skipped`, by their indices, and the result is without them; where that is
    None, the first of them is an error.
    """
    nothing = keep(np.empty((0, 3, size, size), np.uint8))
    result = np.empty((count, *nothing.shape[1:]), nothing.dtype)

    def work(start: int, chunk: list[Named]) -> tuple[int, list[int], NDArray[np.uint8]]:
        images = np.empty((len(chunk), 3, size, size), dtype=np.uint8)
        indices: list[int] = []
        for number, (name, data) in enumerate(chunk, start):
            index = number if places is None else places[name]
            try:
                content = _readable(data)
                pixels = decode(content, name) if fit is None else decode(content, name, size, fit)
            except UnreadableError as error:
                if skipped is None:
                    raise
                skipped[index] = Skipped(name, error.reason)  # not the error, whose traceback holds the content
                continue
            if pixels.shape != (size, size, 3):
                height, width, _ = pixels.shape
                raise InputError(
                    f"{name} is {width} × {height} pixels where {size} × {size} are expected: fetch the set again"
                )
            images[len(indices)] = pixels.transpose(2, 0, 1)
            indices.append(index)
        return start + len(chunk), indices, images[: len(indices)]

    def take(decoded: Future[tuple[int, list[int], NDArray[np.uint8]]]) -> int:
        done, indices, images = decoded.result()
        result[indices] = keep(images)
        progress("reading pictures", done, count)
        return done

    workers = min(os.cpu_count() or 1, 8)
    done = 0
    waiting: deque[Future[tuple[int, list[int], NDArray[np.uint8]]]] = deque()
    with _quiet, ThreadPoolExecutor(workers) as pool:
        try:
            for start, chunk in _chunks(pictures, max(1, min(_CHUNK_PICTURES, _CHUNK_PIXELS // (3 * size**2)))):
                waiting.append(pool.submit(work, start, chunk))
                if len(waiting) > 2 * workers:
                    done = take(waiting.popleft())
            while waiting:
                done = take(waiting.popleft())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    assert done == count
    if skipped:
        kept = [index for index in range(count) if index not in skipped]
        for place, index in enumerate(kept):  # within the array, as a second one may be too large for the memory
            result[place] = result[index]
        result.resize((len(kept), *result.shape[1:]), refcheck=False)
    return result


def to_grey(images: Pixels) -> Pixels:
    """N × 1 × height × width from N × RGB × height × width, as Pillow weighs the colours."""
    red, green, blue = np.moveaxis(images.astype(np.int32), 1, 0)
    grey: NDArray[np.int32] = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    return grey.astype(np.uint8)[:, None]


def _chunks(pictures: Iterable[Named], at_most: int) -> Iterator[tuple[int, list[Named]]]:
    start, total = 0, 0
    chunk: list[Named] = []
    for name, data in pictures:
        chunk.append((name, data))
        total += 0 if isinstance(data, UnreadableError) else len(data)
        if len(chunk) == at_most or total > _CHUNK_BYTES:
            yield start, chunk
            start, total, chunk = start + len(chunk), 0, []
    if chunk:
        yield start, chunk


def _readable(data: bytes | UnreadableError) -> bytes:
    if isinstance(data, UnreadableError):
        raise data
    return data


def _open(file: io.BufferedReader | io.BytesIO, name: str) -> Image.Image:
    try:
        image = Image.open(file, formats=FORMATS)
    except Exception as error:  # Pillow's parsers fail in every way that broken data can make Python fail
        raise _refused(name, error) from error
    if image.width * image.height > PIXELS:
        raise _too_large(name)
    return image


def _prepared(image: Image.Image, name: str, size: int | None, fit: Fit) -> NDArray[np.uint8]:
    try:
        if size is not None:
            scale = 2 * size / side_of(image, fit)  # twice the size leaves the filter below something to work on
            image.draft(None, (max(round(image.width * scale), 1), max(round(image.height * scale), 1)))
        turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
        image = _rgb(image)
        if size is not None and image.size != (size, size):
            image = _resized(image, size, fit)
        pixels = np.asarray(image if turn is None else image.transpose(turn))
        return pixels if size is None else _padded(pixels, size)
    except Exception as error:  # as above
        raise _refused(name, error) from error


def _resized(image: Image.Image, size: int, fit: Fit) -> Image.Image:
    """The centre square, or all of the picture with its longer side, brought to so many pixels."""
    side = side_of(image, fit)
    width, height = (min(side, length) for length in image.size)
    left, top = (image.width - width) / 2, (image.height - height) / 2
    target = max(round(size * width / side), 1), max(round(size * height / side), 1)
    box = (left, top, left + width, top + height)
    return image.resize(target, Image.Resampling.BICUBIC, box, reducing_gap=3.0)


def _padded(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """In the middle of a square of so many pixels a side, the rest of which has the mean colour of the edge."""
    height, width, _ = pixels.shape
    if (height, width) == (size, size):
        return pixels
    edge = np.concatenate((pixels[0], pixels[-1], pixels[1:-1, 0], pixels[1:-1, -1]))
    square = np.empty((size, size, 3), np.uint8)
    square[:] = edge.mean(0).round()
    top, left = (size - height) // 2, (size - width) // 2
    square[top : top + height, left : left + width] = pixels
    return square


def _rgb(image: Image.Image) -> Image.Image:
    """Transparent pixels lie on white, as people see them; deeper grey is brought to 8 bits."""
    if image.mode.startswith("I") or image.mode == "F":
        grey = np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0, neginf=0)
        image = Image.fromarray(_eight_bits(grey, image.mode))
    if image.has_transparency_data:
        with_alpha = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, with_alpha).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")  # which would copy: a tenth of the time


def _eight_bits(grey: NDArray[np.float64], mode: str) -> NDArray[np.uint8]:
    """Scaled by the depth that the mode states, else by the smallest usual one that holds the brightest pixel."""
    low, high = min(float(grey.min()), 0.0), float(grey.max())
    usual = (65535,) if mode.startswith("I;16") else (255, 65535) if mode == "I" else (1, 255, 65535)
    top = next((depth for depth in usual if high <= depth), high)
    return ((grey - low) * (255 / (top - low))).round().astype(np.uint8)


def _refused(name: str, error: Exception) -> UnreadableError:
    if isinstance(error, Image.DecompressionBombError):  # Pillow's own limit is higher, but it comes first
        return _too_large(name)
    if _extension(name) in UNSUPPORTED_EXTENSIONS:
        return UnreadableError(name, "is of a kind that is not read here: make a JPEG or a PNG of it")
    reason = "it is no picture of a known kind" if isinstance(error, UnidentifiedImageError) else str(error)
    return UnreadableError(name, f"cannot be decoded ({reason or type(error).__name__}): repair or remove it")


def _too_large(name: str) -> UnreadableError:
    return UnreadableError(name, f"has more than {PIXELS // 10**6} million pixels: make it smaller")


class _Quiet:
    """Silences Pillow's warnings about files that it can read all the same.

    The filters are the whole process's, so the first thread to enter sets them and the last to leave restores them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.filters = warnings.catch_warnings()
                self.filters.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.filters.__exit__(None, None, None)


_quiet = _Quiet()
