"""Images without things: grounds as landscapes have them, woven patterns, and a microscope's field of cells.

Grounds are noise with a spectrum of its own for each class (Voss, "Random fractal forgeries", 1985), in light of any
colour, so that no colour decides. Patterns are functions of two turned coordinates.
"""

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from annotator.benchmark.collections.shapes import random_colour
from annotator.benchmark.variants.small_objects import SIDE

Field = np.ndarray  # (SIDE, SIDE) floats


def noise(rng: np.random.Generator, steepness: float, across: float = 1.0) -> Field:
    """Return noise in [0, 1] whose amplitude falls with the frequency to the power of `steepness`.

    Args:
        rng: The source of chance.
        steepness: The power.
        across: Above 1, structures are so many times wider than high.
    """
    down, right = np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE) * across, indexing="ij")
    frequency = np.hypot(down, right)
    frequency[0, 0] = np.inf
    field = np.fft.ifft2(np.fft.fft2(rng.normal(size=(SIDE, SIDE))) / frequency**steepness).real
    low, high = np.quantile(field, [0.01, 0.99])
    return ((field - low) / (high - low)).clip(0, 1)


def _mixed(field: Field, dark: tuple[float, ...], light: tuple[float, ...]) -> np.ndarray:
    return np.asarray(dark) + field[..., None] * (np.asarray(light, float) - np.asarray(dark))


def _water(rng: np.random.Generator) -> np.ndarray:
    waves = noise(rng, float(rng.uniform(0.9, 1.4)), float(rng.uniform(4, 9)))
    return _mixed(waves**1.5, (20, 50, 80), (190, 215, 225))


def _dunes(rng: np.random.Generator) -> np.ndarray:
    wind = noise(rng, 2.2) * rng.uniform(8, 20)
    ripples = np.sin(np.arange(SIDE)[:, None] / rng.uniform(4, 12) + wind) / 2 + 0.5
    return _mixed(0.7 * ripples + 0.3 * noise(rng, 0.5), (130, 90, 50), (235, 205, 150))


def _woods(rng: np.random.Generator) -> np.ndarray:
    leaves = noise(rng, float(rng.uniform(0.5, 0.9))) * noise(rng, 1.6)
    return _mixed(leaves**0.7, (15, 30, 15), (120, 160, 70))


def _rock(rng: np.random.Generator) -> np.ndarray:
    ridges = 1 - np.abs(2 * noise(rng, float(rng.uniform(1.5, 1.9))) - 1)
    return _mixed(ridges**2 * 0.8 + 0.2 * noise(rng, 0.6), (60, 55, 55), (215, 210, 205))


def _clouds(rng: np.random.Generator) -> np.ndarray:
    cover = noise(rng, float(rng.uniform(1.7, 2.1)), float(rng.uniform(1, 3)))
    return _mixed(((cover - rng.uniform(0.2, 0.5)) * 2).clip(0, 1), (90, 140, 205), (245, 245, 250))


GROUNDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "water": _water,
    "dunes": _dunes,
    "woods": _woods,
    "rock": _rock,
    "clouds": _clouds,
}
MIXED = 0.2  # share of images that show two grounds


