"""The one way from pictures, as people have them, to what a model takes in."""

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, Union, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sparc.data.archive import LARGEST, names
from sparc.data.class_folders import suitable_size
from sparc.data.pictures import (
    LARGEST_SIDE,
    SMALLEST_SIDE,
    Fit,
    Pixels,
    decode,
    from_pillow,
    is_picture,
    side_of,
    square_side,
    to_grey,
)
from sparc.errors import InputError, UnreadableError, check_choices

if TYPE_CHECKING:
    from torch import Tensor

    from sparc.data.imageset import ImageSet

Picture = Image.Image | str | Path
"""A picture that somebody has opened already, or the path of one."""
Array = Union[NDArray[np.uint8], "Tensor"]
Pictures = Array | Sequence[Picture] | str | Path
"""numpy N × height × width [× channels], torch N × channels × height × width, both uint8 and taken as they are; or
Pillow pictures, paths, or one folder, which are brought to the model's size and channels."""
Square = NDArray[np.uint8]
"""A picture cut or padded to a square, side × side × RGB."""


@dataclass(frozen=True)
class InputShape:
    """What a model takes in: uint8 images, N × channels × height × width."""

    channels: int
    image_size: tuple[int, int]
    """Height and width."""
    fit: Fit = "crop"
    """How pictures that are no squares are made ones."""

    def __post_init__(self) -> None:
        check_choices(self)
        if not (1 <= self.channels <= 64 and all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in self.image_size)):
            raise InputError(
                f"pictures of {self} (channels, height, width) cannot be learned: they must have 1 to 64 channels and "
                f"sides of {SMALLEST_SIDE} to {LARGEST_SIDE} pixels"
            )

    def __str__(self) -> str:
        return " × ".join(map(str, (self.channels, *self.image_size)))

    @classmethod
    def suitable(cls, pictures: Pictures, side: int | None = None, fit: Fit = "crop") -> "InputShape":
        """For a model that is taught with these: arrays as they are, pictures in colour and of a usual size."""
        if is_array(pictures):
            channels, height, width = _from_array(pictures).shape[1:]
            return cls(channels, (height, width), fit)
        side = side or suitable_size([_square_side(each, fit) for each in _listed(pictures)])
        return cls(3, (side, side), fit)

    @property
    def side(self) -> int:
        """Height and width of the squares that pictures are brought to."""
        return self.image_size[0]

    def check(self, shape: Sequence[int]) -> None:
        """Refuse images of another shape: channels, height and width."""
        if tuple(shape) != (self.channels, *self.image_size):
            given = " × ".join(map(str, shape))
            raise InputError(f"the model takes pictures of {self} (channels, height, width), not of {given}")

    def check_takes_pictures(self, model: Path | str = "the model") -> None:
        """Refuse a model that takes arrays alone, as no picture can be made to suit it."""
        height, width = self.image_size
        if height != width:
            kind = f"{width} × {height} pixels, not for squares"
        elif self.channels not in (1, 3):
            kind = f"{self.channels} channels, not for grey or coloured ones"
        else:
            return
        raise InputError(
            f"{model} is for pictures of {kind}: give it such arrays in Python, or take another model for these"
        )

    def images(self, pictures: Pictures) -> "Tensor":
        """Any pictures, brought to this shape, as a tensor; arrays have to have it."""
        from torch import from_numpy  # which nobody else here has to wait for

        return from_numpy(self.arrays(pictures))

    def arrays(self, pictures: Pictures) -> Pixels:
        """Any pictures, brought to this shape; arrays have to have it."""
        if is_array(pictures):
            images = _from_array(pictures)
            self.check(images.shape[1:])
            return images
        self.check_takes_pictures()
        return self.from_squares([_square(each, self) for each in _listed(pictures)])

    def from_squares(self, squares: Sequence[Square]) -> Pixels:
        stacked = np.stack(squares) if squares else np.empty((0, self.side, self.side, 3), np.uint8)
        return self.from_rgb(np.ascontiguousarray(np.moveaxis(stacked, 3, 1)))

    def from_rgb(self, images: Pixels) -> Pixels:
        """N × RGB × height × width with as many channels as the model takes: one mixes them, more repeat them."""
        if self.channels == 3:
            return images
        return to_grey(images) if self.channels == 1 else images[:, np.arange(self.channels) % 3]

    def suited(self, pictures: "ImageSet") -> "ImageSet":
        """Coloured squares of this size, with labels, with as many channels as the model takes."""
        from torch import from_numpy

        return replace(pictures, images=from_numpy(self.from_rgb(pictures.images.numpy())))


