"""Collections made by recipe, from what is installed with this program: shapes, scans of handwriting, type, scenes.

They differ in what decides how hard it is to find labels: how many classes there are, how many an image shows, how
uneven they are, how large and how alike things are, and what is behind them. An image follows from the name of its
collection and its number alone (and from the versions of Pillow, scikit-learn, SciPy and matplotlib that draw it).

Constants of `auto` were chosen with a look at COLLECTIONS, never at KEPT_BACK.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from annotator.benchmark.boxes import read_boxes
from annotator.benchmark.collections.cartoons import faces, maps
from annotator.benchmark.collections.sheets import charts, chessboards, scripts, spectrograms
from annotator.benchmark.collections.street import street
from annotator.benchmark.collections.textures import cells, grounds, patterns
from annotator.benchmark.harness.projects import SAMPLE
from annotator.benchmark.variants import small_objects
from annotator.benchmark.variants.small_objects import QUALITY, SIDE, draw_ground

Random = np.random.Generator
Draw = Callable[[str, Random], Image.Image]  # a class -> one thing of it, RGBA, as large as it may be

SUITS = {"spade": "♠", "heart": "♥", "diamond": "♦", "club": "♣", "star": "★"}
PICTOGRAMS = {
    "sun": "☀", "cloud": "☁", "umbrella": "☂", "snowman": "☃", "comet": "☄", "phone": "☎",
    "skull": "☠", "peace": "☮", "yin yang": "☯", "frown": "☹", "smile": "☺", "moon": "☾",
    "king": "♚", "queen": "♛", "rook": "♜", "bishop": "♝", "knight": "♞", "pawn": "♟", "note": "♪",
    "notes": "♫", "flat": "♭", "recycling": "♻", "wheelchair": "♿", "anchor": "⚓", "swords": "⚔",
    "staff": "⚕", "scales": "⚖", "alembic": "⚗", "flower": "⚘", "gear": "⚙", "atom": "⚛",
    "warning": "⚠", "bolt": "⚡", "coffin": "⚰", "urn": "⚱", "scissors": "✂", "plane": "✈",
    "envelope": "✉", "pencil": "✏", "nib": "✒", "tick": "✔", "cross": "✖",
}  # fmt: skip
LETTERS = {letter: letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True)
class Recipe:
    """The rules by which the images of one collection are drawn.

    Attributes:
        classes: The classes that can be shown.
        draw: Draws one thing of a class.
        ground: Draws the background, SIDE x SIDE.
        more: The mean number of classes of an image besides the first (Poisson).
        uneven: The class of rank r is chosen with weight r ** -uneven.
        sides: The smallest and the largest side of a thing, in pixels.
    """

    classes: tuple[str, ...]
    draw: Draw
    ground: Callable[[Random], Image.Image]
    more: float
    uneven: float
    sides: tuple[int, int]


def make_collection(folder: Path, name: str, images: int) -> None:
    """Make a collection of COLLECTIONS or KEPT_BACK: folder/images/0000.jpg, ..., and truth.csv (image,labels)."""
    if name in small_objects.COLLECTIONS:
        small_objects.draw_collection(folder, name, images)
        return
    (folder / "images").mkdir(parents=True)
    seed = 200 + KEPT_BACK.index(name) if name in KEPT_BACK else 100 + COLLECTIONS.index(name)
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "labels"])
        for number in range(images):
            rng = np.random.default_rng([seed, number])
            image, shown = DRAWN[name](rng) if name in DRAWN else composed(recipes()[name], rng)
            image.save(folder / "images" / f"{number:04d}.jpg", quality=QUALITY)
            rows.writerow([f"{number:04d}.jpg", "|".join(shown)])


def composed(recipe: Recipe, rng: Random) -> tuple[Image.Image, list[str]]:
    """Draw one image and return it with the classes that it shows; its things may overlap a little."""
    image = recipe.ground(rng)
    weights = np.arange(1, len(recipe.classes) + 1) ** -recipe.uneven
    count = min(1 + int(rng.poisson(recipe.more)), len(recipe.classes))
    shown = [str(name) for name in rng.choice(recipe.classes, count, replace=False, p=weights / weights.sum())]
    taken: list[tuple[int, int, int]] = []
    for name in shown:
        side = int(rng.integers(recipe.sides[0], recipe.sides[1] + 1))
        thing = recipe.draw(name, rng).resize((side, side), Image.Resampling.LANCZOS)
        x, y = _free_place(taken, side, rng)
        taken.append((x, y, side))
        image.paste(thing, (x, y), thing)
    return image, shown


def _free_place(taken: list[tuple[int, int, int]], side: int, rng: Random) -> tuple[int, int]:
    """Return the top left corner for a square of `side` pixels, apart from the squares (x, y, side) in `taken`.

    Twenty random places are tried; the one with the widest gap to its nearest square is returned (the first one if
    `taken` is empty).
    """
    places = rng.integers(0, SIDE - side + 1, (20, 2))
    if not taken:
        return int(places[0, 0]), int(places[0, 1])
    others = np.array(taken)
    middles = others[:, :2] + others[:, 2:] / 2
    apart = np.abs(places[:, None] + side / 2 - middles).max(2) - (side + others[:, 2]) / 2
    x, y = places[apart.min(1).argmax()]
    return int(x), int(y)


def glyph(character: str, rng: Random) -> Image.Image:
    """Draw a character of matplotlib's own font in a random colour, rotated a little."""
    large = _font()
    left, top, right, bottom = large.getbbox(character)
    side = int(max(right - left, bottom - top)) + 8
    image = Image.new("RGBA", (side, side))
    dark = rng.random() < 0.5
    colour = tuple(int(value) for value in (rng.integers(0, 110, 3) if dark else rng.integers(150, 256, 3)))
    at = ((side - right + left) / 2 - left, (side - bottom + top) / 2 - top)
    ImageDraw.Draw(image).text(at, character, colour, font=large)
    return image.rotate(float(rng.uniform(-25, 25)), Image.Resampling.BICUBIC, expand=True)


