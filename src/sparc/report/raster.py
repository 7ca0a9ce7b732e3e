"""Drawings as PNG, by matplotlib: the same shapes where an SVG has them."""

import io
import warnings
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon, Rectangle

from sparc.report.colours import LIGHT
from sparc.report.drawing import Area, Box, Dot, Drawing, Line, Shape, Text, flattened
from sparc.text import one_line

UNITS_PER_INCH = 100
POINTS_PER_UNIT = 72 / UNITS_PER_INCH


def png(drawing: Drawing, scale: float = 2.5) -> bytes:
    """A picture with `scale` pixels to each unit of the drawing."""
    figure = Figure(figsize=(drawing.width / UNITS_PER_INCH, drawing.height / UNITS_PER_INCH), facecolor=_hex("paper"))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.axis("off")
    for layer, shape in enumerate(flattened(drawing.shapes)):
        _draw(shape, axes, layer)
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in letters that the font lacks
        figure.savefig(content, format="png", dpi=UNITS_PER_INCH * scale, metadata={"Title": one_line(drawing.title)})
    return content.getvalue()


def _draw(shape: Shape, axes: Axes, layer: int) -> None:
    colour = _hex(shape.colour)
    filled: dict[str, Any] = {"facecolor": colour, "linewidth": 0, "zorder": layer}
    match shape:
        case Line():
            width = shape.width * POINTS_PER_UNIT
            # matplotlib measures dashes in widths of the line.
            dash = [length / shape.width for length in shape.dash]
            across, down = zip(*shape.points, strict=True)
            line = Line2D(across, down, color=colour, linewidth=width, zorder=layer)
            if dash:
                line.set_linestyle((0, dash))
            axes.add_line(line)
        case Area():
            axes.add_patch(Polygon(shape.points, alpha=shape.opacity, **filled))
        case Box():
            axes.add_patch(Rectangle((shape.x, shape.y), shape.width, shape.height, **filled))
        case Dot():
            axes.add_patch(Circle((shape.x, shape.y), shape.radius, **filled))
        case Text():
            axes.text(
                shape.x,
                shape.y,
                one_line(shape.text),
                fontsize=shape.size * POINTS_PER_UNIT,
                color=colour,
                horizontalalignment={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
                verticalalignment="baseline",
                fontweight="bold" if shape.bold else "normal",
                parse_math=False,
                zorder=layer,
            )


def _hex(name: str) -> str:
    return LIGHT.get(name, name)