def grounds(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw one ground, or two with a wavy border between them, in the light of some hour; most are one of five."""
    count = 1 + int(rng.random() < MIXED)
    weights = np.arange(1, len(GROUNDS) + 1) ** -0.6
    shown = [str(name) for name in rng.choice(list(GROUNDS), count, replace=False, p=weights / weights.sum())]
    pixels = GROUNDS[shown[0]](rng)
    if count == 2:
        border = SIDE * rng.uniform(0.3, 0.7) + 40 * (noise(rng, 2.0)[0] - 0.5)
        below = np.arange(SIDE)[:, None] > border
        pixels = np.where(below[..., None], GROUNDS[shown[1]](rng), pixels)
    gray = pixels.mean(-1, keepdims=True)
    pixels = gray + (pixels - gray) * rng.uniform(0.0, 1.0)
    pixels = pixels * rng.uniform(0.6, 1.15) * rng.uniform(0.75, 1.2, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), shown


def _triangle(values: Field) -> Field:
    return np.abs(values % 2 - 1)


PATTERNS: dict[str, Callable[[Field, Field], Field]] = {  # coordinates in periods -> where the second colour is
    "stripes": lambda u, v: u % 1 < 0.5,
    "checks": lambda u, v: (u % 1 < 0.5) ^ (v % 1 < 0.5),
    "dots": lambda u, v: np.hypot(u % 1 - 0.5, v % 1 - 0.5) < 0.3,
    "rings": lambda u, v: np.abs(np.hypot(u % 1 - 0.5, v % 1 - 0.5) - 0.3) < 0.08,
    "zigzag": lambda u, v: (v + _triangle(2 * u)) % 1 < 0.5,
    "waves": lambda u, v: (v + 0.3 * np.sin(2 * np.pi * u)) % 1 < 0.5,
    "bricks": lambda u, v: (v % 1 < 0.1) | ((u / 2 + (np.floor(v) % 2) / 2) % 1 < 0.06),
    "triangles": lambda u, v: (u % 1) < (v % 1),
    "plaid": lambda u, v: (u % 1 < 0.2) | (v % 1 < 0.2) | ((u % 1 > 0.5) & (u % 1 < 0.55)),
    "crosses": lambda u, v: (
        ((np.abs(u % 1 - 0.5) < 0.08) & (np.abs(v % 1 - 0.5) < 0.3))
        | ((np.abs(v % 1 - 0.5) < 0.08) & (np.abs(u % 1 - 0.5) < 0.3))
    ),
}


def patterns(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw pieces of one to four cloths, each with a pattern at its own scale and angle, slightly out of focus."""
    shown = [str(name) for name in rng.choice(list(PATTERNS), min(1 + int(rng.poisson(0.7)), 4), replace=False)]
    down, right = np.mgrid[:SIDE, :SIDE].astype(float)
    border = noise(rng, 2.2) * 80
    pixels = np.zeros((SIDE, SIDE, 3))
    for place, name in enumerate(shown):
        angle, period = rng.uniform(0, np.pi), rng.uniform(14, 60)
        u = (right * np.cos(angle) + down * np.sin(angle)) / period
        v = (down * np.cos(angle) - right * np.sin(angle)) / period
        cloth = _mixed(PATTERNS[name](u, v).astype(float), random_colour(rng), random_colour(rng))
        is_here = (right + border) // ((SIDE + 80) / len(shown)) >= place
        pixels = np.where(is_here[..., None], cloth, pixels)
    pixels = pixels * (0.75 + 0.35 * noise(rng, 1.5)[..., None])
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    return image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 2)))), shown


CELLS = ("round", "rod", "ring", "spiky", "pair", "thread")


def cells(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw a stained field: cells of one kind in great number, of few others; kinds of very uneven frequency."""
    weights = np.arange(1, len(CELLS) + 1) ** -1.3
    count = min(1 + int(rng.poisson(0.9)), len(CELLS))
    shown = [str(name) for name in rng.choice(CELLS, count, replace=False, p=weights / weights.sum())]
    stain = np.array([rng.integers(200, 245), rng.integers(170, 225), rng.integers(200, 240)])
    image = Image.fromarray((stain - 25 * noise(rng, 1.8)[..., None]).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for place, name in enumerate(shown):
        body = (int(rng.integers(110, 190)), int(rng.integers(50, 130)), int(rng.integers(110, 190)))
        for _ in range(int(rng.integers(8, 30)) if place == 0 else int(rng.integers(1, 6))):
            _draw_cell(draw, name, rng, (body[0] // 2, body[1] // 2, body[2] // 2), body)
    return image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.5, 1.8)))), shown


def _draw_cell(draw: ImageDraw.ImageDraw, name: str, rng: np.random.Generator, dark, body) -> None:
    (x, y), r, angle = rng.uniform(10, SIDE - 10, 2), float(rng.uniform(10, 18)), float(rng.uniform(0, 2 * np.pi))
    along, up = np.cos(angle), np.sin(angle)

    def disc(x: float, y: float, r: float, fill) -> None:
        draw.ellipse((x - r, y - r, x + r, y + r), fill)

    if name == "round":
        disc(x, y, r, body)
        disc(x + r / 4, y, r / 3, dark)
    elif name == "ring":
        draw.ellipse((x - r, y - r, x + r, y + r), outline=body, width=5)
    elif name == "rod":
        draw.line((x - 1.6 * r * along, y - 1.6 * r * up, x + 1.6 * r * along, y + 1.6 * r * up), body, int(r * 0.8))
    elif name == "pair":
        for side in (-0.8, 0.8):
            disc(x + side * r * along, y + side * r * up, r, body)
            disc(x + side * r * along, y + side * r * up, r / 4, dark)
    elif name == "spiky":
        turns = angle + np.arange(18) * np.pi / 9
        reach = np.where(np.arange(18) % 2, r * 0.6, r * 1.3)
        draw.polygon(np.stack([x + reach * np.cos(turns), y + reach * np.sin(turns)], 1).ravel().tolist(), body)
    else:
        ways = np.cumsum(rng.normal(0, 0.35, 14)) + angle
        points = np.cumsum(np.stack([np.cos(ways), np.sin(ways)], 1) * 7, 0) + np.array([x, y])
        draw.line(points.ravel().tolist(), body, 3)
