"""CUB-200-2011: 5,994 training and 5,794 test images of birds, 312 attributes as classes.

Wah et al., 2011. As in Cole et al., an attribute is present where is_present is 1, ignoring certainty.
"""

from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import formatted
from annotator.benchmark.datasets.dataset import DataSet, Part, build_official_dataset
from annotator.benchmark.datasets.places import (
    Loader,
    build_layout_error,
    find_first_existing,
    find_missing,
    make_count_note,
    need_images,
)
from annotator.errors import AnnotatorError
from annotator.exchange.files.text_files import read_text

CUB_TITLE = "CUB-200-2011"
ATTRIBUTE_COUNT = 312
CUB_IMAGE_COUNTS = {"train": 5994, "test": 5794}
CUB_FOLDERS = ("CUB_200_2011/CUB_200_2011", "CUB_200_2011", ".")
ATTRIBUTE_LABELS_PATH = "attributes/image_attribute_labels.txt"
CUB_LAYOUTS = f"""\
      CUB_200_2011/images.txt, train_test_split.txt, {ATTRIBUTE_LABELS_PATH} and images/ beside them,
          attributes.txt beside CUB_200_2011 or in its attributes/ (the folder given may also be CUB_200_2011 itself)
{formatted.FORMATTED_LAYOUT}"""


def read_cub(root: Path, truth: Path | None = None) -> DataSet:
    """Read CUB-200-2011 below `root`, or raise AnnotatorError with everything missing or wrong."""
    if formatted.has_formatted_arrays(root):
        folders = [f"{home}/images" for home in CUB_FOLDERS] + [""]
        return formatted.read_formatted(
            "cub", CUB_TITLE, root, folders, ATTRIBUTE_COUNT, lambda count: _read_attribute_names(root, count)
        )
    marker = find_first_existing(
        root, [f"{home}/{file}" for home in CUB_FOLDERS for file in ("images.txt", ATTRIBUTE_LABELS_PATH)]
    )
    base = root / "CUB_200_2011"
    if marker is not None:
        base = marker.parent.parent if marker.parent.name == "attributes" else marker.parent
    needed = [base / file for file in ("images.txt", "train_test_split.txt", ATTRIBUTE_LABELS_PATH, "images")]
    problems = find_missing(root, needed)
    if problems:
        raise build_layout_error(CUB_TITLE, root, problems, CUB_LAYOUTS)
    files = _read_pairs(base / "images.txt", problems)
    parts = _read_pairs(base / "train_test_split.txt", problems)
    if files.keys() != parts.keys():
        problems.append(f"images.txt has {len(files):,} images, train_test_split.txt {len(parts):,}, not the same ones")
    if strange := set(parts.values()) - {"0", "1"}:
        problems.append(f"train_test_split.txt must say 1 (training) or 0; there is also {min(strange)!r}")
    attributes = _read_attributes(base / ATTRIBUTE_LABELS_PATH, list(files), problems)
    if problems:
        raise build_layout_error(CUB_TITLE, root, problems, CUB_LAYOUTS)
    folder = (base / "images").relative_to(root).as_posix()
    everything = Part(need_images(CUB_TITLE, root, [f"{folder}/{file}" for file in files.values()]), attributes)
    trained = np.array([parts[image] == "1" for image in files])
    train, test = everything.rows(np.flatnonzero(trained)), everything.rows(np.flatnonzero(~trained))
    names, notes = (
        _read_attribute_names(root, attributes.shape[1]),
        make_count_note("attributes", attributes.shape[1], ATTRIBUTE_COUNT),
    )
    if names is None:
        names = tuple(f"attribute {number}" for number in range(1, attributes.shape[1] + 1))
        notes.append(f"there is no attributes.txt with {attributes.shape[1]} names: the attributes are numbered")
    notes += make_count_note("training images", len(train), CUB_IMAGE_COUNTS["train"])
    notes += make_count_note("test images", len(test), CUB_IMAGE_COUNTS["test"])
    labels, label_notes = formatted.read_observed_labels(root, train.truth)
    return build_official_dataset("cub", names, train, test, labels, notes + label_notes)


def _read_pairs(path: Path, problems: list[str]) -> dict[str, str]:
    pairs = {}
    for number, line in enumerate(read_text(path, "a list of images").splitlines(), start=1):
        words = line.split(maxsplit=1)
        if len(words) == 2 and words[0] not in pairs:
            pairs[words[0]] = words[1].strip()
        elif words:
            problems.append(f"{path.name} line {number}: {line!r}; it must be a number, once, and a word")
    return pairs


def _read_attributes(path: Path, images: list[str], problems: list[str]) -> np.ndarray:
    try:
        # Some lines of the official file have a column too many, after the three that count.
        cells = np.loadtxt(path, dtype=np.int64, usecols=(0, 1, 2), comments=None, ndmin=2)
    except (ValueError, OSError) as error:
        problems.append(
            f"{path.name} cannot be read: it must be image, attribute, is_present, ... in numbers ({error})"
        )
        return np.zeros((len(images), 0), bool)
    image, attribute, present = cells.T
    count = int(attribute.max(initial=0))
    rows = {int(number): row for row, number in enumerate(images) if number.isdecimal()}
    known = np.isin(image, list(rows)) & (attribute >= 1)
    wanted = len(images) * count
    if not known.all() or not np.isin(present, (0, 1)).all():
        line = int(np.flatnonzero(~known | ~np.isin(present, (0, 1)))[0]) + 1
        problems.append(f"{path.name} line {line}: it needs an image of images.txt, an attribute from 1, and 0 or 1")
    elif not count or len(cells) != wanted or len(np.unique(image * (count + 1) + attribute)) != wanted:
        problems.append(
            f"{path.name} has {len(cells):,} lines; {len(images):,} images x {count} attributes, once each, are "
            f"{wanted:,}. Was it cut off?"
        )
    else:
        truth = np.zeros((len(images), count), bool)
        truth[[rows[number] for number in image.tolist()], attribute - 1] = present == 1
        return truth
    return np.zeros((len(images), 0), bool)


def _read_attribute_names(root: Path, count: int) -> tuple[str, ...] | None:
    path = find_first_existing(root, [f"{home}{file}" for home in ("", *(f"{h}/" for h in CUB_FOLDERS))
                              for file in ("attributes.txt", "attributes/attributes.txt")])  # fmt: skip
    if path is None:
        return None
    try:
        words = [line.split(maxsplit=1) for line in read_text(path, "the names of attributes").splitlines()]
    except AnnotatorError:
        return None
    names = tuple(word[1].strip() for word in words if len(word) == 2)
    return names if len(names) == count else None


CUB_LOADER = Loader(
    "cub",
    CUB_TITLE,
    ATTRIBUTE_COUNT,
    tuple(f"{home}/{ATTRIBUTE_LABELS_PATH}" for home in CUB_FOLDERS),
    CUB_LAYOUTS,
    read_cub,
)
