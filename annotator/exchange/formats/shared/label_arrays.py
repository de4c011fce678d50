"""Labels in arrays: image names (n,), and labels (n, C)."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.npy import load_array
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel, Item
from annotator.exchange.formats.shared.class_list import read_classes
from annotator.records import ABSENT, PRESENT

CLASS_FILES = ("classes.txt", "class_names.txt", "labels.txt")
ROWS_PER_BATCH = 1000  # rows


@dataclass(frozen=True)
class LabelArray:
    """An array of labels with its images."""

    file: str
    # (n,) names
    images: np.ndarray
    # (n, C) numbers: 1 present, -1 absent, 0 unanswered
    labels: np.ndarray
    # every label is known: 1 present, 0 absent
    is_truth: bool = False

    def has_image_files(self, folder: Path) -> bool:
        """Return whether image names are file paths in this folder, judged by the first."""
        return bool(len(self.images)) and bool(find_file_inside(folder, to_texts(self.images[:1])[0]))


def load_arrays(folder: Path, images: str, labels: str, is_truth: bool = False) -> LabelArray:
    """Load the arrays of image names and labels from two files. Raises AnnotatorError."""
    array = LabelArray(labels, load_array(folder / images, folder), load_array(folder / labels, folder), is_truth)
    if array.images.ndim != 1 or array.images.dtype.kind not in "US":
        raise AnnotatorError(f"{images} is {array.images.shape} of {array.images.dtype}; it must be file names")
    _check_text(folder / images, array.images)
    shape, kind, count = array.labels.shape, array.labels.dtype, len(array.images)
    if len(shape) != 2 or kind.kind not in "biuf" or shape[0] != count:
        raise AnnotatorError(f"{labels} is {shape} of {kind}; it must be ({count}, classes) of numbers")
    return array


def _check_text(path: Path, array: np.ndarray) -> None:
    if array.dtype.kind != "U" or not array.itemsize:
        return
    letter = np.dtype("u4").newbyteorder(array.dtype.byteorder)
    for start in range(0, len(array), ROWS_PER_BATCH):
        part = np.ascontiguousarray(array[start : start + ROWS_PER_BATCH])
        if part.view(letter).max(initial=0) > sys.maxunicode:
            raise AnnotatorError(
                f"{path} is a damaged array: rows {start} to {start + len(part)} hold what is no text."
            )


def read_classes_beside(folder: Path, count: int) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (name, description) per array column from the class list next to the arrays, else numbers as names.

    The second result are sentences on their source.
    """
    if not count:
        return [], []
    file = next((folder / name for name in CLASS_FILES if (folder / name).is_file()), None)
    if file is None:
        numbered = [(f"class {number}", "") for number in range(1, count + 1)]
        return numbered, [f"Classes are numbered: the arrays do not name them. {CLASS_FILES[0]} beside them would."]
    classes = read_classes(file)
    if len(classes) != count:
        raise AnnotatorError(f"{file} names {len(classes)} classes, but the arrays have {count} columns.")
    return classes, [f"The names of the classes are those of {file.name}."]


def read_items(
    array: LabelArray,
    classes: Sequence[str],
    splits: Callable[[int, int], Sequence[str]],
    with_files: bool,
    problems: Problems,
) -> Iterator[Item]:
    """Yield one item per row, and report invalid values.

    Args:
        splits: Returns the splits of rows (start, stop).
        with_files: Image names are file paths.
    """
    present, absent = ([ImportedLabel(name, state) for name in classes] for state in (PRESENT, ABSENT))
    allowed = (0, 1) if array.is_truth else (-1, 0, 1)
    for start in range(0, len(array.images), ROWS_PER_BATCH):
        labels = np.asarray(array.labels[start : start + ROWS_PER_BATCH])
        for row, column in np.argwhere(~np.isin(labels, allowed)).tolist():
            value = labels[row, column]
            problems.add(f"{array.file}, row {start + row}, column {column}: {value} is none of {allowed}")
        given: list[list[ImportedLabel]] = [[] for _ in labels]
        for state, value in ((present, 1), (absent, -1)):
            for row, column in np.argwhere(labels == value).tolist():
                given[row].append(state[column])
        names = to_texts(array.images[start : start + ROWS_PER_BATCH])
        of_rows = splits(start, start + len(names))
        for row, (name, split) in enumerate(zip(names, of_rows, strict=True)):
            place = f"{array.file}, row {start + row}"
            if not name:
                problems.add(f"{place}: the image has no name")
                continue
            file = name if with_files else ""
            facts = {"split": split} if split else {}
            yield Item(name, place, given[row], exhaustive=array.is_truth, file=file, attributes=facts)


def to_texts(array: np.ndarray) -> list[str]:
    decoded = np.char.decode(array, "utf-8", "backslashreplace") if array.dtype.kind == "S" else array
    return np.asarray(decoded).tolist()
