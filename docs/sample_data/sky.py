"""What is far away: sky, sun, clouds, gulls and the hills along the horizon."""

import numpy as np
from biomes import Biome
from light import Light, tinted
from paint import mix, noise
from PIL import Image, ImageDraw, ImageFilter


def sky(rng: np.random.Generator, size: tuple[int, int], horizon: int, light: Light) -> Image.Image:
    width, height = size
    down = np.clip(np.linspace(0, height / horizon, height, dtype=np.float32), 0, 1)[:, None, None] ** 1.15
    sky = np.array(light.zenith, np.float32) * (1 - down) + np.array(light.horizon, np.float32) * down
    sky = np.broadcast_to(sky, (height, width, 3)) * (1 + 0.018 * noise(rng, (height, width), (40, 160)))[..., None]
    return Image.fromarray(np.clip(sky, 0, 255).astype(np.uint8))


def clouds(rng: np.random.Generator, image: Image.Image, horizon: int, light: Light) -> None:
    """Heaps of soft puffs on flat bases; painted small and enlarged, which is what makes them soft."""
    width, height = image.width // 3, image.height // 3
    count = int(rng.integers(5, 9)) if light.name in ("overcast", "mist") else int(rng.integers(1, 6))
    for _ in range(count):
        mask = Image.new("L", (width, height))
        draw = ImageDraw.Draw(mask)
        level = rng.uniform(0.08, 0.82)
        x, y, span = rng.uniform(0, width), horizon / 3 * level, width * rng.uniform(0.1, 0.22) * (1.25 - 0.8 * level)
        for _ in range(14):
            u = rng.uniform(-1, 1)
            r = span * rng.uniform(0.14, 0.34) * (1.1 - abs(u) * 0.7)
            draw.ellipse([x + u * span - r, y - r * 1.3, x + u * span + r, y + r * 0.5], fill=255)
        box = _grown(mask.getbbox(), 7, width, height)
        if box is None:
            continue
        soft = np.asarray(mask.crop(box).filter(ImageFilter.GaussianBlur(2.2)), np.float32) / 255
        rows = np.arange(box[1], box[3], dtype=np.float32)[:, None]
        lit = np.clip((y + span * 0.1 - rows) / (span * 0.5 + 1) + 0.35 * noise(rng, soft.shape, 9), 0, 1)[..., None]
        colour = np.array(light.cloud_base, np.float32) * (1 - lit) + np.array(light.cloud, np.float32) * lit
        alpha = soft * np.clip(0.85 + 0.4 * noise(rng, soft.shape, 14), 0, 1) * rng.uniform(0.6, 0.95)
        large = (soft.shape[1] * 3, soft.shape[0] * 3)
        layer = Image.fromarray(colour.astype(np.uint8)).resize(large, Image.Resampling.BICUBIC)
        cover = Image.fromarray((alpha * 255).astype(np.uint8)).resize(large, Image.Resampling.BICUBIC)
        image.paste(layer, (box[0] * 3, box[1] * 3), cover)


def _grown(box: tuple[int, int, int, int] | None, by: int, width: int, height: int) -> tuple[int, int, int, int] | None:
    """The box with a margin, inside the picture; None stays None (nothing was drawn)."""
    if box is None:
        return None
    return max(0, box[0] - by), max(0, box[1] - by), min(width, box[2] + by), min(height, box[3] + by)


def sun(rng: np.random.Generator, image: Image.Image, horizon: int, side: int) -> None:
    """A low disc on the side the light comes from."""
    x, y, r = (
        image.width * (0.5 + side * rng.uniform(0.28, 0.46)),
        horizon * rng.uniform(0.6, 0.95),
        image.width * 0.035,
    )
    for spread, strength in ((3.2, 60), (1.7, 90), (1.0, 255)):
        mask = Image.new("L", image.size)
        ImageDraw.Draw(mask).ellipse([x - r * spread, y - r * spread, x + r * spread, y + r * spread], fill=strength)
        soft = mask.filter(ImageFilter.BoxBlur(r * (spread - 0.9) * 0.6))
        image.paste((255, 240, 200), (0, 0), soft)


def gulls(rng: np.random.Generator, image: Image.Image, horizon: int) -> None:
    draw = ImageDraw.Draw(image)
    centre = rng.uniform(0.15, 0.85) * image.width
    for _ in range(int(rng.integers(3, 8))):
        x, y, w = centre + rng.normal(0, 90), horizon * rng.uniform(0.15, 0.6), rng.uniform(9, 17)
        dip = w * rng.uniform(0.2, 0.5)
        draw.line(
            [x - w, y - dip, x - w * 0.4, y - dip * 1.3, x, y, x + w * 0.4, y - dip * 1.3, x + w, y - dip],
            fill=(70, 74, 84),
            width=3,
        )


def _skyline(rng: np.random.Generator, width: int, sharp: bool) -> np.ndarray:
    """A ridge line in [0, 1] over the width."""
    line = noise(rng, (3, width), (3, width / rng.uniform(1.6, 3.5)))[1]
    if sharp:
        line = 1 - np.abs(line) * 1.6 + 0.16 * noise(rng, (3, width), (3, width / 22))[1]
    return (line - line.min()) / (np.ptp(line) + 1e-6)


def hills(rng: np.random.Generator, image: Image.Image, horizon: int, biome: Biome, season: str, light: Light) -> None:
    width = image.width
    mountains = biome.name in ("lake", "snow", "meadow") and rng.random() < 0.55
    layers = (3 if mountains else 2) if biome.name != "coast" else int(rng.integers(0, 2))
    for layer in range(layers):
        sharp = mountains and layer == 0
        near = (layer + 1) / max(layers, 1)
        lift = horizon * (rng.uniform(0.42, 0.6) if sharp else rng.uniform(0.14, 0.26) * (1.25 - 0.5 * near))
        ridge = horizon + 4 - lift * (0.25 + 0.75 * _skyline(rng, width, sharp))
        top = int(ridge.min())
        rows = np.arange(top, horizon + 6, dtype=np.float32)[:, None]
        inside = np.clip(rows - ridge[None, :], 0, 1.5) / 1.5
        tone = (118, 130, 150) if sharp else mix(biome.hill, biome.far, 0.35 * near)
        if season == "autumn" and not sharp:
            tone = mix(tone, (176, 122, 62), 0.4)
        tone = mix(tinted(tone, light), light.horizon, (0.3 + 0.4 * light.haze) * (1.1 - 0.62 * near))
        relief = noise(rng, (len(rows), width), (10, 26)) + 0.6 * noise(rng, (len(rows), width), (34, 120))
        colour = np.array(tone, np.float32) * (1 + 0.075 * relief)[..., None]
        if not sharp and season != "winter":
            # Steps of a coarse relief read as fields.
            colour *= (1 + 0.07 * np.round(2.2 * noise(rng, (len(rows), width), (lift * 0.5, width / 6))))[..., None]
        if sharp:
            snow_line = ridge[None, :] + lift * 0.24 * (1 + 0.9 * noise(rng, (len(rows), width), (26, 18)))
            snow = np.array(mix(tinted((246, 248, 252), light), light.horizon, 0.25), np.float32)
            colour = np.where((rows < snow_line)[..., None], snow * (1 + 0.06 * relief[..., None]), colour)
        painted = Image.fromarray(np.clip(colour, 0, 255).astype(np.uint8))
        image.paste(painted, (0, top), Image.fromarray((inside * 255).astype(np.uint8)))
