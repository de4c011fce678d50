"""Flat shapes in a frame, for parts of figures, faces and maps."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

Shape = tuple[str, tuple[float, ...], int]  # kind, coordinates in [0, 1] of the frame, which colour
Color = tuple[int, int, int]


def draw_shapes(
    image: Image.Image, shapes: Sequence[Shape], frame: tuple[float, float, float, float], colors: Sequence[Color]
) -> None:
    """Draw shapes in a frame (left, top, width, height in pixels): box, oval, polygon, top, line or arc."""
    left, top, width, height = frame
    draw = ImageDraw.Draw(image)
    for kind, at, colour in shapes:
        places = [left + value * width if place % 2 == 0 else top + value * height for place, value in enumerate(at)]
        fill, thick = colors[colour], max(2, round(width / 40))
        if kind == "box":
            draw.rectangle(places, fill)
        elif kind == "oval":
            draw.ellipse(places, fill)
        elif kind == "line":
            draw.line(places, fill, thick)
        elif kind == "arc":
            draw.arc(places, 0, 180, fill, thick)
        elif kind == "top":
            draw.pieslice(places, 180, 360, fill)
        else:
            draw.polygon(places, fill)


def pick_random_color(rng: np.random.Generator, low: int = 20, high: int = 236) -> Color:
    """Return a random color with components from `low` to `high` - 1."""
    red, green, blue = (int(value) for value in rng.integers(low, high, 3))
    return red, green, blue
