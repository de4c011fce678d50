"""One postcard: choose what is in it, place it in depth, throw out what is hidden, paint, expose.

What hides too much is decided on the very masks that are painted, so the
labels are what can be seen and not what was meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import animals
import buildings
import numpy as np
import plants
import props
import vehicles
from biomes import Biome
from land import Land, paint_land, tufts
from light import CHANCES, LIGHTS, Light, over_snow, tinted
from paint import noise, pick
from PIL import Image, ImageDraw, ImageFilter

Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels
SCALE = 3  # painted this many times larger, then reduced: all the anti-aliasing there is
LEAST_SHARE = 0.5  # of a thing's pixels that must stay visible
LEAST_PIXELS = 170  # of the finished image
SIZES = ((320, 240), (320, 240), (320, 240), (320, 213), (320, 213), (240, 320), (240, 320), (213, 320), (300, 300))


@dataclass(frozen=True)
class Kind:
    """How a class is drawn and placed: metres high (toy-like), depths, how many stand together."""

    draw: object
    metres: tuple[float, float]
    depth: tuple[float, float]
    group: tuple[float, ...]


KINDS = {
    "tree": Kind(plants.tree, (4.4, 6.6), (0.12, 0.5), (0.45, 0.3, 0.15, 0.1)),
    "house": Kind(buildings.house, (3.6, 4.4), (0.14, 0.42), (0.65, 0.25, 0.1)),
    "windmill": Kind(buildings.windmill, (6.5, 8.5), (0.1, 0.27), (0.85, 0.15)),
    "lighthouse": Kind(buildings.lighthouse, (9.0, 13.0), (0.07, 0.17), (1.0,)),
    "boat": Kind(vehicles.boat, (3.6, 5.0), (0.1, 0.42), (0.6, 0.28, 0.12)),
    "balloon": Kind(vehicles.balloon, (0.16, 0.48), (0.0, 0.0), (0.6, 0.25, 0.15)),
    "sheep": Kind(animals.sheep, (1.4, 1.7), (0.3, 0.85), (0.35, 0.3, 0.2, 0.15)),
    "duck": Kind(animals.duck, (0.9, 1.15), (0.45, 0.9), (0.4, 0.3, 0.3)),
    "flower": Kind(plants.flower, (1.1, 1.5), (0.72, 1.03), (0.4, 0.35, 0.25)),
    "mushroom": Kind(plants.mushroom, (0.9, 1.25), (0.68, 1.0), (0.6, 0.4)),
    "fence": Kind(buildings.fence, (1.15, 1.4), (0.28, 0.72), (0.9, 0.1)),
    "tractor": Kind(vehicles.tractor, (2.2, 2.7), (0.22, 0.55), (0.95, 0.05)),
}
PROPS = {
    "rock": Kind(props.rock, (0.4, 0.9), (0.3, 0.95), (0.5, 0.5)),
    "bale": Kind(props.bale, (1.2, 1.5), (0.15, 0.5), (0.4, 0.3, 0.3)),
    "reeds": Kind(props.reeds, (1.3, 1.9), (0.6, 0.66), (0.3, 0.4, 0.3)),
    "snowman": Kind(props.snowman, (1.5, 1.8), (0.3, 0.7), (1.0,)),
    "parasol": Kind(props.parasol, (2.0, 2.4), (0.6, 0.8), (0.7, 0.3)),
}


@dataclass
class Thing:
    """A drawn sprite at its place; left and top in large pixels, depth t."""

    name: str
    sprite: Image.Image
    left: int
    top: int
    depth: float
    afloat: bool


def paint_scene(
    rng: np.random.Generator, biome: Biome, wanted: Sequence[str], size: tuple[int, int] | None = None
) -> tuple[Image.Image, list[tuple[str, Box]]]:
    """A finished picture and where the classes that can be seen in it are (a subset of wanted, in any order)."""
    small = size or pick(rng, SIZES)
    light = LIGHTS[int(rng.choice(len(LIGHTS), p=CHANCES))]
    season, side = pick(rng, biome.seasons), pick(rng, (-1, 1))
    light = over_snow(light) if season == "winter" else light
    land = paint_land(rng, (small[0] * SCALE, small[1] * SCALE), biome, season, light, side)
    things: list[Thing] = []
    extras = [str(prop) for prop in sorted(set(biome.props)) if rng.random() < 0.45]
    # Balloons last: they find the free sky, where a tower would otherwise stand in their stripes.
    for name in sorted([*wanted, *extras], key=lambda name: name == "balloon"):
        group = (KINDS | PROPS)[name].group
        for _ in range(1 + int(rng.choice(len(group), p=group))):
            things.append(_place(rng, name, land, biome, season, light, side, things))
    things.sort(key=lambda thing: thing.depth)
    things = visible_only(things, land.image.size)
    for thing in things:
        _compose(rng, land, thing, light, side)
    boxes = [(thing.name, _box(thing, small)) for thing in things if thing.name in KINDS]
    return _expose(rng, land, light, side, season, small), boxes


def _box(thing: Thing, size: tuple[int, int]) -> Box:
    """Left, top, right and bottom of a thing in the finished picture, whether or not others stand before it."""
    left, top, right, bottom = thing.sprite.getchannel("A").point(lambda alpha: 255 * (alpha > 127)).getbbox()
    left, top, right, bottom = thing.left + left, thing.top + top, thing.left + right, thing.top + bottom
    edges = max(0, left), max(0, top), min(size[0] * SCALE, right), min(size[1] * SCALE, bottom)
    return tuple(round(edge / SCALE, 1) for edge in edges)


def _depth(rng: np.random.Generator, name: str, biome: Biome) -> tuple[float, bool]:
    """A depth the class may have in this biome, and whether that is on the water."""
    low, high = (KINDS | PROPS)[name].depth
    if biome.water is None:
        return float(rng.uniform(low, high)), False
    top, bottom = biome.water
    if name in ("boat", "lighthouse") or (name == "duck" and rng.random() < 0.8):
        floor = max(low, top + 0.05)
        return float(rng.uniform(floor, max(floor + 0.04, min(high, bottom - 0.06)))), True
    far_bank = top > 0.1 and (name in ("house", "windmill") or (name == "tree" and rng.random() < 0.7))
    if far_bank:
        return float(rng.uniform(top - 0.035, top - 0.005)), False
    if name == "reeds":
        return float(rng.uniform(bottom - 0.01, bottom + 0.04)), False
    start = bottom + 0.09
    return float(rng.uniform(max(low, start), max(high, start + 0.08))), False


def _place(
    rng: np.random.Generator,
    name: str,
    land: Land,
    biome: Biome,
    season: str,
    light: Light,
    side: int,
    others: list[Thing],
) -> Thing:
    """Draw the thing at the size of its depth; of five spots take the one that hides least."""
    kind, (width, height) = (KINDS | PROPS)[name], land.image.size
    depth, afloat = _depth(rng, name, biome)
    metres = rng.uniform(*kind.metres)
    if name == "balloon":
        tall = int(metres * min(height, width * 1.1))
    else:
        tall = int(metres * depth * (height - land.horizon) / 2.3)
    mirrored = rng.random() < 0.5
    sprite = kind.draw(
        rng, max(24, min(tall, int(height * 0.95))), -side if mirrored else side, season, light.name == "dusk"
    )
    image = sprite.image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else sprite.image
    # A wide fence may be wider than a portrait: then it hangs over both edges.
    lefts = rng.uniform(*sorted((-0.18 * image.width, width - 0.82 * image.width)), 5)
    if name == "balloon":
        top = int(rng.uniform(0.02 * height, max(0.03 * height, land.horizon * 0.95 - image.height)))
    else:
        top = land.row(depth) - image.height
    crowding = [sum(_overlap(left, top, image, other) for other in others) for left in lefts]
    left = int(lefts[int(np.argmin(crowding))] if rng.random() < 0.75 or name == "balloon" else lefts[0])
    return Thing(name, image, left, top, depth, afloat)


def _overlap(left: float, top: float, image: Image.Image, other: Thing) -> float:
    """Shared area of the two boxes as a share of the smaller one."""
    across = min(left + image.width, other.left + other.sprite.width) - max(left, other.left)
    down = min(top + image.height, other.top + other.sprite.height) - max(top, other.top)
    smaller = min(image.width * image.height, other.sprite.width * other.sprite.height)
    return max(0.0, across) * max(0.0, down) / smaller


def visible_only(things: list[Thing], size: tuple[int, int]) -> list[Thing]:
    """Take out the worst hidden thing until all that stay are fairly visible; things are far to near."""
    kept = list(things)
    while kept:
        owner = np.full((size[1], size[0]), -1, np.int16)
        totals = []
        for i, thing in enumerate(kept):
            solid = np.asarray(thing.sprite.getchannel("A")) > 127
            totals.append(int(solid.sum()))
            x0, y0 = max(0, thing.left), max(0, thing.top)
            x1, y1 = min(size[0], thing.left + solid.shape[1]), min(size[1], thing.top + solid.shape[0])
            if x1 > x0 and y1 > y0:
                part = solid[y0 - thing.top : y1 - thing.top, x0 - thing.left : x1 - thing.left]
                owner[y0:y1, x0:x1][part] = i
        seen = np.bincount(owner[owner >= 0], minlength=len(kept))
        share = seen / np.maximum(totals, 1)
        share[seen < LEAST_PIXELS * SCALE**2] = 0
        worst = int(np.argmin(share))
        if share[worst] >= LEAST_SHARE:
            break
        del kept[worst]
    return kept


def _compose(rng: np.random.Generator, land: Land, thing: Thing, light: Light, side: int) -> None:
    """Shadow or reflection, then the thing itself, tinted by the hour and paled by the distance."""
    sprite, canvas = thing.sprite, land.image
    alpha = sprite.getchannel("A")
    foot = thing.top + sprite.height
    if thing.afloat:
        _reflect(rng, canvas, thing, light)
    elif thing.name != "balloon":
        _shadow(canvas, thing, light, side)
    haze = light.haze * (
        0.55 * (1 - min(thing.depth, 1)) ** 3 if thing.name != "balloon" else 0.3 * (1 - sprite.height / canvas.height)
    )
    colour = np.asarray(sprite.convert("RGB"), np.float32) * np.array(light.tint, np.float32)
    colour = np.minimum(colour, 255) * (1 - haze) + np.array(light.horizon, np.float32) * haze
    canvas.paste(Image.fromarray(colour.astype(np.uint8)), (thing.left, thing.top), alpha)
    if thing.name == "lighthouse" and light.name == "dusk":
        _beam(rng, canvas, thing)
    if land.tuft and not thing.afloat and thing.name != "balloon":
        solid = np.flatnonzero(np.asarray(alpha)[int(sprite.height * 0.94) :].any(axis=0))
        if solid.size:
            size = (canvas.height - land.horizon) * 0.05 * (0.1 + thing.depth)
            tufts(rng, canvas, land.tuft, thing.left + solid[0] - size, thing.left + solid[-1] + size, foot, size)


def _beam(rng: np.random.Generator, canvas: Image.Image, thing: Thing) -> None:
    """The light of the lantern, a soft wedge over the sea."""
    x, y = thing.left + thing.sprite.width / 2, thing.top + thing.sprite.height * 0.15
    way, reach = pick(rng, (-1, 1)), canvas.width * 0.6
    mask = Image.new("L", canvas.size)
    drop = reach * rng.uniform(-0.05, 0.12)
    wedge = [(x, y), (x + way * reach, y + drop - reach * 0.09), (x + way * reach, y + drop + reach * 0.09)]
    ImageDraw.Draw(mask).polygon(wedge, fill=80)
    ImageDraw.Draw(mask).ellipse([x - 26, y - 26, x + 26, y + 26], fill=190)
    canvas.paste((255, 238, 180), (0, 0), mask.filter(ImageFilter.GaussianBlur(9)))


def _shadow(canvas: Image.Image, thing: Thing, light: Light, side: int) -> None:
    """The silhouette laid on the ground, away from the light, and a dark touch where it stands."""
    alpha = thing.sprite.getchannel("A")
    width, height = alpha.size
    reach = int(height * light.reach) + 4
    flat = max(4, int(height * 0.16))
    box = (width + 2 * reach, flat * 3)
    slope = -side * reach / flat
    # Output row r below the foot shows the silhouette at height r * (height / flat), moved by slope * r.
    laid = alpha.transform(
        box, Image.Transform.AFFINE, (1, -slope, -reach + slope * flat, 0, -height / flat, height * 2 - 1)
    )
    laid = laid.filter(ImageFilter.BoxBlur(max(2, flat // 6))).point(lambda v: int(v * light.shadow))
    dark = tuple(int(c * 0.3) for c in tinted((60, 64, 110), light))
    canvas.paste(dark, (thing.left - reach, thing.top + height - flat), laid)


def _reflect(rng: np.random.Generator, canvas: Image.Image, thing: Thing, light: Light) -> None:
    sprite = thing.sprite
    tall = max(4, int(sprite.height * 0.6))
    mirror = sprite.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize((sprite.width, tall))
    pixels = np.asarray(mirror).copy()
    shift = (noise(rng, (tall, 3), (7, 3))[:, 1] * sprite.width * 0.07).astype(int)
    for row in range(tall):
        pixels[row] = np.roll(pixels[row], shift[row], axis=0)
    fade = np.linspace(0.55, 0.0, tall)[:, None]
    cover = Image.fromarray((pixels[..., 3] * fade).astype(np.uint8)).filter(ImageFilter.BoxBlur(2))
    colour = (pixels[..., :3] * np.array(light.tint) * 0.8).clip(0, 255).astype(np.uint8)
    canvas.paste(Image.fromarray(colour), (thing.left, thing.top + sprite.height - 2), cover)


def _expose(
    rng: np.random.Generator, land: Land, light: Light, side: int, season: str, small: tuple[int, int]
) -> Image.Image:
    """Reduce, then what a camera adds: glow of the sun, vignette, a little softness, sensor noise."""
    image = land.image.resize(small, Image.Resampling.LANCZOS).filter(
        ImageFilter.GaussianBlur(float(rng.uniform(0.15, 0.45)))
    )
    width, height = small
    y, x = np.mgrid[:height, :width].astype(np.float32)
    picture = np.asarray(image, np.float32)
    if light.name in ("golden", "dusk", "mist"):
        sun_x, sun_y = width * (0.5 + 0.5 * side), land.horizon / SCALE * 0.75
        distance = np.hypot(x - sun_x, y - sun_y) / max(small)
        glow = np.exp(-((distance / 0.42) ** 2))[..., None] * 0.34
        picture = picture * (1 - glow) + np.array((255, 226, 170), np.float32) * glow
    vignette = 1 - 0.2 * (((x / width - 0.5) ** 2 + (y / height - 0.5) ** 2) / 0.5)
    picture = picture * vignette[..., None] + rng.normal(0, rng.uniform(0.8, 2.4), (height, width, 1))
    if season == "winter" and rng.random() < 0.5:
        picture = _snowfall(rng, picture)
    return Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))


def _snowfall(rng: np.random.Generator, picture: np.ndarray) -> np.ndarray:
    height, width = picture.shape[:2]
    flakes = np.zeros((height, width), np.uint8)
    flakes[rng.integers(0, height, 170), rng.integers(0, width, 170)] = 255
    soft = np.asarray(Image.fromarray(flakes).filter(ImageFilter.GaussianBlur(0.8)), np.float32)
    cover = np.clip(soft / 70, 0, 0.9)[..., None]
    return picture * (1 - cover) + 250 * cover
