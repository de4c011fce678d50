"""PASCAL VOC 2012: 5,717 training images (the official `train`), 5,823 test images (`val`), 20 classes.

Everingham et al., "The PASCAL Visual Object Classes Challenge: A Retrospective", IJCV 2015. As in the papers: a class
is there where its flag is 1 (0, "difficult", counts as absent), images without any class are left out, rows are sorted
by file name, and classes by the alphabet.
"""

from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import formatted
from annotator.benchmark.datasets.dataset import DataSet, Part, official
from annotator.benchmark.datasets.places import Loader, count_note, first_there, missing, need_images, wrong_layout
from annotator.errors import AnnotatorError
from annotator.exchange.files.text import read_text

TITLE = "PASCAL VOC 2012"
NAMES = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep "
    "sofa train tvmonitor"
)
CLASSES = tuple(NAMES.split())
IMAGES = {"train": 5717, "val": 5823}
HOMES = ("VOCdevkit/VOC2012", "VOC2012", ".")
MAIN = "ImageSets/Main"
UNDERSTOOD = f"""\
      VOCdevkit/VOC2012/{MAIN}/{{class}}_{{train,val}}.txt and VOCdevkit/VOC2012/JPEGImages/*.jpg
          (the folder given may also be VOCdevkit or VOC2012 itself)
{formatted.UNDERSTOOD}"""


def read(root: Path, truth: Path | None = None) -> DataSet:
    """Read the set below root.

    Raises:
        AnnotatorError: Listing all that is missing or wrong.
    """
    if formatted.any_there(root):
        folders = [f"{home}/JPEGImages" for home in HOMES] + [""]
        return formatted.read(
            "voc", TITLE, root, folders, len(CLASSES), lambda count: CLASSES if count == len(CLASSES) else None
        )
    home = first_there(root, [f"{home}/{MAIN}" for home in HOMES])
    base = root / HOMES[0] if home is None else home.parent.parent
    needed = [f"{MAIN}/{name}_{part}.txt" for part in IMAGES for name in CLASSES] + ["JPEGImages"]
    problems = missing(root, [base / place for place in needed])
    if problems:
        raise wrong_layout(TITLE, root, problems, UNDERSTOOD)
    tables = {part: _flags(base / MAIN, part, problems) for part in IMAGES}
    if problems:
        raise wrong_layout(TITLE, root, problems, UNDERSTOOD)
    parts, notes = {}, []
    for part, (names, flags) in tables.items():
        folder = (base / "JPEGImages").relative_to(root).as_posix()
        paths = need_images(TITLE, root, [f"{folder}/{name}.jpg" for name in names])
        parts[part] = Part(paths, flags)
        notes += count_note(f"images in {part}", len(names), IMAGES[part])
    labels, label_notes = formatted.read_observed(root, parts["train"].truth)
    return official("voc", CLASSES, parts["train"], parts["val"], labels, notes + label_notes)


def _flags(folder: Path, part: str, problems: list[str]) -> tuple[list[str], np.ndarray]:
    """Read the names of the images that show anything, sorted, and their classes; add faults to `problems`."""
    shown: dict[str, set[int]] = {}
    first: set[str] | None = None
    for column, name in enumerate(CLASSES):
        path = folder / f"{name}_{part}.txt"
        try:
            lines = read_text(path, f"the flags of {name}").splitlines()
        except AnnotatorError as error:
            problems.append(str(error))
            continue
        seen = set()
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2 or words[1] not in ("1", "0", "-1"):
                problems.append(f"{path.name} line {number}: {line!r}; it must be an image and 1, 0 or -1")
                continue
            seen.add(words[0])
            if words[1] == "1":
                shown.setdefault(words[0], set()).add(column)
        first = seen if first is None else first
        if seen != first:
            # A list that ends early would make its class rare without a word.
            problems.append(
                f"{path.name} lists {len(seen):,} images, {CLASSES[0]}_{part}.txt {len(first):,}; "
                f"{len(seen ^ first):,} are in one only, such as {min(seen ^ first)}"
            )
    names = sorted(shown, key=lambda name: f"{name}.jpg")
    truth = np.zeros((len(names), len(CLASSES)), bool)
    for row, name in enumerate(names):
        truth[row, list(shown[name])] = True
    return names, truth


VOC = Loader("voc", TITLE, len(CLASSES), tuple(f"{home}/{MAIN}" for home in HOMES), UNDERSTOOD, read)
