"""Array files of published data sets: formatted_{train,val}_{labels,images}.npy and the labels that training sees.

Scripts of Cole et al. (2021) write them. They take precedence over original files, because they fix order, split and
drawn labels. "val" is the papers' test set. Object arrays are never loaded, because they could run code.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets.dataset import DataSet, Part, build_official_dataset
from annotator.benchmark.datasets.places import find_first_existing, find_images, make_count_note, need_images
from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.npy import load_array

ARRAY_FILES = tuple(f"formatted_{part}_{what}.npy" for part in ("train", "val") for what in ("labels", "images"))
# their older and newer name
OBSERVED_LABEL_FILES = ("formatted_train_labels_obs.npy", "formatted_train_uniform_labels_obs.npy")
FORMATTED_LAYOUT = (
    f"      or  formatted_{{train,val}}_{{labels,images}}.npy, and {OBSERVED_LABEL_FILES[0]} if there is one"
)


def has_formatted_arrays(root: Path) -> bool:
    """Return whether the folder has any of ARRAY_FILES."""
    return any((root / name).exists() for name in ARRAY_FILES)


def count_columns(root: Path) -> int | None:
    """Count the classes in the training label array, or None without one."""
    try:
        array = load_array(root / ARRAY_FILES[0], root)
    except AnnotatorError:
        return None
    return array.shape[1] if array.ndim == 2 else None


def read_formatted(
    name: str,
    title: str,
    root: Path,
    image_folders: Sequence[str],
    published_classes: int,
    class_names: Callable[[int], tuple[str, ...] | None],
) -> DataSet:
    """Read a published data set from its formatted arrays.

    Args:
        image_folders: Candidates, the first with an image is used.
        class_names: Function from the number of columns to names, or None for numbers.

    Raises:
        AnnotatorError: Listing all invalid arrays and missing images.
    """
    parts, problems = [], []
    missing = [name for name in ARRAY_FILES if not (root / name).exists()]
    if missing:
        raise combine_problems(
            f"{root} has some of the formatted arrays of {title}, but not all. Add the missing ones, or take the "
            "others away, and the set's own files are read:",
            [f"{name} is missing" for name in missing],
        )
    for part in ("train", "val"):
        try:
            parts.append(_read_part(root, part))
        except AnnotatorError as error:
            problems.append(str(error))
    if len(parts) == 2 and parts[0][1].shape[1] != parts[1][1].shape[1]:
        problems.append(f"there are {parts[0][1].shape[1]} classes in train and {parts[1][1].shape[1]} in val")
    if problems:
        raise combine_problems(f"The formatted arrays of {title} in {root} cannot be used:", problems)
    train, test = (Part(_find_paths(title, root, images, image_folders), truth) for images, truth in parts)
    count = train.truth.shape[1]
    names = class_names(count)
    notes = ["formatted_*.npy are in the folder and were read instead of the set's own files"]
    if names is None:
        names = tuple(f"class {number}" for number in range(1, count + 1))
        notes.append("the formatted arrays do not name the classes: they are numbered by column")
    labels, label_notes = read_observed_labels(root, train.truth)
    return build_official_dataset(
        name, names, train, test, labels, notes + label_notes + make_count_note("classes", count, published_classes)
    )


def read_observed_labels(root: Path, truth: np.ndarray) -> tuple[np.ndarray | None, list[str]]:
    """Read single-positive labels, (n, C) int8 of 1, -1, 0, and notes on them, or (None, []).

    Raises AnnotatorError if they contradict `truth` (n, C).
    """
    path = find_first_existing(root, OBSERVED_LABEL_FILES)
    if path is None:
        return None, []
    array = load_array(path, root)
    if array.shape != truth.shape:
        raise AnnotatorError(f"{path} is {array.shape}, but the training labels are {truth.shape}. Same set and rows?")
    if not np.isin(array, (-1, 0, 1)).all():
        raise AnnotatorError(f"{path} must hold 1 (present), -1 (absent) and 0 (unseen) only.")
    labels = np.asarray(array).astype(np.int8)
    wrong = np.flatnonzero((((labels == 1) & ~truth) | ((labels == -1) & truth)).any(1))
    if len(wrong):
        raise AnnotatorError(
            f"{path} contradicts the truth in {len(wrong):,} of {len(truth):,} rows (the first: {wrong[:5].tolist()}). "
            "Were the rows sorted differently when it was made?"
        )
    return labels, [f"the single-positive labels are those of {path.name}, not drawn anew"]


def _read_part(root: Path, part: str) -> tuple[list[str], np.ndarray]:
    images = load_array(root / f"formatted_{part}_images.npy", root)
    labels = load_array(root / f"formatted_{part}_labels.npy", root)
    if images.ndim != 1 or images.dtype.kind not in "US":
        raise AnnotatorError(
            f"formatted_{part}_images.npy is {images.shape} of {images.dtype}; it must be a list of file names"
        )
    if labels.ndim != 2 or labels.dtype.kind not in "biuf" or len(labels) != len(images) or not labels.shape[1]:
        raise AnnotatorError(
            f"formatted_{part}_labels.npy is {labels.shape} of {labels.dtype}; with {len(images)} images it must be "
            f"({len(images)}, classes) of numbers"
        )
    truth = np.asarray(labels == 1)
    if not (truth | (labels == 0)).all():
        raise AnnotatorError(f"formatted_{part}_labels.npy must hold 0 and 1 only")
    text = np.char.decode(images, "utf-8", "surrogateescape") if images.dtype.kind == "S" else images
    # NUS-WIDE was made on Windows, and its lists went from hand to hand with "\\" in them.
    return [name.replace("\\", "/") for name in text.tolist()], truth


def _find_paths(title: str, root: Path, images: list[str], folders: Sequence[str]) -> tuple[Path, ...]:
    for folder in folders:
        if find_images(root, [_join_below(folder, name) for name in images[:100]])[1].any():
            return need_images(title, root, [_join_below(folder, name) for name in images])
    return need_images(title, root, [_join_below(folders[0], name) for name in images])


def _join_below(folder: str, name: str) -> str:
    # An absolute name stays one, to be refused: joining must not make it look harmless.
    return name if not folder or name.startswith("/") else f"{folder}/{name}"
