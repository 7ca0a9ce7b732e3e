import io
import struct
import threading
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sparc.data.pictures import FORMATS, PIXELS, decode, decode_all, is_picture, square_side
from sparc.data.progress import no_progress
from sparc.errors import InputError

GRADIENT = np.linspace(0, 255, 40 * 30 * 3).astype(np.uint8).reshape(30, 40, 3)


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body)) + b"\0\0\0\1IDAT"


@pytest.mark.parametrize("kind", FORMATS)
def test_every_kind_comes_out_as_rgb(encode, kind):
    picture = decode(encode(GRADIENT, kind), "x")
    assert picture.shape == (30, 40, 3)
    assert picture.dtype == np.uint8
    lossy = {"JPEG": 12, "WEBP": 12, "GIF": 40}
    assert np.abs(picture.astype(int) - GRADIENT).max() <= lossy.get(kind, 0)


def test_transparent_pixels_lie_on_white():
    clear = Image.new("RGBA", (2, 1), (10, 20, 30, 0))
    clear.putpixel((1, 0), (10, 20, 30, 255))
    assert decode(saved(clear, "PNG"), "x").tolist() == [[[255, 255, 255], [10, 20, 30]]]
    assert decode(saved(clear.convert("LA"), "PNG"), "x")[0, 0].tolist() == [255, 255, 255]
    palette = clear.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE)
    index = palette.getpixel((0, 0))
    assert decode(saved(palette, "PNG", transparency=index), "x")[0, 0].tolist() == [255, 255, 255]
    assert decode(saved(palette, "PNG", transparency=bytes([0] * 8)), "x")[0, 0].tolist() == [255, 255, 255]
    assert decode(saved(Image.new("RGB", (1, 1), "red"), "PNG", transparency=(255, 0, 0)), "x").min() == 255


@pytest.mark.parametrize(
    ("image", "kind", "expected"),
    [
        (Image.fromarray(np.array([[0, 32768, 65535]], np.uint16)), "PNG", [0, 128, 255]),
        (Image.fromarray(np.array([[0, 32768, 65535]], np.uint16)), "TIFF", [0, 128, 255]),
        (Image.fromarray(np.array([[0, 100, 255]], np.int32)), "TIFF", [0, 100, 255]),
        (Image.fromarray(np.array([[-1000, 0, 1_000_000]], np.int32)), "TIFF", [0, 0, 255]),
        (Image.fromarray(np.array([[0, 0.5, 1]], np.float32)), "TIFF", [0, 128, 255]),
        (Image.fromarray(np.array([[np.nan, 20, 200]], np.float32)), "TIFF", [0, 20, 200]),
        (Image.fromarray(np.array([[False, True, True]])), "PNG", [0, 255, 255]),
        (Image.fromarray(np.array([[0, 7, 255]], np.uint8)), "PNG", [0, 7, 255]),
    ],
)
def test_grey_of_any_depth(image, kind, expected):
    assert decode(saved(image, kind), "x")[0].tolist() == [[value] * 3 for value in expected]


