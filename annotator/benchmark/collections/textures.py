"""Images without objects: landscapes, woven patterns and microscopic cells.

Landscapes are noise with a spectrum per class (Voss, 1985).
"""

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from annotator.benchmark.collections.shapes import pick_random_color
from annotator.benchmark.collections.small_objects import IMAGE_SIDE_PIXELS

Field = np.ndarray  # (SIDE, SIDE) floats


def make_noise(rng: np.random.Generator, steepness: float, across: float = 1.0) -> Field:
    """Return random noise in [0, 1] with amplitude frequency ** -steepness, stretched horizontally by `across`."""
    down, right = np.meshgrid(
        np.fft.fftfreq(IMAGE_SIDE_PIXELS), np.fft.fftfreq(IMAGE_SIDE_PIXELS) * across, indexing="ij"
    )
    frequency = np.hypot(down, right)
    frequency[0, 0] = np.inf
    field = np.fft.ifft2(
        np.fft.fft2(rng.normal(size=(IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS))) / frequency**steepness
    ).real
    low, high = np.quantile(field, [0.01, 0.99])
    return ((field - low) / (high - low)).clip(0, 1)


def _blend_colors(field: Field, dark: tuple[float, ...], light: tuple[float, ...]) -> np.ndarray:
    return np.asarray(dark) + field[..., None] * (np.asarray(light, float) - np.asarray(dark))


def _draw_water(rng: np.random.Generator) -> np.ndarray:
    waves = make_noise(rng, float(rng.uniform(0.9, 1.4)), float(rng.uniform(4, 9)))
    return _blend_colors(waves**1.5, (20, 50, 80), (190, 215, 225))


def _draw_dunes(rng: np.random.Generator) -> np.ndarray:
    wind = make_noise(rng, 2.2) * rng.uniform(8, 20)
    ripples = np.sin(np.arange(IMAGE_SIDE_PIXELS)[:, None] / rng.uniform(4, 12) + wind) / 2 + 0.5
    return _blend_colors(0.7 * ripples + 0.3 * make_noise(rng, 0.5), (130, 90, 50), (235, 205, 150))


def _draw_woods(rng: np.random.Generator) -> np.ndarray:
    leaves = make_noise(rng, float(rng.uniform(0.5, 0.9))) * make_noise(rng, 1.6)
    return _blend_colors(leaves**0.7, (15, 30, 15), (120, 160, 70))


def _draw_rock(rng: np.random.Generator) -> np.ndarray:
    ridges = 1 - np.abs(2 * make_noise(rng, float(rng.uniform(1.5, 1.9))) - 1)
    return _blend_colors(ridges**2 * 0.8 + 0.2 * make_noise(rng, 0.6), (60, 55, 55), (215, 210, 205))


def _draw_clouds(rng: np.random.Generator) -> np.ndarray:
    cover = make_noise(rng, float(rng.uniform(1.7, 2.1)), float(rng.uniform(1, 3)))
    return _blend_colors(((cover - rng.uniform(0.2, 0.5)) * 2).clip(0, 1), (90, 140, 205), (245, 245, 250))


GROUND_DRAWERS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "water": _draw_water,
    "dunes": _draw_dunes,
    "woods": _draw_woods,
    "rock": _draw_rock,
    "clouds": _draw_clouds,
}
TWO_GROUNDS_SHARE = 0.2  # share of images that show two grounds