def picture_paths(path: Path) -> list[Path]:
    """A folder's pictures, at any depth, or the path itself if it is no folder."""
    try:
        is_folder = path.is_dir()
    except OSError:
        return [path]  # reading it will say what is wrong
    if not is_folder:
        return [path]
    found = [path / name for name in names(path, is_picture)]
    if not found:
        raise InputError(f"{path} holds no pictures: name pictures, or a folder that holds some")
    return found


def some_of(pictures: Pictures, fit: Fit, side: int, count: int) -> tuple["Tensor", int]:
    """A few of them, from first to last, and the side of the usual one as it is; files and Pillow pictures are brought
    to a small size.
    """
    from torch import from_numpy

    every = pictures if is_array(pictures) else _listed(pictures)
    some = every[:: max(math.ceil(len(every) / count), 1)]
    if is_array(some):
        images = _from_array(some)
        return from_numpy(images), min(images.shape[2:])
    sides = [_square_side(each, fit) for each in some]
    return InputShape(3, (side, side), fit).images(some), int(statistics.median(sides or [0]))


def read_square(path: Path, shape: InputShape) -> Square:
    """A file's picture; errors call it “it”, for whoever shows them beside the path."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("it is neither a file nor a folder: name a picture")
        if path.stat().st_size > LARGEST:
            raise InputError(f"it is larger than {LARGEST // 2**20} MiB: make it smaller")
        return decode(path.read_bytes(), path.name, shape.side, shape.fit)
    except UnreadableError as error:
        raise InputError(error.reason) from error
    except FileNotFoundError as error:
        raise InputError("there is no such file or folder: check its name") from error
    except OSError as error:
        raise InputError(
            f"it cannot be read ({error.strerror or error}): check that it is a file and yours to read"
        ) from error


def _square(picture: Picture, shape: InputShape) -> Square:
    if isinstance(picture, Image.Image):
        return from_pillow(picture, "a picture", shape.side, shape.fit)
    try:
        return read_square(Path(picture), shape)
    except InputError as error:
        raise InputError(f"{picture}: {error}") from error


def is_array(pictures: object) -> TypeGuard[Array]:
    """Whether it is one of numpy's, or of torch's, which has been imported by whoever has such."""
    torch = sys.modules.get("torch")
    return isinstance(pictures, np.ndarray) or (torch is not None and isinstance(pictures, torch.Tensor))


def _from_array(pictures: Array) -> Pixels:
    is_numpys = isinstance(pictures, np.ndarray)
    kind = str(pictures.dtype).removeprefix("torch.")
    if kind != "uint8" or pictures.ndim not in (3, 4):
        raise InputError(
            f"an array of pictures is uint8 with 3 or 4 dimensions, not {kind} of shape {tuple(pictures.shape)}"
        )
    images = np.ascontiguousarray(pictures) if isinstance(pictures, np.ndarray) else pictures.cpu().numpy()
    if images.ndim == 3:
        return images[:, None]
    return np.ascontiguousarray(np.moveaxis(images, 3, 1)) if is_numpys else images


def _listed(pictures: Pictures) -> Sequence[Picture]:
    """Those that are no array."""
    return picture_paths(Path(pictures)) if isinstance(pictures, str | Path) else cast(Sequence[Picture], pictures)


def _square_side(picture: Picture, fit: Fit) -> int:
    return side_of(picture, fit) if isinstance(picture, Image.Image) else square_side(Path(picture), fit)
