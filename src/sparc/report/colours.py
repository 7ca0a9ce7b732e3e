"""Colours: two palettes, for light and dark, the colours of heat maps, and how well two of them stand out."""

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1d2126",
    "muted": "#59626d",
    "grid": "#dfe3e8",
    "series-0": "#374e8a",
    "series-1": "#d4570a",
    "series-2": "#3d8f76",
    "series-3": "#af42cf",
    "series-4": "#634c00",
    "series-5": "#30343b",
}
DARK = {
    "paper": "#15181c",
    "ink": "#e9ecef",
    "muted": "#a4adb7",
    "grid": "#343a41",
    "series-0": "#4f8ff7",
    "series-1": "#e15e1a",
    "series-2": "#87cca5",
    "series-3": "#a7608b",
    "series-4": "#e4aa14",
    "series-5": "#e4e8ec",
}
"""Both are told apart by people who do not see red, green or blue, and stand out from their paper."""
SERIES = 6
"""How many colours there are for lines and bars."""
VIRIDIS = "440154482475414487355f8d2a788e21918c22a88444bf707ad151bddf26fde725"
"""The colour map in eleven steps."""
HEAT = [VIRIDIS[start : start + 6] for start in range(0, len(VIRIDIS), 6)]


def heat(value: float) -> str:
    """The colour of a percentage in a heat map.

    >>> heat(0), heat(100), heat(55)
    ('#440154', '#fde725', '#229c88')
    """
    position = min(max(value, 0.0), 100.0) / 100 * (len(HEAT) - 1)
    first = min(int(position), len(HEAT) - 2)
    pairs = zip(_channels(HEAT[first]), _channels(HEAT[first + 1]), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (position - first)):02x}" for low, high in pairs)


def contrast(first: str, second: str) -> float:
    """The contrast of two colours as WCAG has it, from 1 to 21.

    >>> round(contrast("#ffffff", "#000000"))
    21
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def readable_on(colour: str) -> str:
    """Black or white, whichever can be read on the colour.

    >>> readable_on(heat(10)), readable_on(heat(90))
    ('#ffffff', '#000000')
    """
    return max("#000000", "#ffffff", key=lambda text: contrast(text, colour))


def _channels(colour: str) -> list[int]:
    return [int(colour.removeprefix("#")[start : start + 2], 16) for start in (0, 2, 4)]


def _luminance(colour: str) -> float:
    shares = [channel / 255 for channel in _channels(colour)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
