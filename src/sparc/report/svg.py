"""Drawings as SVG: within a page, in the page's colours, or as a file that carries its own."""

from collections.abc import Callable, Iterable
from html import escape

from sparc.report.colours import LIGHT
from sparc.report.drawing import Area, Box, Dot, Drawing, Group, Line, Points, Shape, Text
from sparc.text import one_line

NAMESPACE = "http://www.w3.org/2000/svg"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

Colour = Callable[[str], str]


def inline(drawing: Drawing, key: str) -> str:
    """The drawing within a page, coloured by the page's variables; no other element of the page may have its key."""
    return _svg(drawing, key, _variable)


def icon(shapes: Iterable[Shape], size: float) -> str:
    """Shapes around the origin as a sign within a line of text, for screen readers not there."""
    box = " ".join(map(_number, (-size / 2, -size / 2, size, size)))
    drawn = "".join(_element(shape, _variable) for shape in shapes)
    return f'<svg class="icon" viewBox="{box}" aria-hidden="true">{drawn}</svg>'


def standalone(drawing: Drawing) -> str:
    """The drawing as an SVG file, in the colours of paper."""
    background = Box(0, 0, drawing.width, drawing.height, "paper")
    content = _svg(drawing, "figure", lambda name: LIGHT.get(name, name), (background,))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n'


def _svg(drawing: Drawing, key: str, colour: Colour, under: tuple[Shape, ...] = ()) -> str:
    width, height = _number(drawing.width), _number(drawing.height)
    lines = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{key}-title {key}-description" font-family="{escape(FONT)}">',
        f'<title id="{key}-title">{safe(drawing.title)}</title>',
        f'<desc id="{key}-description">{safe(drawing.description)}</desc>',
        *(_element(shape, colour) for shape in (*under, *drawing.shapes)),
        "</svg>",
    ]
    return "\n".join(lines)


def _element(shape: Shape | Group, colour: Colour) -> str:
    match shape:
        case Line():
            dash = f' stroke-dasharray="{" ".join(map(_number, shape.dash))}"' if shape.dash else ""
            return (
                f'<polyline points="{_points(shape.points)}" fill="none" stroke="{colour(shape.colour)}" '
                f'stroke-width="{_number(shape.width)}" stroke-linejoin="round"{dash}/>'
            )
        case Area():
            opacity = "" if shape.opacity == 1 else f' fill-opacity="{shape.opacity:g}"'
            return _with_note(
                f'polygon points="{_points(shape.points)}" fill="{colour(shape.colour)}"{opacity}', shape.note
            )
        case Box():
            rectangle = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
            attributes = " ".join(f'{name}="{_number(value)}"' for name, value in rectangle.items())
            return _with_note(f'rect {attributes} fill="{colour(shape.colour)}"', shape.note)
        case Dot():
            centre = f'cx="{_number(shape.x)}" cy="{_number(shape.y)}" r="{_number(shape.radius)}"'
            return _with_note(f'circle {centre} fill="{colour(shape.colour)}"', shape.note)
        case Text():
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            weight = ' font-weight="600"' if shape.bold else ""
            return (
                f'<text x="{_number(shape.x)}" y="{_number(shape.y)}" font-size="{_number(shape.size)}" '
                f'fill="{colour(shape.colour)}"{anchor}{weight}>{safe(shape.text)}</text>'
            )
        case Group():
            return f"<g{_group(shape)}>{''.join(_element(each, colour) for each in shape.shapes)}</g>"


def _group(group: Group) -> str:
    attributes = {
        "class": group.part,
        "data-series": "" if group.series is None else str(group.series),
        "transform": f"translate({_number(group.x)} {_number(group.y)})" if group.x or group.y else "",
        "display": "none" if group.hidden else "",
    }
    return "".join(f' {name}="{value}"' for name, value in attributes.items() if value)


def _variable(name: str) -> str:
    return f"var(--{name})" if name in LIGHT else name


def _with_note(element: str, note: str) -> str:
    name = element.partition(" ")[0]
    return f"<{element}><title>{safe(note)}</title></{name}>" if note else f"<{element}/>"


def _points(points: Points) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def safe(text: str) -> str:
    """Text within SVG or HTML, or within an attribute of theirs."""
    return escape(one_line(text))
