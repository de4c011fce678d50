"""The arrays of single-positive multi-label (SPML) learning: formatted_{train,val}_{images,labels,labels_obs}.npy.

Format: written by preproc/format_*.py and preproc/generate_observed_labels.py of Cole et al., "Multi-Label Learning
from Single Positive Labels", CVPR 2021, https://github.com/elijahcole/single-positive-multi-label; read by EM/APL, GR,
Large Loss and LAGC. `images` is (n,) of file names, `labels` (n, C) of 1 and 0 the full truth, `labels_obs` (n, C) what
is given to the method: 1 present, -1 absent, 0 not known.

Of a folder, the observed labels are read where there are some, else the full truth. Whoever wants one array names its
file: formatted_train_labels.npy is the truth whatever lies beside it. The arrays name no classes: classes.txt beside
them does, one a line, else they are numbered by column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError, several
from annotator.exchange.formats.class_list import read_classes
from annotator.exchange.formats.contents import Contents, Given, Item, Problems
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.npy import load_array
from annotator.exchange.formats.spml_arrays import write_spml
from annotator.records import ABSENT, PRESENT

PARTS = ("train", "val")  # of the literature; exports may have others
OBSERVED = ("labels_obs", "uniform_labels_obs")  # the older and newer name
CLASS_FILES = ("classes.txt", "class_names.txt", "labels.txt")
AT_ONCE = 1000  # rows


@dataclass(frozen=True)
class _Part:
    """One array of labels with its images. is_truth: 0 is absent; else 0 is not known."""

    split: str
    file: str
    images: np.ndarray
    labels: np.ndarray
    is_truth: bool


def recognise(path: Path) -> str | None:
    """A folder with formatted_train_images.npy or formatted_val_images.npy, or one of its arrays of labels."""
    folder, name = (path, None) if path.is_dir() else (path.parent, path.name)
    for part in _splits(folder) if name is None or name.startswith("formatted_") else ():
        files = (f"formatted_{part}_labels.npy", *(f"formatted_{part}_{name}.npy" for name in OBSERVED))
        if name is None or name in files:
            return f"arrays of the SPML literature: it has formatted_{part}_images.npy"
    return None


def _splits(folder: Path) -> list[str]:
    """The splits that have images, those of the literature first."""
    names = [path.name for path in folder.glob("formatted_*_images.npy")]
    splits = sorted(name.removeprefix("formatted_").removesuffix("_images.npy") for name in names)
    return sorted(splits, key=lambda split: PARTS.index(split) if split in PARTS else len(PARTS))


def read(path: Path, problems: Problems) -> Contents:
    """A folder of arrays, or one array of labels.

    Raises AnnotatorError that lists every array that is missing or cannot be used: Python objects are never loaded.
    """
    folder = path if path.is_dir() else path.parent
    parts = _parts(folder, None if path.is_dir() else path.name)
    widths = {part.labels.shape[1] for part in parts}
    if len(widths) > 1:
        raise AnnotatorError(f"The arrays in {folder} have different numbers of classes: {sorted(widths)}.")
    classes, said = _classes(folder, widths.pop())
    for part in parts:
        meaning = "1 is present, 0 is absent" if part.is_truth else "1 is present, -1 absent, 0 unknown"
        said.append(f"{part.file}: {meaning}.")
        if not part.is_truth and (folder / f"formatted_{part.split}_labels.npy").is_file():
            said.append(f"For the full truth name the file formatted_{part.split}_labels.npy instead of the folder.")
    return Contents(classes, _items(parts, [name for name, _ in classes], problems), place="row", said=said)


def _parts(folder: Path, chosen: str | None) -> list[_Part]:
    """The parts of a folder, or the one whose labels are in the chosen file."""
    parts, problems = [], []
    for split in _splits(folder):
        observed = [f"formatted_{split}_{name}.npy" for name in OBSERVED]
        files = [*observed, f"formatted_{split}_labels.npy"]
        file = next((name for name in files if (folder / name).is_file() and chosen in (None, name)), None)
        if file is None:
            continue
        try:
            images, labels = (load_array(folder / name, folder) for name in (f"formatted_{split}_images.npy", file))
        except AnnotatorError as error:
            problems.append(str(error))
            continue
        if images.ndim != 1 or images.dtype.kind not in "US":
            problems.append(f"formatted_{split}_images.npy is {images.shape} of {images.dtype}; it must be file names")
        elif labels.ndim != 2 or labels.dtype.kind not in "biuf" or len(labels) != len(images):
            problems.append(
                f"{file} is {labels.shape} of {labels.dtype}; it must be ({len(images)}, classes) of numbers"
            )
        else:
            parts.append(_Part(split, file, images, labels, file not in observed))
    if not parts and not problems:
        problems.append("formatted_train_images.npy, or an array of labels beside it, is missing")
    if problems:
        raise several(f"The arrays in {folder} cannot be used:", problems)
    return parts


def _classes(folder: Path, count: int) -> tuple[list[tuple[str, str]], list[str]]:
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


def _items(parts: Sequence[_Part], classes: Sequence[str], problems: Problems) -> Iterator[Item]:
    present, absent = ([Given(name, state) for name in classes] for state in (PRESENT, ABSENT))
    for part in parts:
        allowed = (0, 1) if part.is_truth else (-1, 0, 1)
        attributes = {"split": part.split}
        for start in range(0, len(part.images), AT_ONCE):
            labels = np.asarray(part.labels[start : start + AT_ONCE])
            names = _names(part.images[start : start + AT_ONCE])
            for row, column in np.argwhere(~np.isin(labels, allowed)).tolist():
                value = labels[row, column]
                problems.add(f"{part.file}, row {start + row}, column {column}: {value} is none of {allowed}")
            given: list[list[Given]] = [[] for _ in names]
            for state, value in ((present, 1), (absent, -1)):
                for row, column in np.argwhere(labels == value).tolist():
                    given[row].append(state[column])
            for row, name in enumerate(names):
                place = f"{part.file}, row {start + row}"
                if not name:
                    problems.add(f"{place}: the image has no name")
                else:
                    yield Item(name, place, given[row], exhaustive=part.is_truth, attributes=attributes)


def _names(images: np.ndarray) -> list[str]:
    text = np.char.decode(images, "utf-8", "backslashreplace") if images.dtype.kind == "S" else images
    # NUS-WIDE was made on Windows, and its lists went from hand to hand with "\\" in them.
    return [name.replace("\\", "/") for name in np.asarray(text).tolist()]


SPML = Format(
    name="spml",
    about="The formatted_*.npy arrays of the single-positive multi-label literature",
    recognise=recognise,
    read=read,
    write=write_spml,
    lost=Lost(unknown=False, unsure=True, provenance=True),
)
