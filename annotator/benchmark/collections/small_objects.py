"""Generated collections of small objects: 28 to 52 pixels in images of 480."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

IMAGE_SIDE_PIXELS, DRAWN_SIDE_PIXELS = 480, 160  # pixels of an image; of a thing when it is drawn
MIN_THING_PIXELS, MAX_THING_PIXELS = 28, 52  # pixels of a thing in an image
CLUTTER_SHAPES = 8  # lines and blobs on an image
JPEG_QUALITY = 88
Shape = tuple[str, tuple[float, ...], int]  # kind, coordinates in [0, 1], which colour

FROM_ABOVE: dict[str, tuple[Shape, ...]] = {
    "car": (("box", (0.1, 0.3, 0.9, 0.7), 0), ("box", (0.3, 0.34, 0.45, 0.66), 2), ("box", (0.7, 0.36, 0.78, 0.64), 2)),
    "truck": (("box", (0.05, 0.32, 0.68, 0.68), 1), ("box", (0.72, 0.34, 0.95, 0.66), 0)),
    "boat": (
        ("polygon", (0.05, 0.35, 0.7, 0.35, 0.95, 0.5, 0.7, 0.65, 0.05, 0.65), 1),
        ("box", (0.25, 0.4, 0.5, 0.6), 0),
    ),
    "plane": (
        ("box", (0.05, 0.45, 0.95, 0.55), 1),
        ("polygon", (0.45, 0.05, 0.6, 0.05, 0.65, 0.5, 0.6, 0.95, 0.45, 0.95, 0.5, 0.5), 1),
        ("polygon", (0.05, 0.3, 0.12, 0.3, 0.2, 0.5, 0.12, 0.7, 0.05, 0.7), 1),
    ),
    "house": (("box", (0.1, 0.15, 0.9, 0.5), 0), ("box", (0.1, 0.5, 0.9, 0.85), 3)),
    "tank": (
        ("oval", (0.1, 0.1, 0.9, 0.9), 1),
        ("oval", (0.25, 0.25, 0.75, 0.75), 3),
        ("oval", (0.45, 0.45, 0.55, 0.55), 2),
    ),
    "pool": (("oval", (0.05, 0.2, 0.95, 0.8), 1), ("oval", (0.12, 0.27, 0.88, 0.73), 4)),
    "court": (
        ("box", (0.05, 0.25, 0.95, 0.75), 5),
        ("box", (0.49, 0.25, 0.51, 0.75), 1),
        ("box", (0.05, 0.48, 0.95, 0.52), 1),
    ),
    "crossing": tuple(("box", (0.08 + 0.2 * n, 0.2, 0.18 + 0.2 * n, 0.8), 1) for n in range(5)),
    "windmill": (
        ("polygon", (0.5, 0.5, 0.44, 0.0, 0.56, 0.0), 1),
        ("polygon", (0.5, 0.5, 0.93, 0.75, 0.87, 0.85), 1),
        ("polygon", (0.5, 0.5, 0.07, 0.75, 0.13, 0.85), 1),
        ("oval", (0.42, 0.42, 0.58, 0.58), 2),
    ),
}

STAR_POINTS = (
    0.5, 0.02, 0.62, 0.38, 0.98, 0.38, 0.69, 0.6, 0.8, 0.95,
    0.5, 0.74, 0.2, 0.95, 0.31, 0.6, 0.02, 0.38, 0.38, 0.38,
)  # fmt: skip
ON_A_TABLE: dict[str, tuple[Shape, ...]] = {
    "star": (("polygon", STAR_POINTS, 0),),
    "heart": (
        ("oval", (0.08, 0.12, 0.52, 0.56), 0),
        ("oval", (0.48, 0.12, 0.92, 0.56), 0),
        ("polygon", (0.12, 0.46, 0.88, 0.46, 0.5, 0.92), 0),
    ),
    "cup": (
        ("oval", (0.5, 0.35, 0.95, 0.7), 0),
        ("oval", (0.6, 0.43, 0.86, 0.62), 1),
        ("box", (0.15, 0.25, 0.68, 0.85), 0),
    ),
    "key": (
        ("oval", (0.02, 0.3, 0.42, 0.7), 3),
        ("oval", (0.13, 0.41, 0.31, 0.59), 1),
        ("box", (0.4, 0.46, 0.98, 0.54), 3),
        ("box", (0.8, 0.5, 0.85, 0.68), 3),
        ("box", (0.9, 0.5, 0.95, 0.68), 3),
    ),
    "moon": (
        (
            "polygon",
            (0.55, 0.05, 0.3, 0.12, 0.12, 0.35, 0.12, 0.65, 0.3, 0.88, 0.55, 0.95, 0.4, 0.75, 0.34, 0.5, 0.4, 0.25),
            0,
        ),
    ),
    "fish": (
        ("oval", (0.05, 0.28, 0.75, 0.72), 0),
        ("polygon", (0.68, 0.5, 0.97, 0.22, 0.97, 0.78), 0),
        ("oval", (0.16, 0.4, 0.24, 0.48), 2),
    ),
    "umbrella": (("half", (0.05, 0.1, 0.95, 0.95), 0), ("box", (0.48, 0.5, 0.53, 0.95), 2)),
    "ring": (("ring", (0.1, 0.1, 0.9, 0.9), 0),),
    "cross": (("box", (0.38, 0.05, 0.62, 0.95), 0), ("box", (0.05, 0.38, 0.95, 0.62), 0)),
    "bolt": (("polygon", (0.6, 0.02, 0.2, 0.55, 0.46, 0.55, 0.36, 0.98, 0.8, 0.4, 0.52, 0.4), 0),),
    "flag": (("box", (0.15, 0.05, 0.21, 0.97), 2), ("polygon", (0.21, 0.08, 0.9, 0.28, 0.21, 0.5), 0)),
    "bottle": (
        ("box", (0.3, 0.35, 0.7, 0.97), 0),
        ("box", (0.42, 0.05, 0.58, 0.36), 0),
        ("box", (0.3, 0.55, 0.7, 0.75), 1),
    ),
}

SMALL_OBJECT_COLLECTIONS = {"from_above": FROM_ABOVE, "on_a_table": ON_A_TABLE}


def draw_collection(folder: Path, name: str, images: int) -> None:
    """Generate a collection by its name: folder/images/0000.jpg, ..., and folder/truth.csv."""
    (folder / "images").mkdir(parents=True)
    things = SMALL_OBJECT_COLLECTIONS[name]
    seed = sorted(SMALL_OBJECT_COLLECTIONS).index(name)
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "labels"])
        for number in range(images):
            rng = np.random.default_rng([seed, number])
            count = min(1 + rng.poisson(1.2), len(things))
            shown = [str(thing) for thing in rng.choice(list(things), count, replace=False)]
            image = draw_ground(rng)
            for thing in shown:
                for _ in range(int(rng.integers(1, 4))):
                    put_thing(image, things[thing], rng)
            image.save(folder / "images" / f"{number:04d}.jpg", quality=JPEG_QUALITY)
            rows.writerow([f"{number:04d}.jpg", "|".join(shown)])


def draw_ground(rng: np.random.Generator, clutter: int = CLUTTER_SHAPES) -> Image.Image:
    """Draw a background of muted noise in two scales, with `clutter` lines and blobs."""
    colour = rng.uniform(50, 190, 3)
    pixels = np.zeros((IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS, 3))
    for places, size in ((6, 18.0), (60, 7.0)):
        noise = (rng.normal(0, size, (places, places, 3)) + 128).clip(0, 255).astype(np.uint8)
        pixels += (
            np.asarray(
                Image.fromarray(noise).resize((IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), Image.Resampling.BICUBIC), float
            )
            - 128
        )
    image = Image.fromarray((pixels + colour).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(clutter):
        x, y = rng.uniform(0, IMAGE_SIDE_PIXELS, 2)
        across, down = rng.uniform(-90, 90, 2)
        fill = tuple(int(value) for value in rng.integers(30, 225, 3))
        if rng.random() < 0.5:
            draw.line((x, y, x + across, y + down), fill, int(rng.integers(1, 9)))
        else:
            draw.ellipse((x, y, x + abs(across) / 3, y + abs(down) / 3), fill)
    return image


def put_thing(
    image: Image.Image,
    shapes: tuple[Shape, ...],
    rng: np.random.Generator,
    sides: tuple[int, int] = (MIN_THING_PIXELS, MAX_THING_PIXELS),
) -> None:
    """Draw one object at a random place, with a side in pixels in the range `sides`."""
    body = tuple(int(value) for value in rng.integers(20, 236, 3))
    light = tuple(int(value) for value in rng.integers(215, 256, 3))
    colors = [body, light, (25, 25, 30), tuple(value // 2 for value in body), (70, 170, 215), (60, 140, 80)]
    thing = Image.new("RGBA", (DRAWN_SIDE_PIXELS, DRAWN_SIDE_PIXELS))
    draw = ImageDraw.Draw(thing)
    for kind, at, colour in shapes:
        places, fill = [value * DRAWN_SIDE_PIXELS for value in at], colors[colour]
        if kind == "box":
            draw.rectangle(places, fill)
        elif kind == "oval":
            draw.ellipse(places, fill)
        elif kind == "ring":
            draw.ellipse(places, outline=fill, width=DRAWN_SIDE_PIXELS // 7)
        elif kind == "half":
            draw.pieslice(places, 180, 360, fill)
        else:
            draw.polygon(places, fill)
    size = int(rng.integers(sides[0], sides[1] + 1))
    turned = thing.rotate(float(rng.uniform(0, 360)), Image.Resampling.BICUBIC, expand=True)
    small = turned.resize((size, size), Image.Resampling.LANCZOS)
    x, y = (int(value) for value in rng.integers(0, IMAGE_SIDE_PIXELS - size, 2))
    image.paste(small, (x, y), small)
