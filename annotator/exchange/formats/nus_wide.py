"""NUS-WIDE: an image list, and one text file of 0 and 1 per concept, line by line in the order of the list.

    ImageList/Imagelist.txt                     actor\\0001_2124494179.jpg
    Groundtruth/AllLabels/Labels_airport.txt    0

1 is present, 0 is absent. Without AllLabels, Labels_airport_Train.txt belongs to TrainImagelist.txt, and _Test to
TestImagelist.txt.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.label_file_pairs import find_first_files
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files
from annotator.store.pictures.picture_kinds import looks_like_image

LABEL_FILE_PREFIX = "labels_"
LIST_NAMES = {"": "imagelist.txt", "train": "trainimagelist.txt", "test": "testimagelist.txt"}
"""Split -> name of its image list, in lower case."""
MAX_FILES = 2_000  # text files of a folder
MAX_CELLS = 1_000_000_000  # images times concepts, one byte each


class _Part(NamedTuple):
    """An image list with its label files by concept."""

    split: str
    image_list: Path
    label_files: dict[str, Path]


def recognize(path: Path) -> str | None:
    if path.is_dir() and _list_parts(path):
        return "NUS-WIDE: an image list, and a file of 0 and 1 per concept"
    return None


def _list_parts(folder: Path) -> list[_Part]:
    """Return the list of all images with its label files, or else those of the splits."""
    files = find_first_files(folder, (".txt",), MAX_FILES)
    lists = {file.name.lower(): file for file in files if file.name.lower() in LIST_NAMES.values()}
    found: dict[str, dict[str, Path]] = {split: {} for split in LIST_NAMES}
    for file in files:
        if file.name.lower().startswith(LABEL_FILE_PREFIX):
            concept = file.stem[len(LABEL_FILE_PREFIX) :]
            split = next((one for one in ("train", "test") if concept.lower().endswith(f"_{one}")), "")
            found[split][concept[: len(concept) - len(split) - 1] if split else concept] = file
    parts = [_Part(split, lists[name], found[split]) for split, name in LIST_NAMES.items() if name in lists]
    parts = [part for part in parts if part.label_files]
    return parts[:1] if parts and not parts[0].split else parts


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images of the lists. Raises AnnotatorError if a file has another length than its list."""
    parts = _list_parts(path)
    classes = sorted({concept for part in parts for concept in part.label_files}, key=str.lower)
    read_parts = [(part.split, *_read_part(part)) for part in parts]
    splits = {} if parts[0].split else _read_splits(path)

    def items() -> Iterator[Item]:
        for split, images, concepts, answers in read_parts:
            for row, image in enumerate(images):
                states = zip(concepts, answers[:, row].tolist(), strict=True)
                labels = [ImportedLabel(name, PRESENT if present else ABSENT) for name, present in states]
                of_image = split or splits.get(image, "")
                yield Item(image, row + 1, labels, attributes={"split": of_image} if of_image else {})

    folder = path if list_files(path, leave_out=path).list_images() else None
    said = ["1 is present, 0 is absent."]
    return Contents([(name, "") for name in classes], items(), folder, "line", said)


def _read_part(part: _Part) -> tuple[list[str], Sequence[str], np.ndarray]:
    """Return (images, concepts, answers); answers are (concepts, images) of 0 and 1."""
    images = _read_images(part.image_list)
    if len(images) * len(part.label_files) > MAX_CELLS:
        raise AnnotatorError(f"{part.image_list} has {len(images):,} images: too many for one import.")
    answers = np.zeros((len(part.label_files), len(images)), np.int8)
    wrong: list[str] = []
    for place, file in enumerate(part.label_files.values()):
        found = _read_answers(file, len(images))
        if isinstance(found, str):
            wrong.append(f"{file.name}: {found}")
        else:
            answers[place] = found
    if wrong:
        raise combine_problems(f"{len(wrong)} label files do not fit {part.image_list}:", wrong)
    return images, list(part.label_files), answers


def _read_images(file: Path) -> list[str]:
    images = [line.strip().replace("\\", "/") for line in read_lines(file) if line.strip()]
    if strange := next((one for one in images if not looks_like_image(one)), ""):
        raise AnnotatorError(f"{file} has {strange[:80]!r}, which is not the name of an image.")
    return images


def _read_answers(file: Path, count: int) -> np.ndarray | str:
    """Return the answers of a label file, or what is wrong with it."""
    with open_file(file) as opened:
        words = opened.read(4 * count + 4).split()
    if len(words) != count:
        return f"{len(words):,} answers for {count:,} images"
    values = np.array(words)
    if strange := values[~np.isin(values, [b"0", b"1"])][:1].tolist():
        return f"{strange[0].decode('utf-8', 'replace')!r} is neither 0 nor 1"
    return values == b"1"


def _read_splits(folder: Path) -> dict[str, str]:
    """Return image -> split, of the lists of splits next to the list of all images."""
    lists = {file.name.lower(): file for file in find_first_files(folder, (".txt",), MAX_FILES)}
    wanted = {split: lists[name] for split, name in LIST_NAMES.items() if split and name in lists}
    return {image: split for split, file in wanted.items() for image in _read_images(file)}


NUS_WIDE = Format(
    name="nus-wide",
    about="NUS-WIDE: an image list, and a text file of 0 and 1 per concept",
    recognize=recognize,
    read=read,
)
