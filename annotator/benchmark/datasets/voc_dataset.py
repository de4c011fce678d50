"""PASCAL VOC 2012: 5,717 training images (`train`), 5,823 test images (`val`), 20 classes.

Everingham et al., IJCV 2015. As in the papers, flag 0 ("difficult") is absent, images without a class are omitted, and
rows are sorted by file name.
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

VOC_TITLE = "PASCAL VOC 2012"
VOC_CLASS_LIST = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep "
    "sofa train tvmonitor"
)
VOC_CLASSES = tuple(VOC_CLASS_LIST.split())
VOC_IMAGE_COUNTS = {"train": 5717, "val": 5823}
VOC_FOLDERS = ("VOCdevkit/VOC2012", "VOC2012", ".")
IMAGE_SETS_FOLDER = "ImageSets/Main"
VOC_LAYOUTS = f"""\
      VOCdevkit/VOC2012/{IMAGE_SETS_FOLDER}/{{class}}_{{train,val}}.txt and VOCdevkit/VOC2012/JPEGImages/*.jpg
          (the folder given may also be VOCdevkit or VOC2012 itself)
{formatted.FORMATTED_LAYOUT}"""


def read_voc(root: Path, truth: Path | None = None) -> DataSet:
    """Read PASCAL VOC below `root`, or raise AnnotatorError with everything missing or wrong."""
    if formatted.has_formatted_arrays(root):
        folders = [f"{home}/JPEGImages" for home in VOC_FOLDERS] + [""]
        return formatted.read_formatted(
            "voc",
            VOC_TITLE,
            root,
            folders,
            len(VOC_CLASSES),
            lambda count: VOC_CLASSES if count == len(VOC_CLASSES) else None,
        )
    home = find_first_existing(root, [f"{home}/{IMAGE_SETS_FOLDER}" for home in VOC_FOLDERS])
    base = root / VOC_FOLDERS[0] if home is None else home.parent.parent
    needed = [f"{IMAGE_SETS_FOLDER}/{name}_{part}.txt" for part in VOC_IMAGE_COUNTS for name in VOC_CLASSES] + [
        "JPEGImages"
    ]
    problems = find_missing(root, [base / place for place in needed])
    if problems:
        raise build_layout_error(VOC_TITLE, root, problems, VOC_LAYOUTS)
    tables = {part: _read_flags(base / IMAGE_SETS_FOLDER, part, problems) for part in VOC_IMAGE_COUNTS}
    if problems:
        raise build_layout_error(VOC_TITLE, root, problems, VOC_LAYOUTS)
    parts, notes = {}, []
    for part, (names, flags) in tables.items():
        folder = (base / "JPEGImages").relative_to(root).as_posix()
        paths = need_images(VOC_TITLE, root, [f"{folder}/{name}.jpg" for name in names])
        parts[part] = Part(paths, flags)
        notes += make_count_note(f"images in {part}", len(names), VOC_IMAGE_COUNTS[part])
    labels, label_notes = formatted.read_observed_labels(root, parts["train"].truth)
    return build_official_dataset("voc", VOC_CLASSES, parts["train"], parts["val"], labels, notes + label_notes)


def _read_flags(folder: Path, part: str, problems: list[str]) -> tuple[list[str], np.ndarray]:
    shown: dict[str, set[int]] = {}
    first: set[str] | None = None
    for column, name in enumerate(VOC_CLASSES):
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
                f"{path.name} lists {len(seen):,} images, {VOC_CLASSES[0]}_{part}.txt {len(first):,}; "
                f"{len(seen ^ first):,} are in one only, such as {min(seen ^ first)}"
            )
    names = sorted(shown, key=lambda name: f"{name}.jpg")
    truth = np.zeros((len(names), len(VOC_CLASSES)), bool)
    for row, name in enumerate(names):
        truth[row, list(shown[name])] = True
    return names, truth


VOC_LOADER = Loader(
    "voc",
    VOC_TITLE,
    len(VOC_CLASSES),
    tuple(f"{home}/{IMAGE_SETS_FOLDER}" for home in VOC_FOLDERS),
    VOC_LAYOUTS,
    read_voc,
)
