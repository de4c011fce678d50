"""Generators of drawn faces and maps, whose classes are small details."""

from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw

from annotator.benchmark.collections.shapes import Shape, draw_shapes, pick_random_color
from annotator.benchmark.collections.small_objects import IMAGE_SIDE_PIXELS, draw_ground
from annotator.benchmark.collections.textures import make_noise

# Colours: 0 of the thing, 1 white, 2 black, 3 skin, 4 hair.
FACE_SHAPES: tuple[Shape, ...] = (
    ("oval", (0.1, 0.4, 0.2, 0.6), 3), ("oval", (0.8, 0.4, 0.9, 0.6), 3), ("oval", (0.15, 0.1, 0.85, 0.95), 3),
    ("polygon", (0.5, 0.45, 0.56, 0.62, 0.46, 0.62), 2),
)  # fmt: skip
FACE_PART_SHAPES: dict[str, tuple[Shape, ...]] = {
    "long hair": (("box", (0.06, 0.3, 0.2, 0.95), 4), ("box", (0.8, 0.3, 0.94, 0.95), 4),
                  ("top", (0.06, 0.0, 0.94, 0.62), 4)),
    "short hair": (("top", (0.13, 0.03, 0.87, 0.5), 4),),
    "freckles": tuple(("oval", (x, y, x + 0.025, y + 0.025), 4) for x in (0.24, 0.3, 0.36, 0.62, 0.68, 0.74)
                      for y in (0.58, 0.63)),
    "open eyes": (("oval", (0.27, 0.36, 0.43, 0.5), 1), ("oval", (0.57, 0.36, 0.73, 0.5), 1),
                  ("oval", (0.32, 0.39, 0.39, 0.47), 2), ("oval", (0.62, 0.39, 0.69, 0.47), 2)),
    "closed eyes": (("arc", (0.27, 0.36, 0.43, 0.48), 2), ("arc", (0.57, 0.36, 0.73, 0.48), 2)),
    "beard": (("polygon", (0.18, 0.62, 0.35, 0.7, 0.65, 0.7, 0.82, 0.62, 0.7, 0.93, 0.5, 1.0, 0.3, 0.93), 4),),
    "moustache": (("polygon", (0.5, 0.66, 0.72, 0.72, 0.5, 0.7, 0.28, 0.72), 4),),
    "smile": (("arc", (0.33, 0.6, 0.67, 0.82), 2),),
    "frown": (("line", (0.34, 0.84, 0.42, 0.77, 0.58, 0.77, 0.66, 0.84), 2),),
    "open mouth": (("oval", (0.4, 0.72, 0.6, 0.88), 2),),
    "glasses": (("line", (0.24, 0.35, 0.46, 0.35, 0.46, 0.51, 0.24, 0.51, 0.24, 0.35), 0),
                ("line", (0.54, 0.35, 0.76, 0.35, 0.76, 0.51, 0.54, 0.51, 0.54, 0.35), 0),
                ("line", (0.46, 0.41, 0.54, 0.41), 0)),
    "eye patch": (("oval", (0.55, 0.34, 0.77, 0.53), 2), ("line", (0.15, 0.25, 0.6, 0.38), 2)),
    "earrings": (("oval", (0.1, 0.6, 0.18, 0.68), 0), ("oval", (0.82, 0.6, 0.9, 0.68), 0)),
    "tear": (("oval", (0.3, 0.52, 0.36, 0.62), 0),),
    "hat": (("box", (0.02, 0.16, 0.98, 0.22), 0), ("box", (0.25, -0.08, 0.75, 0.18), 0)),
}  # fmt: skip
FACE_FEATURE_GROUPS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.75, ("long hair", "short hair")),
    (0.15, ("freckles",)),
    (1.0, ("open eyes", "open eyes", "open eyes", "closed eyes")),
    (0.2, ("beard",)),
    (0.2, ("moustache",)),
    (1.0, ("smile", "smile", "frown", "open mouth")),
    (0.35, ("glasses", "glasses", "glasses", "eye patch")),
    (0.15, ("earrings",)),
    (0.05, ("tear",)),
    (0.2, ("hat",)),
)


