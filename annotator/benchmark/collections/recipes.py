"""Generated collections of shapes, handwriting, type and scenes, from installed packages.

Images depend only on collection name, number and package versions. The constants of `auto` were chosen on
COLLECTION_NAMES, never on KEPT_BACK_NAMES.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from annotator.benchmark.boxes import read_boxes
from annotator.benchmark.collections import small_objects
from annotator.benchmark.collections.cartoons import draw_face, draw_map
from annotator.benchmark.collections.sheets import draw_charts, draw_chessboard, draw_scripts, draw_spectrogram
from annotator.benchmark.collections.small_objects import IMAGE_SIDE_PIXELS, JPEG_QUALITY, draw_ground
from annotator.benchmark.collections.street import draw_street_person
from annotator.benchmark.collections.textures import draw_cells, draw_landscape, draw_patterns
from annotator.settings import SAMPLE_DATA_FOLDER

Random = np.random.Generator
ThingDrawer = Callable[[str, Random], Image.Image]  # a class -> one thing of it, RGBA, as large as it may be

SUIT_SIGNS = {"spade": "♠", "heart": "♥", "diamond": "♦", "club": "♣", "star": "★"}
PICTOGRAM_SIGNS = {
    "sun": "☀", "cloud": "☁", "umbrella": "☂", "snowman": "☃", "comet": "☄", "phone": "☎",
    "skull": "☠", "peace": "☮", "yin yang": "☯", "frown": "☹", "smile": "☺", "moon": "☾",
    "king": "♚", "queen": "♛", "rook": "♜", "bishop": "♝", "knight": "♞", "pawn": "♟", "note": "♪",
    "notes": "♫", "flat": "♭", "recycling": "♻", "wheelchair": "♿", "anchor": "⚓", "swords": "⚔",
    "staff": "⚕", "scales": "⚖", "alembic": "⚗", "flower": "⚘", "gear": "⚙", "atom": "⚛",
    "warning": "⚠", "bolt": "⚡", "coffin": "⚰", "urn": "⚱", "scissors": "✂", "plane": "✈",
    "envelope": "✉", "pencil": "✏", "nib": "✒", "tick": "✔", "cross": "✖",
}  # fmt: skip
LETTER_SIGNS = {letter: letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True)
class Recipe:
    """A recipe by which the images of one collection are drawn."""

    classes: tuple[str, ...]
    draw: ThingDrawer
    ground: Callable[[Random], Image.Image]
    # mean of the Poisson-distributed number of classes beyond the first
    mean_extra_classes: float
    # the class of frequency rank r is drawn with weight r ** -frequency_exponent
    frequency_exponent: float
    # smallest and largest object side in pixels
    sides: tuple[int, int]


def make_collection(folder: Path, name: str, images: int) -> None:
    """Generate a collection by its name: folder/images/0000.jpg, ..., and truth.csv."""
    if name in small_objects.SMALL_OBJECT_COLLECTIONS:
        small_objects.draw_collection(folder, name, images)
        return
    (folder / "images").mkdir(parents=True)
    seed = 200 + KEPT_BACK_NAMES.index(name) if name in KEPT_BACK_NAMES else 100 + COLLECTION_NAMES.index(name)
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "labels"])
        for number in range(images):
            rng = np.random.default_rng([seed, number])
            image, shown = (
                IMAGE_DRAWERS[name](rng) if name in IMAGE_DRAWERS else compose_image(get_recipes()[name], rng)
            )
            image.save(folder / "images" / f"{number:04d}.jpg", quality=JPEG_QUALITY)
            rows.writerow([f"{number:04d}.jpg", "|".join(shown)])


def compose_image(recipe: Recipe, rng: Random) -> tuple[Image.Image, list[str]]:
    """Draw one image, whose objects may overlap slightly, and return it with its classes."""
    image = recipe.ground(rng)
    weights = np.arange(1, len(recipe.classes) + 1) ** -recipe.frequency_exponent
    count = min(1 + int(rng.poisson(recipe.mean_extra_classes)), len(recipe.classes))
    shown = [str(name) for name in rng.choice(recipe.classes, count, replace=False, p=weights / weights.sum())]
    taken: list[tuple[int, int, int]] = []
    for name in shown:
        side = int(rng.integers(recipe.sides[0], recipe.sides[1] + 1))
        thing = recipe.draw(name, rng).resize((side, side), Image.Resampling.LANCZOS)
        x, y = _find_free_place(taken, side, rng)
        taken.append((x, y, side))
        image.paste(thing, (x, y), thing)
    return image, shown


def _find_free_place(used_squares: list[tuple[int, int, int]], side: int, rng: Random) -> tuple[int, int]:
    """Return the top left corner, of several random ones, that is farthest from the squares already used."""
    places = rng.integers(0, IMAGE_SIDE_PIXELS - side + 1, (20, 2))
    if not used_squares:
        return int(places[0, 0]), int(places[0, 1])
    others = np.array(used_squares)
    middles = others[:, :2] + others[:, 2:] / 2
    apart = np.abs(places[:, None] + side / 2 - middles).max(2) - (side + others[:, 2]) / 2
    x, y = places[apart.min(1).argmax()]
    return int(x), int(y)


def draw_glyph(character: str, rng: Random) -> Image.Image:
    large = _load_font()
    left, top, right, bottom = large.getbbox(character)
    side = int(max(right - left, bottom - top)) + 8
    image = Image.new("RGBA", (side, side))
    dark = rng.random() < 0.5
    colour = tuple(int(value) for value in (rng.integers(0, 110, 3) if dark else rng.integers(150, 256, 3)))
    at = ((side - right + left) / 2 - left, (side - bottom + top) / 2 - top)
    ImageDraw.Draw(image).text(at, character, colour, font=large)
    return image.rotate(float(rng.uniform(-25, 25)), Image.Resampling.BICUBIC, expand=True)


def draw_digit(name: str, rng: Random) -> Image.Image:
    """Return a handwritten digit of scikit-learn (8 x 8 pixels) as an image."""
    scans, classes = _load_digit_scans()
    scan = scans[rng.choice(np.flatnonzero(classes == int(name)))]
    ink = Image.fromarray((scan * 255 / 16).astype(np.uint8)).resize((160, 160), Image.Resampling.BICUBIC)
    image = Image.new("RGBA", ink.size, tuple(int(value) for value in rng.integers(0, 90, 3)))
    image.putalpha(ink)
    return image


def draw_paper(rng: Random) -> Image.Image:
    image = Image.new(
        "RGB", (IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), tuple(int(value) for value in rng.integers(205, 250, 3))
    )
    draw, apart = ImageDraw.Draw(image), int(rng.integers(24, 60))
    for y in range(int(rng.integers(0, apart)), IMAGE_SIDE_PIXELS, apart):
        draw.line((0, y, IMAGE_SIDE_PIXELS, y), (170, 185, 215), 1)
    return image


def crop_photograph(rng: Random) -> Image.Image:
    """Return a random, possibly mirrored crop of a scikit-learn photo."""
    whole = _load_photos()[int(rng.integers(2))]
    side = int(rng.integers(180, min(whole.size) + 1))
    x, y = (int(rng.integers(0, length - side + 1)) for length in whole.size)
    image = whole.crop((x, y, x + side, y + side)).resize(
        (IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), Image.Resampling.BICUBIC
    )
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else image


def crop_scene(rng: Random) -> tuple[Image.Image, list[str]]:
    """Return a random crop of a sample image, and its classes."""
    scenes = _load_scenes()
    while True:
        path, boxes = scenes[int(rng.integers(len(scenes)))]
        with Image.open(path) as file:
            whole = file.convert("RGB")
        side = int(min(whole.size) * rng.uniform(0.4, 0.75))
        x, y = (int(rng.integers(0, length - side + 1)) for length in whole.size)
        shown = [
            name
            for name, of_name in boxes.items()
            if any(_compute_share_inside(box, x, y, side) >= 0.5 for box in of_name)
        ]
        if shown:
            piece = whole.crop((x, y, x + side, y + side)).resize(
                (IMAGE_SIDE_PIXELS, IMAGE_SIDE_PIXELS), Image.Resampling.BICUBIC
            )
            return piece, shown


def _compute_share_inside(box: tuple[float, float, float, float], x: int, y: int, side: int) -> float:
    left, top, right, bottom = box
    across = max(0.0, min(right, x + side) - max(left, x))
    return across * max(0.0, min(bottom, y + side) - max(top, y)) / max((right - left) * (bottom - top), 1e-9)


@cache
def get_recipes() -> dict[str, Recipe]:
    things = {**SUIT_SIGNS, **PICTOGRAM_SIGNS, **LETTER_SIGNS}

    def draw_sign(name: str, rng: Random) -> Image.Image:
        return draw_glyph(things[name], rng)

    digits = tuple("0123456789")
    return {
        "suits": Recipe(tuple(SUIT_SIGNS), draw_sign, draw_ground, 0.8, 0.0, (130, 220)),
        "pictograms": Recipe(tuple(PICTOGRAM_SIGNS), draw_sign, draw_ground, 3.0, 0.0, (90, 150)),
        "letters": Recipe(tuple(LETTER_SIGNS), draw_sign, crop_photograph, 1.0, 1.0, (80, 150)),
        "digits": Recipe(digits, draw_digit, draw_paper, 3.5, 0.0, (100, 170)),
        "rare_digits": Recipe(digits, draw_digit, crop_photograph, 0.6, 1.5, (110, 200)),
    }


IMAGE_DRAWERS: dict[
    str, Callable[[Random], tuple[Image.Image, list[str]]]
] = {  # an image, and the classes that it shows
    "scene_crops": crop_scene,
    "street": draw_street_person,
    "grounds": draw_landscape,
    "patterns": draw_patterns,
    "charts": draw_charts,
    "chessboards": draw_chessboard,
    "cells": draw_cells,
    "scripts": draw_scripts,
    "spectrograms": draw_spectrogram,
    "faces": draw_face,
    "maps": draw_map,
}
COLLECTION_NAMES = (
    "from_above", "on_a_table", "suits", "pictograms", "letters", "digits", "rare_digits", "scene_crops", "street",
    "grounds", "patterns", "charts", "chessboards", "cells",
)  # fmt: skip
KEPT_BACK_NAMES = ("scripts", "spectrograms", "faces", "maps")


@cache
def _load_font() -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path

    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans-Bold.ttf"), 160)


@cache
def _load_digit_scans() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    return np.asarray(pixels).reshape(-1, 8, 8), np.asarray(classes)


@cache
def _load_photos() -> list[Image.Image]:
    from sklearn.datasets import load_sample_image

    return [Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")]


@cache
def _load_scenes() -> list[tuple[Path, dict[str, list[tuple[float, float, float, float]]]]]:
    paths = sorted((SAMPLE_DATA_FOLDER / "images").iterdir())
    with (SAMPLE_DATA_FOLDER / "truth.csv").open(encoding="utf-8") as file:
        classes = sorted({name for row in csv.DictReader(file) for name in row["labels"].split("|") if name})
    placed: list[dict] = [{} for _ in paths]
    for (row, column), boxes in read_boxes(
        SAMPLE_DATA_FOLDER / "boxes.csv", [path.name for path in paths], classes
    ).items():
        placed[row][classes[column]] = boxes
    return list(zip(paths, placed, strict=True))
