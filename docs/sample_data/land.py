"""The land from the horizon to our feet, and where things may stand on it.

Depth is a number t: 0 at the horizon, 1 at the bottom edge. On flat land seen
from eye height the size of a thing is proportional to its t, which is all the
perspective the scenes need.
"""

from dataclasses import dataclass

import numpy as np
from biomes import Biome
from light import Light, tinted
from paint import Color, jitter, lighter, mix, noise, palette
from PIL import Image, ImageDraw, ImageFilter
from sky import clouds, gulls, hills, sky, sun


@dataclass
class Land:
    """A painted backdrop; the horizon in pixels and the colour of the tufts that grow around feet."""

    image: Image.Image
    horizon: int
    tuft: Color | None

    def row(self, t: float) -> int:
        return int(self.horizon + t * (self.image.height - self.horizon))


LEAVES = ((206, 112, 40), (178, 70, 36), (222, 164, 66), (120, 76, 44))


def paint_land(
    rng: np.random.Generator, size: tuple[int, int], biome: Biome, season: str, light: Light, side: int
) -> Land:
    """Back to front: sky, clouds, hills, ground, water, path, strokes."""
    _width, height = size
    horizon = int(height * rng.uniform(0.36, 0.5))
    image = sky(rng, size, horizon, light)
    if light.name in ("golden", "dusk"):
        sun(rng, image, horizon, side)
    clouds(rng, image, horizon, light)
    if light.name != "dusk" and rng.random() < 0.3:
        gulls(rng, image, horizon)
    hills(rng, image, horizon, biome, season, light)
    near, far = biome.near, biome.far
    if season == "autumn" and biome.name != "autumn":
        near, far = mix(near, (150, 116, 56), 0.45), mix(far, (190, 160, 90), 0.45)
    near, far = tinted(jitter(rng, near, 6), light), mix(tinted(far, light), light.horizon, 0.35 * light.haze)
    land = Land(image, horizon, None if biome.name in ("snow", "coast") else near)
    _ground(rng, land, near, far, 0.022 if season == "winter" else 0.085)
    if light.name == "noon" and season != "winter":
        _cloud_shadows(rng, land)
    if biome.name == "field":
        _furrows(rng, land, near)
    if biome.name == "village" or (biome.name == "meadow" and rng.random() < 0.35):
        _path(rng, land, tinted((198, 178, 148), light), far)
    if biome.water:
        _water(rng, land, biome.water, light, near)
    if biome.name not in ("snow", "coast"):
        _strokes(rng, land, near, far, biome)
    elif biome.name == "snow":
        _drifts(rng, land, light)
    return land


def _ground(rng: np.random.Generator, land: Land, near: Color, far: Color, rough: float) -> None:
    """Far colour to near colour; patches of relief that are flatter the farther they are."""
    width, start = land.image.width, land.horizon
    height = land.image.height - start
    depth = np.linspace(0, 1, height, dtype=np.float32)
    base = np.array(far, np.float32) * (1 - depth[:, None, None]) + np.array(near, np.float32) * depth[:, None, None]
    relief = noise(rng, (height, width), (60, 200)) + 0.5 * noise(rng, (height, width), (12, 30))
    # Rows are picked by log depth: one bump is then thin at the horizon and thick in front.
    rows = (np.log1p(9 * depth) / np.log(10) * (height - 1)).astype(int)
    ground = base * (1 + rough * relief[rows])[..., None]
    land.image.paste(Image.fromarray(np.clip(ground, 0, 255).astype(np.uint8)), (0, start))