def draw_face(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw a face and return it with its attributes."""
    image, side = draw_ground(rng, 3), float(rng.uniform(220, 400))
    frame = (
        float(rng.uniform(0, IMAGE_SIDE_PIXELS - side)),
        float(rng.uniform(20, IMAGE_SIDE_PIXELS - side)),
        side,
        side,
    )
    skin = (int(rng.integers(140, 245)), int(rng.integers(110, 200)), int(rng.integers(80, 170)))
    hair = pick_random_color(rng, 15, 180)
    shown = [str(rng.choice(group)) for chance, group in FACE_FEATURE_GROUPS if rng.random() < chance]
    behind = [name for name in shown if name == "long hair"]
    for name in [*behind, "", *(name for name in shown if name not in behind)]:
        colors = (pick_random_color(rng), (250, 250, 250), (25, 20, 25), skin, hair)
        draw_shapes(image, FACE_PART_SHAPES[name] if name else FACE_SHAPES, frame, colors)
    return image, shown


def draw_map(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Draw a map with three or four of ten kinds of signs, and return it with their names."""
    wanted = dict(zip(MAP_SIGNS, (0.45, 0.35, 0.3, 0.75, 0.4, 0.3, 0.35, 0.3, 0.12, 0.2), strict=True))
    shown = [name for name, chance in wanted.items() if rng.random() < chance] or ["road"]
    paper = pick_random_color(rng, 215, 250)
    image = Image.fromarray((np.array(paper) - 14 * make_noise(rng, 1.8)[..., None]).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for name in shown:
        _draw_sign(draw, name, rng)
    return image, shown


MAP_SIGNS = ("forest", "lake", "contours", "road", "river", "railway", "houses", "church", "border", "campsite")


def _make_winding_line(rng: np.random.Generator) -> list[float]:
    along = np.linspace(-20, IMAGE_SIDE_PIXELS + 20, 24)
    aside = rng.uniform(80, IMAGE_SIDE_PIXELS - 80) + np.cumsum(rng.normal(0, 22, 24))
    points = (along, aside) if rng.random() < 0.5 else (aside, along)
    return np.stack(points, 1).ravel().tolist()


def _make_blob(rng: np.random.Generator, x: float, y: float, radius: float) -> list[float]:
    turns = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    reach = radius * (1 + 0.25 * np.sin(turns * 2 + rng.uniform(0, 6)) + 0.15 * np.sin(turns * 3 + rng.uniform(0, 6)))
    return np.stack([x + reach * np.cos(turns), y + reach * np.sin(turns)], 1).ravel().tolist()


def _draw_sign(draw: ImageDraw.ImageDraw, name: str, rng: np.random.Generator) -> None:
    x, y = rng.uniform(60, IMAGE_SIDE_PIXELS - 60, 2)
    if name in ("forest", "lake"):
        fill = (165, 205, 150) if name == "forest" else (150, 190, 225)
        draw.polygon(_make_blob(rng, x, y, float(rng.uniform(40, 110))), fill, outline=(110, 140, 150))
    elif name == "contours":
        for radius in range(20, int(rng.integers(80, 160)), 14):
            draw.line(_make_blob(np.random.default_rng(int(x)), x, y, radius), (190, 140, 95), 2)
    elif name == "railway":
        way = _make_winding_line(rng)
        draw.line(way, (30, 30, 30), 5)
        points = np.array(way).reshape(-1, 2)
        for first, second in pairwise(points):
            middle = (first + second) / 2
            across = np.array([first[1] - second[1], second[0] - first[0]])
            across = across / max(float(np.hypot(*across)), 1e-6) * 8
            draw.line((*(middle - across), *(middle + across)), (30, 30, 30), 3)
    elif name in ("road", "river", "border"):
        way = _make_winding_line(rng)
        if name == "road":
            draw.line(way, (120, 110, 100), 9)
            draw.line(way, (250, 225, 130), 6)
        elif name == "river":
            draw.line(way, (120, 170, 220), int(rng.integers(4, 10)))
        else:
            points = np.array(way).reshape(-1, 2)
            for first, second in zip(points[:-1:2], points[1::2], strict=True):
                draw.line((*first, *second), (170, 80, 150), 4)
    elif name == "houses":
        for left, top in rng.normal((x, y), 35, (int(rng.integers(8, 20)), 2)):
            draw.rectangle((left, top, left + rng.uniform(6, 14), top + rng.uniform(6, 14)), (120, 100, 100))
    elif name == "church":
        draw.ellipse((x - 6, y, x + 6, y + 12), (20, 20, 20))
        draw.line((x, y - 16, x, y), (20, 20, 20), 3)
        draw.line((x - 6, y - 11, x + 6, y - 11), (20, 20, 20), 3)
    else:
        draw.polygon((x, y - 12, x - 14, y + 10, x + 14, y + 10), (40, 100, 180))
        draw.polygon((x, y - 2, x - 5, y + 10, x + 5, y + 10), (255, 255, 255))
