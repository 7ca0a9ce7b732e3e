"""Pictures drawn on the spot, for people who want to try things before they look for pictures of their own."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

from sparc.errors import InputError

SIDE = 48
UNLABELLED = 2
"""Pictures of each class, under names that tell nothing."""

_FINE = 4
"""Drawn at so many times the size, for smooth edges."""
_CANVAS = SIDE * _FINE

Colour = tuple[int, ...]
Kind = Callable[[ImageDraw.ImageDraw, Colour, Generator], None]


def draw_folders(folder: Path, pictures: int, seed: int) -> int:
    """A folder of class folders for each task, and `new` with pictures of all classes; all of it, or nothing.

    Says how many pictures are in `new`.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} is there already and not an empty folder: name a new one")
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.") as temporary:
            made = Path(temporary) / "demo"
            unlabelled = _draw_all(made, pictures, seed)
            if folder.exists():
                for part in made.iterdir():
                    part.rename(folder / part.name)
            else:
                made.rename(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): name a folder elsewhere") from error
    return unlabelled


def picture(kind: str, generator: Generator) -> Image.Image:
    """One picture: a bright colour on a dark one, and noise on both."""
    ground, colour = _colours(generator)
    image = Image.new("RGB", (_CANVAS, _CANVAS), ground)
    _KINDS[kind](ImageDraw.Draw(image), colour, generator)
    small = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX)).astype(np.float64)
    noise = generator.normal(0, generator.uniform(3, 15), small.shape)
    return Image.fromarray((small + noise).clip(0, 255).round().astype(np.uint8))


def _draw_all(folder: Path, pictures: int, seed: int) -> int:
    new = folder / "new"
    new.mkdir(parents=True)
    names = iter(np.random.default_rng(seed).permutation(UNLABELLED * len(_KINDS)).tolist())
    for task, kinds in TASKS.items():
        for kind in kinds:
            (folder / task / kind).mkdir(parents=True)
            # A generator of its own for each class: with more pictures, the first ones stay the same.
            generator = np.random.default_rng([seed, list(_KINDS).index(kind)])
            for _ in range(UNLABELLED):
                picture(kind, generator).save(new / f"{next(names) + 1:02}.png")
            for number in range(pictures):
                picture(kind, generator).save(folder / task / kind / f"{number + 1:03}.png")
    return UNLABELLED * len(_KINDS)


def _colours(generator: Generator) -> tuple[Colour, Colour]:
    """A dark colour and a bright one."""
    return tuple(generator.integers(0, 80, 3).tolist()), tuple(generator.integers(130, 256, 3).tolist())


def _centre_and_radius(generator: Generator) -> tuple[float, float, float]:
    """Centre and radius of something that lies wholly inside the picture."""
    radius = generator.uniform(0.28, 0.44) * _CANVAS
    x, y = generator.uniform(radius, _CANVAS - radius, 2)
    return x, y, radius


def _corners(x: float, y: float, radii: list[float], turn: float) -> list[tuple[float, float]]:
    """Corners at equal angles round a centre, each as far from it as the radii say."""
    angles = [turn + 2 * math.pi * corner / len(radii) for corner in range(len(radii))]
    return [
        (x + radius * math.sin(angle), y - radius * math.cos(angle))
        for radius, angle in zip(radii, angles, strict=True)
    ]


def _circle(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
    x, y, radius = _centre_and_radius(generator)
    draw.circle((x, y), radius, colour)


def _polygon(radii: list[float], turn: float = 0.0, swing: float = 0.3) -> Kind:
    """With a corner at each of these shares of the radius, turned, and then by chance a little more."""

    def drawn(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
        x, y, radius = _centre_and_radius(generator)
        corners = _corners(x, y, [share * radius for share in radii], turn + generator.uniform(-swing, swing))
        draw.polygon(corners, colour)

    return drawn


def _cross(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
    x, y, radius = _centre_and_radius(generator)
    width = round(generator.uniform(0.4, 0.6) * radius)
    start, right, end, left = _corners(x, y, [radius] * 4, generator.uniform(-0.3, 0.3))
    draw.line((start, end), colour, width)
    draw.line((right, left), colour, width)


def _ring(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
    x, y, radius = _centre_and_radius(generator)
    draw.circle((x, y), radius, outline=colour, width=round(generator.uniform(0.3, 0.45) * radius))


def _stripes(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
    step, start, turn = _pattern(generator)
    for number in range(-10, 20):
        along = start + number * step
        ends = [_turned(along, across, turn) for across in (-2.0 * _CANVAS, 3.0 * _CANVAS)]
        draw.line(ends, colour, round(step / 2))


def _dots(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
    step, start, turn = _pattern(generator)
    for row in range(-10, 20):
        for column in range(-10, 20):
            draw.circle(_turned(start + column * step, start + row * step, turn), 0.28 * step, colour)


def _checks(draw: ImageDraw.ImageDraw, colour: Colour, generator: Generator) -> None:
    step, start, turn = _pattern(generator)
    half = step / 2
    for row in range(-20, 40):
        for column in range(-20 + row % 2, 40, 2):
            left, top = start + column * half, start + row * half
            square = [(left, top), (left + half, top), (left + half, top + half), (left, top + half)]
            draw.polygon([_turned(x, y, turn) for x, y in square], colour)


def _pattern(generator: Generator) -> tuple[float, float, float]:
    """Distance from one mark to the next, where they start, and by what angle all of it is turned."""
    step = generator.uniform(0.3, 0.42) * _CANVAS
    return step, generator.uniform(0, step), generator.uniform(-0.4, 0.4)


def _turned(x: float, y: float, turn: float) -> tuple[float, float]:
    return x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)


TASKS: dict[str, dict[str, Kind]] = {
    "shapes": {"circle": _circle, "square": _polygon([1.0] * 4, math.pi / 4, 0.2), "triangle": _polygon([1.0] * 3)},
    "marks": {"cross": _cross, "ring": _ring, "star": _polygon([1.0, 0.45] * 5)},
    "patterns": {"stripes": _stripes, "dots": _dots, "checks": _checks},
}
_KINDS = {name: draw for kinds in TASKS.values() for name, draw in kinds.items()}
