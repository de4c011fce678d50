"""NUS-WIDE: 150,000 training images, 60,260 test images, 81 concepts, possibly none per image.

Chua et al., CIVR 2009. The papers merge the available images and draw 150,000 of 210,260. Only formatted arrays contain
that split. Otherwise it is drawn from the existing images in list order with seed 1200.
"""

from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import formatted
from annotator.benchmark.datasets.dataset import DataSet, Part, build_official_dataset
from annotator.benchmark.datasets.places import (
    Loader,
    build_layout_error,
    find_first_existing,
    find_images,
    find_missing,
    make_count_note,
)
from annotator.errors import AnnotatorError
from annotator.exchange.files.text_files import read_text
from spmll.single_positive_sampling import PUBLISHED_SEED

NUS_TITLE = "NUS-WIDE"
CONCEPT_COUNT = 81
NUS_TRAIN_IMAGES, NUS_MERGED_IMAGES = 150_000, 210_260
LABEL_FOLDERS = ("Groundtruth/TrainTestLabels", "TrainTestLabels")
IMAGE_LIST_FOLDERS = ("ImageList", "ImageList/ImageList", ".")
CONCEPT_LIST_PATHS = ("ConceptsList/Concepts81.txt", "Concepts81.txt")
IMAGE_FOLDERS = ("Flickr/Flickr", "Flickr")
NUS_LAYOUTS = f"""\
      Flickr/{{folder}}/*.jpg, ImageList/{{Train,Test}}Imagelist.txt,
      Groundtruth/TrainTestLabels/Labels_{{concept}}_{{Train,Test}}.txt, and if you have it ConceptsList/Concepts81.txt
{formatted.FORMATTED_LAYOUT} (the papers' own split)"""


def read_nus(root: Path, truth: Path | None = None) -> DataSet:
    """Read NUS-WIDE below `root`, or raise AnnotatorError with everything missing or wrong."""
    if formatted.has_formatted_arrays(root):
        return formatted.read_formatted("nus", NUS_TITLE, root, (*IMAGE_FOLDERS, ""), CONCEPT_COUNT, lambda count: None)
    folder, lists = (
        find_first_existing(root, places)
        for places in (LABEL_FOLDERS, [f"{p}/TrainImagelist.txt" for p in IMAGE_LIST_FOLDERS])
    )
    home = find_first_existing(root, IMAGE_FOLDERS) or root / "Flickr"
    concepts_exist, folder = folder is not None, folder or root / LABEL_FOLDERS[0]
    lists = lists or root / IMAGE_LIST_FOLDERS[0] / "TrainImagelist.txt"
    problems = find_missing(root, [home, folder, lists, lists.with_name("TestImagelist.txt")])
    concepts = _read_concepts(root, folder, problems) if concepts_exist else ()
    if problems:
        raise build_layout_error(NUS_TITLE, root, problems, NUS_LAYOUTS)
    names, tables = [], []
    for part in ("Train", "Test"):
        listed = read_text(lists.with_name(f"{part}Imagelist.txt"), "the list of images").splitlines()
        listed = [line.strip().replace("\\", "/") for line in listed if line.strip()]
        names += listed
        tables.append(_read_flags(folder, concepts, part, len(listed), problems))
    if problems:
        raise build_layout_error(NUS_TITLE, root, problems, NUS_LAYOUTS)
    merged, notes = _merge_parts(root, home, names, np.concatenate(tables))
    order = np.random.RandomState(PUBLISHED_SEED).permutation(len(merged))
    count = round(len(merged) * NUS_TRAIN_IMAGES / NUS_MERGED_IMAGES)
    train, test = merged.rows(np.sort(order[:count])), merged.rows(np.sort(order[count:]))
    labels, label_notes = formatted.read_observed_labels(root, train.truth)
    notes += make_count_note("concepts", len(concepts), CONCEPT_COUNT)
    return build_official_dataset("nus", concepts, train, test, labels, notes + label_notes)


def _read_concepts(root: Path, folder: Path, problems: list[str]) -> tuple[str, ...]:
    """Return the class names in the concept list, or else those of the label files, sorted."""
    path = find_first_existing(root, CONCEPT_LIST_PATHS)
    if path:
        names = tuple(line.strip() for line in read_text(path, "the list of concepts").splitlines() if line.strip())
    else:
        ends = ("_Train.txt", "_Test.txt")
        label_files = {file.name for file in folder.glob("Labels_*.txt") if file.name.endswith(ends)}
        names = tuple(sorted({name.removeprefix("Labels_").rsplit("_", 1)[0] for name in label_files}))
    if not names:
        problems.append(f"{folder.relative_to(root).as_posix()} holds no Labels_{{concept}}_Train.txt")
    needed = [folder / f"Labels_{name}_{part}.txt" for name in names for part in ("Train", "Test")]
    if strange := [name for name in names if "/" in name or "\\" in name or name.startswith(".")]:
        problems.append(f"the list of concepts names {strange[0]!r}, which is no name of a file")
        return ()
    problems += find_missing(root, needed)
    return names


def _read_flags(folder: Path, concepts: tuple[str, ...], part: str, count: int, problems: list[str]) -> np.ndarray:
    truth = np.zeros((count, len(concepts)), bool)
    for column, name in enumerate(concepts):
        path = folder / f"Labels_{name}_{part}.txt"
        try:
            words = path.read_bytes().split()
        except OSError as error:
            raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error
        if strange := set(words) - {b"0", b"1"}:
            problems.append(f"{path.name} must hold 0 and 1 only; there is also {min(strange)!r}")
        elif len(words) != count:
            problems.append(f"{path.name} has {len(words):,} lines, but {part}Imagelist.txt {count:,}")
        else:
            truth[:, column] = np.array(words) == b"1"
    return truth


def _merge_parts(root: Path, home: Path, names: list[str], truth: np.ndarray) -> tuple[Part, list[str]]:
    folder = home.relative_to(root).as_posix()
    paths, exists = find_images(root, [f"{folder}/{name}" for name in names])
    if not exists.any():
        raise build_layout_error(
            NUS_TITLE, root, [f"none of the {len(names):,} images is in {folder}: {', '.join(names[:3])}"], NUS_LAYOUTS
        )
    notes = [
        "the papers' own draw of training and test images is only in formatted_*.npy, which are not in the folder: "
        "merged and drawn as they say, with seed 1200, so figures compare with the papers' roughly"
    ]
    if not exists.all():
        notes.append(f"{(~exists).sum():,} of {len(names):,} images have no file and were left out")
    rows = np.flatnonzero(exists)
    return Part(tuple(paths[row] for row in rows), truth[rows]), notes


NUS_LOADER = Loader(
    "nus",
    NUS_TITLE,
    CONCEPT_COUNT,
    (*LABEL_FOLDERS, *(f"{p}/TrainImagelist.txt" for p in IMAGE_LIST_FOLDERS)),
    NUS_LAYOUTS,
    read_nus,
)