def draw_landscape(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw one or two kinds of ground with a wavy border in random light, and return the image with their names."""
    count = 1 + int(rng.random() < TWO_GROUNDS_SHARE)
    weights = np.arange(1, len(GROUND_DRAWERS) + 1) ** -0.6
    shown = [str(name) for name in rng.choice(list(GROUND_DRAWERS), count, replace=False, p=weights / weights.sum())]
    pixels = GROUND_DRAWERS[shown[0]](rng)
    if count == 2:
        border = IMAGE_SIDE_PIXELS * rng.uniform(0.3, 0.7) + 40 * (make_noise(rng, 2.0)[0] - 0.5)
        below = np.arange(IMAGE_SIDE_PIXELS)[:, None] > border
        pixels = np.where(below[..., None], GROUND_DRAWERS[shown[1]](rng), pixels)
    gray = pixels.mean(-1, keepdims=True)
    pixels = gray + (pixels - gray) * rng.uniform(0.0, 1.0)
    pixels = pixels * rng.uniform(0.6, 1.15) * rng.uniform(0.75, 1.2, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), shown


def _make_triangle_wave(values: Field) -> Field:
    return np.abs(values % 2 - 1)


PATTERN_FUNCTIONS: dict[
    str, Callable[[Field, Field], Field]
] = {  # coordinates in periods -> where the second colour is
    "stripes": lambda u, v: u % 1 < 0.5,
    "checks": lambda u, v: (u % 1 < 0.5) ^ (v % 1 < 0.5),
    "dots": lambda u, v: np.hypot(u % 1 - 0.5, v % 1 - 0.5) < 0.3,
    "rings": lambda u, v: np.abs(np.hypot(u % 1 - 0.5, v % 1 - 0.5) - 0.3) < 0.08,
    "zigzag": lambda u, v: (v + _make_triangle_wave(2 * u)) % 1 < 0.5,
    "waves": lambda u, v: (v + 0.3 * np.sin(2 * np.pi * u)) % 1 < 0.5,
    "bricks": lambda u, v: (v % 1 < 0.1) | ((u / 2 + (np.floor(v) % 2) / 2) % 1 < 0.06),
    "triangles": lambda u, v: (u % 1) < (v % 1),
    "plaid": lambda u, v: (u % 1 < 0.2) | (v % 1 < 0.2) | ((u % 1 > 0.5) & (u % 1 < 0.55)),
    "crosses": lambda u, v: (
        ((np.abs(u % 1 - 0.5) < 0.08) & (np.abs(v % 1 - 0.5) < 0.3))
        | ((np.abs(v % 1 - 0.5) < 0.08) & (np.abs(u % 1 - 0.5) < 0.3))
    ),
}


def draw_patterns(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw one to four woven patterns of random scale and angle, and return the image with their names."""
    shown = [
        str(name) for name in rng.choice(list(PATTERN_FUNCTIONS), min(1 + int(rng.poisson(0.7)), 4), replace=False)
    ]
    down, right = np.mgrid[:IMAGE_SIDE_PIXELS, :IMAGE_SIDE_PIXELS].astype(float)
    border = make_noise(rng, 2.2) * 80
    pixels = np.zeros((IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS, 3))
    for place, name in enumerate(shown):
        angle, period = rng.uniform(0, np.pi), rng.uniform(14, 60)
        u = (right * np.cos(angle) + down * np.sin(angle)) / period
        v = (down * np.cos(angle) - right * np.sin(angle)) / period
        cloth = _blend_colors(
            PATTERN_FUNCTIONS[name](u, v).astype(float), pick_random_color(rng), pick_random_color(rng)
        )
        is_here = (right + border) // ((IMAGE_SIDE_PIXELS + 80) / len(shown)) >= place
        pixels = np.where(is_here[..., None], cloth, pixels)
    pixels = pixels * (0.75 + 0.35 * make_noise(rng, 1.5)[..., None])
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    return image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 2)))), shown


CELL_KINDS = ("round", "rod", "ring", "spiky", "pair", "thread")


def draw_cells(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw a stained microscope field with many cells of one kind and few others, and return it with the kinds."""
    weights = np.arange(1, len(CELL_KINDS) + 1) ** -1.3
    count = min(1 + int(rng.poisson(0.9)), len(CELL_KINDS))
    shown = [str(name) for name in rng.choice(CELL_KINDS, count, replace=False, p=weights / weights.sum())]
    stain = np.array([rng.integers(200, 245), rng.integers(170, 225), rng.integers(200, 240)])
    image = Image.fromarray((stain - 25 * make_noise(rng, 1.8)[..., None]).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for place, name in enumerate(shown):
        body = (int(rng.integers(110, 190)), int(rng.integers(50, 130)), int(rng.integers(110, 190)))
        for _ in range(int(rng.integers(8, 30)) if place == 0 else int(rng.integers(1, 6))):
            _draw_cell(draw, name, rng, (body[0] // 2, body[1] // 2, body[2] // 2), body)
    return image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.5, 1.8)))), shown


def _draw_cell(draw: ImageDraw.ImageDraw, name: str, rng: np.random.Generator, dark, body) -> None:
    (x, y), r, angle = (
        rng.uniform(10, IMAGE_SIDE_PIXELS - 10, 2),
        float(rng.uniform(10, 18)),
        float(rng.uniform(0, 2 * np.pi)),
    )
    along, up = np.cos(angle), np.sin(angle)

    def draw_disc(x: float, y: float, r: float, fill) -> None:
        draw.ellipse((x - r, y - r, x + r, y + r), fill)

    if name == "round":
        draw_disc(x, y, r, body)
        draw_disc(x + r / 4, y, r / 3, dark)
    elif name == "ring":
        draw.ellipse((x - r, y - r, x + r, y + r), outline=body, width=5)
    elif name == "rod":
        draw.line((x - 1.6 * r * along, y - 1.6 * r * up, x + 1.6 * r * along, y + 1.6 * r * up), body, int(r * 0.8))
    elif name == "pair":
        for side in (-0.8, 0.8):
            draw_disc(x + side * r * along, y + side * r * up, r, body)
            draw_disc(x + side * r * along, y + side * r * up, r / 4, dark)
    elif name == "spiky":
        turns = angle + np.arange(18) * np.pi / 9
        reach = np.where(np.arange(18) % 2, r * 0.6, r * 1.3)
        draw.polygon(np.stack([x + reach * np.cos(turns), y + reach * np.sin(turns)], 1).ravel().tolist(), body)
    else:
        ways = np.cumsum(rng.normal(0, 0.35, 14)) + angle
        points = np.cumsum(np.stack([np.cos(ways), np.sin(ways)], 1) * 7, 0) + np.array([x, y])
        draw.line(points.ravel().tolist(), body, 3)
