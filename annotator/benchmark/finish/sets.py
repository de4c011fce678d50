"""The test sets: sample data, generated collections, and any folder with truth."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.benchmark.effort.effort_measurement import make_project
from annotator.benchmark.finish.drawing import SET_RECIPES, draw_set
from annotator.errors import AnnotatorError, did_you_mean
from annotator.settings import SAMPLE_DATA_FOLDER
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import audits
from annotator.store.pictures.files import unescape_path

SAMPLE_NAME, OWN_SET_NAME = "sample_data", "your images"
SET_DESCRIPTIONS = {SAMPLE_NAME: "160 drawn scenes that come with the program"} | {
    name: recipe.about for name, recipe in SET_RECIPES.items()
}
IMAGES_PER_MADE_UP_SET = 160  # of a made-up set


@dataclass(frozen=True, eq=False)
class TestSet:
    """A test set: images and classes, their truth (N, C) bool, and a folder for derived data."""

    __test__ = False  # not one of pytest

    name: str
    about: str
    images: tuple[Path, ...]
    classes: tuple[str, ...]
    truth: np.ndarray
    work: Path

    def as_json(self) -> dict:
        """Return the sizes and a fingerprint of names and truth, as JSON values."""
        digest = hashlib.sha256(repr([path.name for path in self.images]).encode())
        digest.update(repr(self.classes).encode() + np.packbits(self.truth).tobytes())
        return {
            "set": self.name,
            "about": self.about,
            "images": len(self.images),
            "classes": len(self.classes),
            "labels_an_image": round(float(self.truth.sum() / len(self.truth)), 3),
            "rarest_class": int(self.truth.sum(0).min()),
            "fingerprint": digest.hexdigest()[:16],
        }


def check_names(names: Sequence[str]) -> list[str]:
    """Return the names of test sets, all for (). Raises AnnotatorError for an unknown one."""
    if unknown := [name for name in names if name not in SET_DESCRIPTIONS]:
        raise AnnotatorError(f"There is no set {unknown[0]!r}. {did_you_mean(unknown[0], SET_DESCRIPTIONS)}")
    return list(dict.fromkeys(names)) or list(SET_DESCRIPTIONS)


def load_set(name: str, work: Path, *, seed: int, count: int) -> TestSet:
    """Return a set of SET_DESCRIPTIONS. Generated ones are drawn into `work` if missing."""
    if name == SAMPLE_NAME:
        return read_folder(
            name, SET_DESCRIPTIONS[name], SAMPLE_DATA_FOLDER / "images", SAMPLE_DATA_FOLDER / "truth.csv", work / name
        )
    place = work / f"{name}-{seed}-{count}"
    if not (place / "drawn").exists():
        part = work / f"{place.name}.part{os.getpid()}"
        draw_set(part / "drawn", name, count, seed)
        place.mkdir(exist_ok=True)
        (part / "drawn").rename(place / "drawn")
        part.rmdir()
    return read_folder(name, SET_DESCRIPTIONS[name], place / "drawn" / "images", place / "drawn" / "truth.csv", place)


def read_folder(name: str, about: str, folder: Path, truth: Path, work: Path) -> TestSet:
    """Read a folder with truth as a test set, without unreadable and duplicate images.

    Raises AnnotatorError if images and truth do not match.
    """
    work.mkdir(parents=True, exist_ok=True)
    project = work / "set"
    shown = make_project(project, folder, truth, should_embed=False)
    db = Database(project)
    files = {image_id: unescape_path(name) for name, image_id in images.load_ids_by_name(db).items()}
    paths = tuple(folder.resolve() / files[image_id] for image_id in audits.load_readable_image_ids(db).tolist())
    if missing := [path for path in paths if not path.is_file()]:
        raise AnnotatorError(
            f"{missing[0]} is not there, but {work} knows it from an earlier run. Take another --work, or delete it."
        )
    return TestSet(name, about, paths, tuple(class_.name for class_ in classes.load_active_classes(db)), shown, work)