def digit(name: str, rng: Random) -> Image.Image:
    """Return a scan of a handwritten digit (8 x 8 pixels; scikit-learn's copy of the UCI set), as ink."""
    scans, classes = _digits()
    scan = scans[rng.choice(np.flatnonzero(classes == int(name)))]
    ink = Image.fromarray((scan * 255 / 16).astype(np.uint8)).resize((160, 160), Image.Resampling.BICUBIC)
    image = Image.new("RGBA", ink.size, tuple(int(value) for value in rng.integers(0, 90, 3)))
    image.putalpha(ink)
    return image


def paper(rng: Random) -> Image.Image:
    """Draw light paper with lines."""
    image = Image.new("RGB", (SIDE, SIDE), tuple(int(value) for value in rng.integers(205, 250, 3)))
    draw, apart = ImageDraw.Draw(image), int(rng.integers(24, 60))
    for y in range(int(rng.integers(0, apart)), SIDE, apart):
        draw.line((0, y, SIDE, y), (170, 185, 215), 1)
    return image


def photograph(rng: Random) -> Image.Image:
    """Return a random crop of one of scikit-learn's two photos, mirrored half of the time."""
    whole = _photos()[int(rng.integers(2))]
    side = int(rng.integers(180, min(whole.size) + 1))
    x, y = (int(rng.integers(0, length - side + 1)) for length in whole.size)
    image = whole.crop((x, y, x + side, y + side)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else image


def crop_of_a_scene(rng: Random) -> tuple[Image.Image, list[str]]:
    """Return a random crop of a sample image, and the classes (at least one) of which it shows half a box or more."""
    scenes = _scenes()
    while True:
        path, boxes = scenes[int(rng.integers(len(scenes)))]
        with Image.open(path) as file:
            whole = file.convert("RGB")
        side = int(min(whole.size) * rng.uniform(0.4, 0.75))
        x, y = (int(rng.integers(0, length - side + 1)) for length in whole.size)
        shown = [name for name, of_name in boxes.items() if any(_inside(box, x, y, side) >= 0.5 for box in of_name)]
        if shown:
            piece = whole.crop((x, y, x + side, y + side)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
            return piece, shown


def _inside(box: tuple[float, float, float, float], x: int, y: int, side: int) -> float:
    """Return the share of a box's area that lies in the square with top left corner (x, y), in [0, 1]."""
    left, top, right, bottom = box
    across = max(0.0, min(right, x + side) - max(left, x))
    return across * max(0.0, min(bottom, y + side) - max(top, y)) / max((right - left) * (bottom - top), 1e-9)


@cache
def recipes() -> dict[str, Recipe]:
    """Return the recipes of images that are composed of things."""
    things = {**SUITS, **PICTOGRAMS, **LETTERS}

    def typed(name: str, rng: Random) -> Image.Image:
        return glyph(things[name], rng)

    digits = tuple("0123456789")
    return {
        "suits": Recipe(tuple(SUITS), typed, draw_ground, 0.8, 0.0, (130, 220)),
        "pictograms": Recipe(tuple(PICTOGRAMS), typed, draw_ground, 3.0, 0.0, (90, 150)),
        "letters": Recipe(tuple(LETTERS), typed, photograph, 1.0, 1.0, (80, 150)),
        "digits": Recipe(digits, digit, paper, 3.5, 0.0, (100, 170)),
        "rare_digits": Recipe(digits, digit, photograph, 0.6, 1.5, (110, 200)),
    }


DRAWN: dict[str, Callable[[Random], tuple[Image.Image, list[str]]]] = {  # an image, and the classes that it shows
    "scene_crops": crop_of_a_scene,
    "street": street,
    "grounds": grounds,
    "patterns": patterns,
    "charts": charts,
    "chessboards": chessboards,
    "cells": cells,
    "scripts": scripts,
    "spectrograms": spectrograms,
    "faces": faces,
    "maps": maps,
}
COLLECTIONS = (
    "from_above", "on_a_table", "suits", "pictograms", "letters", "digits", "rare_digits", "scene_crops", "street",
    "grounds", "patterns", "charts", "chessboards", "cells",
)  # fmt: skip
KEPT_BACK = ("scripts", "spectrograms", "faces", "maps")


@cache
def _font() -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path

    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans-Bold.ttf"), 160)


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    return np.asarray(pixels).reshape(-1, 8, 8), np.asarray(classes)


@cache
def _photos() -> list[Image.Image]:
    from sklearn.datasets import load_sample_image

    return [Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")]


@cache
def _scenes() -> list[tuple[Path, dict[str, list[tuple[float, float, float, float]]]]]:
    """Return every sample image with the boxes of each of its classes."""
    paths = sorted((SAMPLE / "images").iterdir())
    with (SAMPLE / "truth.csv").open(encoding="utf-8") as file:
        classes = sorted({name for row in csv.DictReader(file) for name in row["labels"].split("|") if name})
    placed: list[dict] = [{} for _ in paths]
    for (row, column), boxes in read_boxes(SAMPLE / "boxes.csv", [path.name for path in paths], classes).items():
        placed[row][classes[column]] = boxes
    return list(zip(paths, placed, strict=True))