def _strokes(rng: np.random.Generator, land: Land, near: Color, far: Color, biome: Biome) -> None:
    """Grass, stubble or fallen leaves, larger and looser toward the viewer; some blades grow in clumps."""
    draw, (width, height) = ImageDraw.Draw(land.image), land.image.size
    count, clumps = int(width * height / 230), int(rng.integers(14, 40))
    depth, spots, tall = rng.uniform(0.02, 1.04, count) ** 0.8, rng.uniform(0, width, count), np.ones(count)
    owner = rng.integers(clumps, size=clumps * 22)
    clump_t = rng.uniform(0.12, 1.04, clumps)[owner]
    spots = np.append(spots, rng.uniform(0, width, clumps)[owner] + rng.normal(0, 22, len(owner)) * clump_t)
    depth, tall = (
        np.append(depth, clump_t + rng.normal(0, 0.006, len(owner))),
        np.append(tall, np.full(len(owner), 1.8)),
    )
    if biome.water:
        dry = (depth < biome.water[0] - 0.02) | (depth > biome.water[1] + 0.03)
        depth, spots, tall = depth[dry], spots[dry], tall[dry]
    order = np.argsort(depth, kind="stable")
    depth, spots, tall = depth[order], spots[order], tall[order]
    rows = land.horizon + depth * (height - land.horizon)
    sizes = (height - land.horizon) * 0.06 * (0.12 + depth) * tall * rng.uniform(0.5, 1, len(depth))
    lean = spots + rng.normal(0, 0.28, len(depth)) * sizes
    tones = palette(rng, lighter(far, 0.96), lighter(near, 0.97), depth, 15)
    leafy = biome.name == "autumn"
    strokes = zip(spots.tolist(), rows.tolist(), lean.tolist(), sizes.tolist(), tones, strict=True)
    for i, (x, y, tip, size, tone) in enumerate(strokes):
        if leafy and i % 2:
            leaf = mix(LEAVES[i // 2 % len(LEAVES)], tone, 0.4)
            draw.ellipse([x - size * 0.3, y - size * 0.14, x + size * 0.3, y + size * 0.14], fill=leaf)
        else:
            draw.line([x, y, tip, y - size], fill=tone, width=max(1, int(size * 0.12)))


def tufts(
    rng: np.random.Generator, image: Image.Image, colour: Color, x0: float, x1: float, y: float, size: float
) -> None:
    """A few blades in front of a foot, so that a thing stands in the grass and not on it."""
    draw = ImageDraw.Draw(image)
    for x in rng.uniform(x0, x1, int(6 + (x1 - x0) / max(2.0, size * 0.35))):
        low = y + rng.uniform(0, size * 0.4)
        tone = lighter(jitter(rng, colour, 9), rng.uniform(0.8, 1.1))
        draw.line(
            [x, low, x + rng.normal(0, size * 0.25), low - size * rng.uniform(0.4, 1)],
            fill=tone,
            width=max(1, int(size * 0.14)),
        )


def _furrows(rng: np.random.Generator, land: Land, near: Color) -> None:
    """Rows of a crop that meet at the horizon."""
    draw, (width, height) = ImageDraw.Draw(land.image), land.image.size
    vanish = rng.uniform(0.2, 0.8) * width
    for x in np.arange(-3 * width, 4 * width, width / 11):
        # From a little below the horizon: at the point itself all the rows would clot.
        start = (vanish + (x - vanish) * 0.03, land.row(0.03))
        half = width / 62
        draw.polygon([start, (x + half, height), (x - half, height)], fill=lighter(near, rng.uniform(0.76, 0.86)))


def _path(rng: np.random.Generator, land: Land, colour: Color, far: Color) -> None:
    """A winding track of pressed earth and stones."""
    width, height = land.image.size
    start, end, swing = rng.uniform(0.35, 0.65), rng.uniform(0.25, 0.75), rng.uniform(-0.22, 0.22)
    depth = np.linspace(0.02, 1.05, 40)
    middle = width * (start + (end - start) * depth + swing * np.sin(depth**0.5 * np.pi * 1.6) * (0.25 + depth))
    half = width * 0.17 * depth + 2
    rows = [land.row(float(t)) for t in depth]
    outline = [*zip(middle - half, rows, strict=True), *list(zip(middle + half, rows, strict=True))[::-1]]
    mask = Image.new("L", land.image.size)
    ImageDraw.Draw(mask).polygon(outline, fill=235)
    texture = 1 + 0.12 * noise(rng, (height, width), (7, 16)) + 0.06 * noise(rng, (height, width), (40, 90))
    earth = np.clip(np.array(colour, np.float32) * texture[..., None], 0, 255).astype(np.uint8)
    land.image.paste(Image.fromarray(earth), (0, 0), mask.filter(ImageFilter.GaussianBlur(3)))
    draw = ImageDraw.Draw(land.image)
    for t in np.sort(rng.uniform(0.1, 1, 150)):
        row = land.row(float(t))
        x = float(np.interp(row, rows, middle)) + rng.uniform(-0.9, 0.9) * width * 0.17 * t
        r = width * 0.011 * t * rng.uniform(0.5, 1.2)
        draw.ellipse(
            [x - r, row - r * 0.5, x + r, row + r * 0.5], fill=lighter(jitter(rng, colour, 10), rng.uniform(0.78, 1.12))
        )


def _water(rng: np.random.Generator, land: Land, span: tuple[float, float], light: Light, bank: Color) -> None:
    """The sky upside down, deeper in tone, broken by ripples that grow toward the viewer."""
    width, height = land.image.size
    top, bottom = land.row(span[0]), land.row(span[1])
    wave = noise(rng, (3, width), (3, width / 5))[1] * (bottom - top) * 0.07
    rows = np.arange(height, dtype=np.float32)[:, None]
    upper = top + wave * (0.12 if span[0] > 0 else 0)
    inside = np.clip(rows - upper[None, :], 0, 3) / 3 * np.clip((bottom + wave)[None, :] - rows, 0, 5) / 5
    depth = np.clip((rows - top) / (bottom - top), 0, 1)
    deep = mix(tinted((46, 112, 142), light), light.zenith, 0.35)
    shine = mix(light.horizon, deep, 0.28)
    colour = np.array(shine, np.float32) * (1 - depth[..., None]) + np.array(deep, np.float32) * depth[..., None]
    ripple = noise(rng, (height, width), (5, 60)) * (0.4 + depth) + 0.6 * noise(rng, (height, width), (16, 170)) * depth
    colour = colour * (1 + 0.12 * ripple)[..., None]
    painted = Image.fromarray(np.clip(colour, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(painted)
    for t in np.sort(rng.uniform(0, 1, 420)):
        y, x, length = top + t * (bottom - top), rng.uniform(0, width), width * rng.uniform(0.008, 0.04) * (0.3 + t)
        tone = mix(light.horizon, deep, rng.uniform(0, 0.5)) if rng.random() < 0.6 else lighter(deep, 0.82)
        draw.line([x, y, x + length, y], fill=tone, width=max(1, int(4 * t)))
    land.image.paste(painted, (0, 0), Image.fromarray((inside * 255).astype(np.uint8)))
    edge = ImageDraw.Draw(land.image)
    foam = mix(light.cloud, shine, 0.25) if span[0] == 0 else lighter(bank, 0.6)
    line = [(x, bottom + float(wave[x])) for x in range(0, width, 6)]
    edge.line(line, fill=foam, width=7, joint="curve")
    if span[0] == 0:
        edge.line([(x, y - 16 - 6 * np.sin(x / 40)) for x, y in line], fill=mix(foam, shine, 0.3), width=4)
        edge.line([(x, y + 8) for x, y in line], fill=mix(bank, (120, 96, 66), 0.35), width=9, joint="curve")


def _cloud_shadows(rng: np.random.Generator, land: Land) -> None:
    """Broad dark bands that drift over open land."""
    width, height = land.image.size
    mask = Image.new("L", (width // 6, height // 6))
    draw = ImageDraw.Draw(mask)
    for _ in range(int(rng.integers(1, 4))):
        t = rng.uniform(0.05, 0.8)
        x, y, w = rng.uniform(0, width), land.row(float(t)), width * rng.uniform(0.2, 0.5)
        h = (height - land.horizon) * 0.11 * (0.25 + t)
        draw.ellipse([v / 6 for v in (x - w, y - h, x + w, y + h)], fill=int(rng.uniform(34, 62)))
    soft = mask.filter(ImageFilter.GaussianBlur(3)).resize((width, height), Image.Resampling.BILINEAR)
    below = soft.crop((0, land.horizon, width, height))
    land.image.paste((30, 46, 60), (0, land.horizon), below)


def _drifts(rng: np.random.Generator, land: Land, light: Light) -> None:
    """Blue hollows in the snow."""
    width, _height = land.image.size
    shade = tinted((178, 198, 224), light)
    for t in np.sort(rng.uniform(0.05, 1, 16)):
        mask = Image.new("L", land.image.size)
        x, y, w = rng.uniform(0, width), land.row(float(t)), width * rng.uniform(0.1, 0.3) * (0.4 + t)
        ImageDraw.Draw(mask).ellipse([x - w, y - w * 0.05, x + w, y + w * 0.07], fill=int(rng.uniform(50, 120)))
        land.image.paste(shade, (0, 0), mask.filter(ImageFilter.BoxBlur(10)))
