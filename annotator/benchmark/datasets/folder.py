"""An image folder as a data set, with a CSV of all its classes.

The part depends on the name alone: the first 8 bytes of the sha256 of the path below the folder (with "/", in UTF-8),
big-endian, divided by 2^64. Below 0.64 is training, below 0.80 validation, the rest testing.

Classes are sorted. Those that never occur are omitted.
"""

import hashlib
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets.clicks import draw_clicks
from annotator.benchmark.datasets.dataset import DataSet, Part
from annotator.benchmark.datasets.places import Loader, need_images
from annotator.benchmark.truth import read_truth
from annotator.errors import AnnotatorError
from annotator.records import PRESENT, UNSURE
from annotator.store.pictures.files import list_files, unescape_path
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES

FOLDER_TITLE = "a folder of images"
PART_BORDERS = (0.64, 0.80)
FOLDER_LAYOUT = "      images anywhere below it, and --truth FILE.csv with image,labels or image,class,state"


def read_image_folder(root: Path, truth: Path | None) -> DataSet:
    """Read the images below root, with truth from the CSV, in which "unsure" counts as absent.

    Raises AnnotatorError if the CSV does not match, or a part has no image.
    """
    if truth is None:
        raise AnnotatorError(
            f"{root} is a folder of images without its truth. Give one with --truth: a CSV with image,labels or "
            "image,class,state."
        )
    names = list_files(root, leave_out=truth).list_images()
    if not names:
        raise AnnotatorError(f"There are no images in {root}. Read are {', '.join(sorted(IMAGE_SUFFIXES))}.")
    given = read_truth(truth, set(names))
    classes = tuple(sorted({label.class_name for label in given if label.state == PRESENT}))
    if not classes:
        raise AnnotatorError(f"{truth} has no label 'present': there is nothing to find.")
    rows = {name: row for row, name in enumerate(names)}
    columns = {name: column for column, name in enumerate(classes)}
    shown = np.zeros((len(names), len(classes)), bool)
    for label in given:
        if label.state == PRESENT:
            shown[rows[label.image], columns[label.class_name]] = True
    everything = Part(need_images(FOLDER_TITLE, root, [unescape_path(name) for name in names]), shown)
    places = np.array([choose_part(unescape_path(name)) for name in names])
    train, val, test = (everything.rows(np.flatnonzero(places == part)) for part in range(3))
    if not (len(train) and len(val) and len(test)):
        sizes = ", ".join(f"{len(part)} for {what}" for part, what in zip((train, val, test), PART_NAMES, strict=True))
        raise AnnotatorError(
            f"{root} has too few images to be split: of {len(names)}, there are {sizes}. It takes some 50 to compare."
        )
    return DataSet(
        "folder",
        classes,
        train,
        val,
        test,
        draw_clicks(train.truth, 1.0, 0),
        None,
        tuple(_make_notes(names, classes, given, shown)),
    )


PART_NAMES = ("training", "validation", "testing")


def choose_part(name: str) -> int:
    """Return the part of the data set for an image, by a hash of its path: 0 training, 1 validation, 2 testing."""
    number = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:8], "big") / 2**64
    return sum(number >= border for border in PART_BORDERS)


def _make_notes(names: list[str], classes: tuple[str, ...], labels: list, truth: np.ndarray) -> list[str]:
    notes = []
    bare = int((~truth.any(1)).sum())
    if bare:
        notes.append(
            f"{bare:,} of {len(names):,} images have no present class in the truth: they count as showing none"
        )
    unsure = sum(label.state == UNSURE for label in labels)
    if unsure:
        notes.append(f"{unsure:,} cells are unsure in the truth: they count as absent")
    never = sorted({label.class_name for label in labels} - set(classes))
    if never:
        notes.append(f"classes that no image shows were left out: {', '.join(never)}")
    return notes


FOLDER_LOADER = Loader("folder", FOLDER_TITLE, None, (), FOLDER_LAYOUT, read_image_folder)