def test_cmyk():
    red = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    picture = decode(saved(red, "JPEG"), "x")
    assert picture[..., 0].min() > 240
    assert picture[..., 1:].max() < 15


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [None, 6])
def test_a_photograph_stands_upright(orientation, size):
    upright = np.zeros((6, 6, 3), np.uint8)
    upright[0, 1] = upright[0, 5] = upright[4, 5] = 255
    undone = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    image = Image.fromarray(upright)
    if orientation in undone:
        image = image.transpose(undone[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert np.array_equal(decode(saved(image, "PNG", exif=exif), "x", size), upright)


@pytest.mark.parametrize("shape", [(64, 200), (200, 64), (10, 3000), (1, 1), (84, 84)])
def test_the_centre_square_is_kept(encode, shape):
    pixels = np.zeros((*shape, 3), np.uint8)
    side = min(shape)
    top, left = (shape[0] - side) // 2, (shape[1] - side) // 2
    pixels[top : top + side, left : left + side] = 200
    picture = decode(encode(pixels), "x", 84)
    assert picture.shape == (84, 84, 3)
    assert picture[4:-4, 4:-4].min() >= 199


@pytest.mark.parametrize("shape", [(64, 200), (200, 64), (33, 3000), (1, 1), (84, 84), (83, 84)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_whole_picture_is_kept_if_it_is_padded(encode, shape, kind):
    """Green all over, with a rim of red that comes out as the colour of the padding."""
    height, width = (max(round(84 * side / max(shape)), 1) for side in shape)
    rim = max(max(shape) // 20, 1)
    pixels = np.zeros((*shape, 3), np.uint8)
    pixels[..., 0] = 200
    pixels[rim:-rim, rim:-rim] = (0, 200, 0)
    picture = decode(encode(pixels, kind), "x", 84, "pad").astype(int)
    assert picture.shape == (84, 84, 3)
    top, left = (84 - height) // 2, (84 - width) // 2
    inside = np.zeros((84, 84), bool)
    inside[top : top + height, left : left + width] = True
    padding, own = picture[~inside], picture[inside].reshape(height, width, 3)
    edge = np.concatenate((own[0], own[-1], own[1:-1, 0], own[1:-1, -1]))
    assert np.abs(padding - edge.mean(0)).max(initial=0) <= 0.5
    assert own[0, 0, 0] > 150
    if min(shape) > 6 * rim:
        assert own[height // 2, width // 2, 1] > 150


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_padded_photograph_stands_upright(orientation):
    upright = Image.effect_noise((31, 20), 90).convert("RGB")
    turns = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
    image = upright.transpose(turns[orientation]) if orientation in turns else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = decode(saved(image, "PNG", exif=exif), "x", 31, "pad")
    assert np.array_equal(turned, decode(saved(upright, "PNG"), "x", 31, "pad"))


def test_fine_stripes_turn_grey_and_not_into_a_pattern(encode):
    stripes = np.zeros((2000, 2000, 3), np.uint8)
    stripes[:, ::2] = 255
    for kind in ("PNG", "JPEG"):
        picture = decode(encode(stripes, kind), "x", 32)
        assert np.abs(picture.astype(int) - 127).max() < 12


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"<svg/>",
        b"\xff\xd8\xff",
        b"%PDF-1.7",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
    ],
)
def test_what_is_no_picture_is_named(data):
    with pytest.raises(InputError, match=r"cat/7\.png cannot be decoded .*: repair or remove it"):
        decode(data, "cat/7.png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "BMP"])
def test_a_cut_off_picture_is_named(encode, kind):
    data = encode(np.random.default_rng(0).integers(0, 256, (50, 50, 3), dtype=np.uint8), kind)
    with pytest.raises(InputError, match="holiday"):
        decode(data[: len(data) // 2], "holiday")


def test_a_picture_of_billions_of_pixels_is_refused_unread():
    for side in (8001, 12000, 14000, 60000):
        assert side * side > PIXELS
        tracemalloc.start()
        with pytest.raises(InputError, match=r"^bomb\.png has more than 64 million pixels: make it smaller$"):
            decode(png_header(side, side), "bomb.png")
        assert tracemalloc.get_traced_memory()[1] < 2**20
        tracemalloc.stop()


SEEDS = [saved(Image.fromarray(GRADIENT), kind) for kind in FORMATS] + [
    saved(Image.fromarray(GRADIENT).convert("P"), "PNG", transparency=bytes(range(200))),
    saved(Image.fromarray(GRADIENT), "TIFF", compression="tiff_lzw"),
    saved(Image.fromarray(GRADIENT), "JPEG", exif=b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x05\x01\x12\x00\x03"),
]


@settings(max_examples=200)
@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(st.tuples(st.integers(0, 399), st.integers(0, 255)), min_size=1, max_size=8),
    cut=st.none() | st.integers(0, 4000),
    size=st.sampled_from([None, 16]),
)
def test_broken_bytes_raise_nothing_but_input_errors(seed, changes, cut, size):
    content = bytearray(seed)
    for index, value in changes:
        content[index % len(content)] = value
    try:
        decode(bytes(content[:cut]), "x", size)
    except InputError as error:
        assert "x" in str(error)  # noqa: PT017


def test_warnings_stay_within_and_filters_are_restored():
    """Pillow warns of the palette's transparency; here a warning is an error."""
    noisy = saved(Image.new("P", (40, 40)), "PNG", transparency=bytes([1, 2, 3]))
    broken_exif = saved(Image.new("RGB", (40, 40)), "JPEG", exif=b"Exif\x00\x00II*\x00\x08\x00\x00\x00\xff\xff\x12")
    before = list(warnings.filters)
    threads = [
        threading.Thread(target=lambda: [decode(data, "x", 8) for data in [noisy, broken_exif] * 20]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_all_pictures_keep_their_order(encode):
    colours = np.random.default_rng(0).integers(0, 256, (300, 3), dtype=np.uint8)
    contents = [(str(n), encode(np.broadcast_to(colour, (8, 8, 3)).copy())) for n, colour in enumerate(colours)]
    steps: list[int] = []
    images = decode_all(iter(contents), 300, 8, lambda what, done, total: steps.append(done), fit=None)
    assert images.shape == (300, 3, 8, 8)
    assert images.dtype == np.uint8
    assert images.flags.c_contiguous
    assert np.array_equal(images[:, :, 3, 3], colours)
    assert steps == sorted(steps)
    assert steps[-1] == 300


def test_no_pictures_are_no_error():
    assert decode_all([], 0, 8, no_progress, fit="crop").shape == (0, 3, 8, 8)


def test_another_size_is_an_error_unless_it_may_be_resized(encode):
    contents = [("good", encode(np.zeros((8, 8, 3), np.uint8))), ("odd", encode(np.zeros((9, 8, 3), np.uint8)))]
    with pytest.raises(InputError, match="odd is 8 × 9 pixels where 8 × 8 are expected"):
        decode_all(contents, 2, 8, no_progress, fit=None)
    assert decode_all(contents, 2, 8, no_progress, fit="crop").shape == (2, 3, 8, 8)


def test_one_broken_picture_among_many_is_the_one_named(encode):
    good = encode(np.zeros((8, 8, 3), np.uint8))
    contents = [(f"picture-{n}", b"" if n == 133 else good) for n in range(500)]
    with pytest.raises(InputError, match="picture-133"):
        decode_all(contents, 500, 8, no_progress, fit=None)


def test_few_contents_are_held_at_a_time(encode):
    """Thousands of pictures are taken from the stream only as they are decoded."""
    good, taken, ahead = encode(np.zeros((8, 8, 3), np.uint8)), 0, []

    def stream():
        nonlocal taken
        for n in range(5000):
            taken += 1
            yield str(n), good

    decode_all(stream(), 5000, 8, lambda what, done, total: ahead.append(taken - done), fit=None)
    assert len(ahead) > 50
    assert max(ahead) <= 20 * 64


def test_the_side_of_a_square_comes_from_the_header(tmp_path):
    (tmp_path / "x.png").write_bytes(png_header(300, 200))
    assert square_side(tmp_path / "x.png") == 200
    assert square_side(tmp_path / "x.png", "pad") == 300
    (tmp_path / "y.png").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"y\.png"):
        square_side(tmp_path / "y.png")
    (tmp_path / "z.png").write_bytes(png_header(60000, 60000))
    with pytest.raises(InputError, match=r"z\.png has more than 64 million pixels"):
        square_side(tmp_path / "z.png")


@pytest.mark.parametrize("name", ["a/Thumbs.db", ".DS_Store", "a/.hidden/x.png", "notes.txt", "png", "a.png/b"])
def test_what_is_passed_over(name):
    assert not is_picture(name)


@pytest.mark.long
def test_two_thousand_damaged_pictures_are_refused_or_read(
    tmp_path: Path, fuzz: Callable[..., dict[str, float]]
) -> None:
    """No traceback, no hang, no memory, whatever the format."""
    picture = Image.effect_noise((60, 50), 80).convert("RGB")
    paths = []
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"):
        paths.append(tmp_path / kind)
        picture.save(paths[-1], kind)
    report = fuzz("picture", paths, 2100, seconds=120)
    assert report["tried"] == 2100
    assert report["refused"] > 200
    assert report["megabytes"] < 1024
