"""The brushes: noise, colour arithmetic, surface textures and the Sprite that things are drawn on.

A sprite knows which side the light comes from and shades every shape it is
given, so that the drawings in the other files only say shapes and colours.
Coordinates inside a sprite are in sprite heights: (0, 0) is top left, y = 1 the ground.
"""

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw

Color = tuple[int, int, int]
Point = tuple[float, float]
Texture = Callable[[np.random.Generator, tuple[int, int], float], np.ndarray]


def noise(rng: np.random.Generator, shape: tuple[int, int], cell: float | tuple[float, float]) -> np.ndarray:
    """Smooth random relief in about [-1, 1]; cell is the size of a bump in pixels, or (height, width) of one."""
    cell_y, cell_x = cell if isinstance(cell, tuple) else (cell, cell)
    height, width = shape
    if height * width > 100_000 and min(cell_y, cell_x) >= 5:
        # Large and smooth: half the size does, the scene is reduced by more than that in the end.
        half = noise(rng, ((height + 1) // 2, (width + 1) // 2), (cell_y / 2, cell_x / 2))
        return half.repeat(2, 0).repeat(2, 1)[:height, :width]
    total = np.zeros(shape, np.float32)
    for octave, weight in ((1, 0.65), (2.3, 0.35)):
        rows = max(2, int(height * octave / cell_y) + 2)
        columns = max(2, int(width * octave / cell_x) + 2)
        grid = rng.random((min(rows, height + 2), min(columns, width + 2)), dtype=np.float32) * 2 - 1
        total += weight * np.asarray(Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC))
    return total


def mix(a: Sequence[float], b: Sequence[float], share: float) -> Color:
    """The colour `share` of the way from a to b."""
    return tuple(round(x + (y - x) * share) for x, y in zip(a, b, strict=True))


def lighter(colour: Sequence[float], factor: float) -> Color:
    return tuple(int(min(255, max(0, channel * factor))) for channel in colour)


def jitter(rng: np.random.Generator, colour: Sequence[float], amount: float = 12) -> Color:
    """A neighbour of a colour: brightness moves more than hue, as pigments do."""
    brightness, *hue = rng.standard_normal(4).tolist()
    return tuple(min(255, max(0, int(c + amount * (brightness + h / 2.5)))) for c, h in zip(colour, hue, strict=True))


def palette(rng: np.random.Generator, a: Color, b: Color, share: np.ndarray, amount: float) -> list[Color]:
    """`mix` and `jitter` for many strokes at once; share (N,) is clipped to [0, 1]."""
    share = np.clip(share, 0, 1)[:, None]
    moved = amount * (rng.standard_normal((len(share), 1)) + rng.standard_normal((len(share), 3)) / 2.5)
    colors = np.array(a) * (1 - share) + np.array(b) * share + moved
    return [tuple(colour) for colour in np.clip(colors, 0, 255).astype(int).tolist()]


def pick(rng: np.random.Generator, options: Sequence):
    """One of the options; rng.choice would turn tuples into arrays."""
    return options[int(rng.integers(len(options)))]


def smooth(points: Sequence[Point], steps: int = 7) -> list[Point]:
    """The closed Catmull-Rom curve through the points: organic outlines from a few of them."""
    p = np.array(points, float)
    before, after, beyond = np.roll(p, 1, 0), np.roll(p, -1, 0), np.roll(p, -2, 0)
    t = np.linspace(0, 1, steps, endpoint=False)[None, :, None]
    p, before, after, beyond = (a[:, None, :] for a in (p, before, after, beyond))
    curve = 0.5 * (
        2 * p
        + (after - before) * t
        + (2 * before - 5 * p + 4 * after - beyond) * t**2
        + (3 * p - before - 3 * after + beyond) * t**3
    )
    return [tuple(point) for point in curve.reshape(-1, 2)]


def brick(course: float = 0.03, length: float = 2.3, mortar: float = 1.22) -> Texture:
    """Courses of bricks (or roof tiles, with a dark joint); course is their height in sprite heights."""

    def texture(rng: np.random.Generator, shape: tuple[int, int], unit: float) -> np.ndarray:
        size = max(4.0, course * unit)
        y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
        row = np.floor(y / size).astype(int)
        along = x / (size * length) + 0.5 * (row % 2)
        column = np.floor(along).astype(int)
        tone = rng.normal(1, 0.09, (row.max() + 1, column.max() + 1)).astype(np.float32)[row, column]
        joint = ((y / size) % 1 < 0.16) | ((along % 1) < 0.16 / length)
        return np.where(joint, mortar, tone)

    return texture


def planks(width: float = 0.06, upright: bool = True) -> Texture:
    """Boards with a dark gap and long grain; width in sprite heights."""

    def texture(rng: np.random.Generator, shape: tuple[int, int], unit: float) -> np.ndarray:
        size = max(5.0, width * unit)
        y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
        across = (x if upright else y) / size
        board = np.floor(across).astype(int)
        tone = rng.normal(1, 0.07, board.max() + 1).astype(np.float32)[board]
        grain = noise(rng, shape, (size * 3, 3) if upright else (3, size * 3))
        return np.where(across % 1 < 0.12, 0.68, tone + 0.1 * grain)

    return texture


class Sprite:
    """One thing on a transparent ground, lit from the left (lit = -1) or from the right (lit = 1)."""

    def __init__(self, rng: np.random.Generator, height: int, aspect: float, lit: int):
        self.rng, self.unit, self.lit = rng, float(height), lit
        self.image = Image.new("RGBA", (max(8, int(height * aspect)), height), (0, 0, 0, 0))
        self.draw = ImageDraw.Draw(self.image)

    def pixels(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self.unit, y * self.unit) for x, y in points]

    def poly(self, points: Sequence[Point], colour: Color, **look) -> None:
        """A filled outline; look as in `_paint`."""
        mask = Image.new("L", self.image.size)
        ImageDraw.Draw(mask).polygon(self.pixels(points), fill=255)
        self._paint(mask, colour, **look)

    def blob(self, points: Sequence[Point], colour: Color, **look) -> None:
        self.poly(smooth(points), colour, **look)

    def ellipse(self, x: float, y: float, rx: float, ry: float, colour: Color, **look) -> None:
        mask = Image.new("L", self.image.size)
        ImageDraw.Draw(mask).ellipse(self._box(x, y, rx, ry), fill=255)
        self._paint(mask, colour, **look)

    def rect(self, x0: float, y0: float, x1: float, y1: float, colour: Color, **look) -> None:
        self.poly([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour, **look)

    def dot(self, x: float, y: float, rx: float, ry: float, colour: Color) -> None:
        """A flat, quick ellipse: one touch of the brush among hundreds."""
        self.draw.ellipse(self._box(x, y, rx, ry), fill=(*colour, 255))

    def line(self, points: Sequence[Point], width: float, colour: Color) -> None:
        self.draw.line(self.pixels(points), fill=(*colour, 255), width=max(2, int(width * self.unit)), joint="curve")

    def dabs(self, centers: np.ndarray, sizes: np.ndarray, light: np.ndarray, dark: Color, bright: Color) -> None:
        """Many touches from dark to bright, the dark ones first: foliage, wool.

        centres (N, 2) in sprite heights; sizes (N,) radii; light (N,) 0 in the shade, 1 in the sun
        """
        order = np.argsort(light, kind="stable")
        tones = palette(self.rng, dark, bright, light[order], 7)
        for (x, y), radius, tone in zip(centers[order].tolist(), sizes[order].tolist(), tones, strict=True):
            self.dot(x, y, radius * 1.15, radius * 0.85, tone)

    def _box(self, x: float, y: float, rx: float, ry: float) -> list[float]:
        return [v * self.unit for v in (x - rx, y - ry, x + rx, y + ry)]

    def _paint(
        self,
        mask: Image.Image,
        colour: Color,
        shade: float = 0.12,
        grain: float = 0.06,
        round_: bool = False,
        texture: Texture | None = None,
    ) -> None:
        """Fill a mask: light falls off across it (round_: as on a barrel), grain and texture roughen it."""
        box = mask.getbbox()
        if box is None:
            return
        width, height = box[2] - box[0], box[3] - box[1]
        across = self.lit * np.linspace(-1, 1, width, dtype=np.float32)[None, :]
        down = np.linspace(1, -1, height, dtype=np.float32)[:, None]
        falloff = 0.5 - (across - 0.4) ** 2 if round_ else across
        light = 1 + shade * falloff + 0.4 * shade * down
        light = light + grain * noise(self.rng, (height, width), max(3.0, self.unit * 0.03))
        if texture is not None:
            light = light * texture(self.rng, (height, width), self.unit)
        surface = np.clip(light[..., None] * np.array(colour, np.float32), 0, 255).astype(np.uint8)
        painted = Image.fromarray(surface).convert("RGBA")
        self.image.paste(painted, box[:2], mask.crop(box))
