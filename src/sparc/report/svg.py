"""Drawings as SVG: within a page, in the page's colours, or as a file that carries its own."""

from collections.abc import Callable, Iterable
from html import escape

from sparc.report.colours import LIGHT
from sparc.report.drawing import Area, Box, Dot, Drawing, Line, Points, Shape, Words
from sparc.text import one_line

NAMESPACE = "http://www.w3.org/2000/svg"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

Colour = Callable[[str], str]


def inline(drawing: Drawing, key: str) -> str:
    """Coloured by the page's variables; the key makes it unlike any other element of the page."""
    return _svg(drawing, key, _variable)


def icon(shapes: Iterable[Shape], size: float) -> str:
    """A sign in a line of text, around the origin, that says nothing which the text does not."""
    box = " ".join(map(_number, (-size / 2, -size / 2, size, size)))
    drawn = "".join(_element(shape, _variable) for shape in shapes)
    return f'<svg class="icon" viewBox="{box}" aria-hidden="true">{drawn}</svg>'


def standalone(drawing: Drawing) -> str:
    """A whole file."""
    paper = Box(0, 0, drawing.width, drawing.height, "paper")
    content = _svg(drawing, "figure", lambda name: LIGHT.get(name, name), (paper,))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n'


def _svg(drawing: Drawing, key: str, colour: Colour, under: tuple[Shape, ...] = ()) -> str:
    width, height = _number(drawing.width), _number(drawing.height)
    lines = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{key}-title {key}-about" font-family="{escape(FONT)}">',
        f'<title id="{key}-title">{_text(drawing.title)}</title>',
        f'<desc id="{key}-about">{_text(drawing.about)}</desc>',
        *(_element(shape, colour) for shape in (*under, *drawing.shapes)),
        "</svg>",
    ]
    return "\n".join(lines)


def _element(shape: Shape, colour: Colour) -> str:
    match shape:
        case Line():
            dash = f' stroke-dasharray="{" ".join(map(_number, shape.dash))}"' if shape.dash else ""
            return (
                f'<polyline points="{_points(shape.points)}" fill="none" stroke="{colour(shape.colour)}" '
                f'stroke-width="{_number(shape.width)}" stroke-linejoin="round"{dash}/>'
            )
        case Area():
            opacity = "" if shape.opacity == 1 else f' fill-opacity="{shape.opacity:g}"'
            return _noted(
                f'polygon points="{_points(shape.points)}" fill="{colour(shape.colour)}"{opacity}', shape.note
            )
        case Box():
            place = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
            attributes = " ".join(f'{name}="{_number(value)}"' for name, value in place.items())
            return _noted(f'rect {attributes} fill="{colour(shape.colour)}"', shape.note)
        case Dot():
            centre = f'cx="{_number(shape.x)}" cy="{_number(shape.y)}" r="{_number(shape.radius)}"'
            return _noted(f'circle {centre} fill="{colour(shape.colour)}"', shape.note)
        case Words():
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            weight = ' font-weight="600"' if shape.bold else ""
            return (
                f'<text x="{_number(shape.x)}" y="{_number(shape.y)}" font-size="{_number(shape.size)}" '
                f'fill="{colour(shape.colour)}"{anchor}{weight}>{_text(shape.text)}</text>'
            )


def _variable(name: str) -> str:
    return f"var(--{name})" if name in LIGHT else name


def _noted(element: str, note: str) -> str:
    name = element.partition(" ")[0]
    return f"<{element}><title>{_text(note)}</title></{name}>" if note else f"<{element}/>"


def _points(points: Points) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    return escape(one_line(text))
