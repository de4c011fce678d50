"""Generated collections by recipe. Name, seed and number determine an image."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.benchmark.collections.small_objects import JPEG_QUALITY, SMALL_OBJECT_COLLECTIONS, draw_ground, put_thing

THING_SHAPES = {name: shapes for collection in SMALL_OBJECT_COLLECTIONS.values() for name, shapes in collection.items()}


@dataclass(frozen=True)
class Recipe:
    """A recipe by which the images of one collection are drawn."""

    about: str
    classes: int
    mean_classes_per_image: float
    # the class of frequency rank r has frequency 1 / r ** frequency_exponent
    frequency_exponent: float
    # smallest and largest object side, in pixels of a 480-pixel image
    sides: tuple[int, int]
    # number of lines and blobs without a class
    clutter: int


SET_RECIPES = {
    "few": Recipe("few classes, even, easy", 5, 1.5, 0.0, (100, 160), 4),
    "many": Recipe("many classes, dense", 22, 4.0, 0.0, (90, 160), 4),
    "rare": Recipe("sparse, some classes rare", 12, 1.0, 1.0, (90, 180), 6),
    "hard": Recipe("small things, hard to tell", 10, 2.0, 0.0, (28, 52), 8),
}


def draw_set(folder: Path, name: str, images: int, seed: int) -> None:
    """Generate a collection by its name: folder/images/0000.jpg, ..., and folder/truth.csv."""
    recipe = SET_RECIPES[name]
    (folder / "images").mkdir(parents=True)
    things = list(THING_SHAPES)[: recipe.classes]
    weights = np.arange(1, recipe.classes + 1, dtype=float) ** -recipe.frequency_exponent
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "labels"])
        for number in range(images):
            rng = np.random.default_rng([list(SET_RECIPES).index(name), seed, number])
            count = min(rng.poisson(recipe.mean_classes_per_image), recipe.classes)
            if number < recipe.classes:  # every class occurs
                others = np.delete(np.arange(recipe.classes), number)
                share = np.delete(weights, number) / np.delete(weights, number).sum()
                shown = [number, *rng.choice(others, max(count - 1, 0), replace=False, p=share).tolist()]
            else:
                shown = rng.choice(recipe.classes, count, replace=False, p=weights / weights.sum()).tolist()
            image = draw_ground(rng, recipe.clutter)
            for place in shown:
                put_thing(image, THING_SHAPES[things[place]], rng, recipe.sides)
            image.save(folder / "images" / f"{number:04d}.jpg", quality=JPEG_QUALITY)
            rows.writerow([f"{number:04d}.jpg", "|".join(things[place] for place in shown)])
