"""Text lists with one vector of answers for each image.

Two layouts are read, each by its complete form:

    3                                      0001.jpg<TAB>0,1,0
    Bald Smiling Young                     0002.jpg<TAB>1,0,0
    000001.jpg -1  1 -1

The left one is that of CelebA and DeepFashion: the number of images, the attributes, then 1 present, -1 absent, 0
unknown. DeepFashion names its attributes in another file, list_attr_cloth.txt. The right one is that of PaddleClas and
mmpretrain: 1 present, 0 absent. Its class names are in a class list beside it, one class a line.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.class_list import CLASS_LIST_NAMES, find_class_names
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT
from annotator.store.pictures.picture_kinds import looks_like_image

ATTRIBUTE_NAMES_FILE = "list_attr_cloth.txt"
"""DeepFashion's file with the names of the attributes, each with the number of its type."""
_ATTRIBUTE_STATES = {"1": PRESENT, "-1": ABSENT, "0": None}
_VECTOR_STATES = {"1": PRESENT, "0": ABSENT}
_START_BYTES = 65_536  # of a file, for its first three lines
_VECTOR = re.compile(r"[01](?:[,\s]+[01])+")
_NO_NAMES_HEADER = ["image_name", "attribute_labels"]


def recognize(path: Path) -> str | None:
    """Return which of the two layouts a text file has, or None."""
    if path.suffix.lower() not in (".txt", ".lst") or not path.is_file():
        return None
    lines = read_start(path, _START_BYTES).decode("utf-8", "replace").splitlines()[:3]
    if len(lines) == 3 and lines[0].strip().isdecimal() and _is_attribute_row(lines[2].split()):
        return "a list of attributes: the number of images, the attributes, 1 and -1"
    image, vector = _split_vector_line(lines[0]) if lines else ("", "")
    return "a list of images with vectors of 0 and 1" if image and vector else None


def _is_attribute_row(words: Sequence[str]) -> bool:
    return len(words) > 1 and looks_like_image(words[0]) and set(words[1:]) <= _ATTRIBUTE_STATES.keys()


def _split_vector_line(line: str) -> tuple[str, str]:
    """Return the image and the vector of a line, or two empty texts for another line."""
    image, tab, vector = line.strip().rpartition("\t")
    if not tab:
        image, _, vector = line.strip().partition(" ")
    return (image, vector) if looks_like_image(image) and _VECTOR.fullmatch(vector.strip()) else ("", "")


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of a list. AnnotatorError is raised where no file names the classes."""
    lines = enumerate(read_lines(path), start=1)
    _, first = next(lines, (0, ""))
    if first.strip().isdecimal():
        _, header = next(lines, (0, ""))
        names = _read_attribute_names(path) if header.split() == _NO_NAMES_HEADER else header.split()
        said = "1 is present, -1 is absent, 0 is unknown."
        items = _read_attribute_rows(lines, names, int(first), problems)
    else:
        names = find_class_names(path)
        length = len(_split_vector_line(first)[1].replace(",", " ").split())
        if len(names) != length:
            raise AnnotatorError(
                f"{path} holds vectors of {length} answers and names no class. Write the {length} classes into "
                f"{path.parent / CLASS_LIST_NAMES[0]}, one a line in the order of the vector"
                + (f" (the list there has {len(names)})." if names else ".")
            )
        said = "1 is present, 0 is absent."
        items = _read_vector_rows(chain([(1, first)], lines), names, problems)
    return Contents([(name, "") for name in names], items, place="line", sentences=[said])


def _read_attribute_names(path: Path) -> list[str]:
    file = path.parent / ATTRIBUTE_NAMES_FILE
    if not file.is_file():
        raise AnnotatorError(
            f"{path} holds vectors and names no attribute. DeepFashion names them in {ATTRIBUTE_NAMES_FILE}: put this "
            f"file into {path.parent}."
        )
    rows = [line.rsplit(None, 1) for line in read_lines(file) if line.strip()]
    return [row[0].strip() for row in rows[2:]]  # after the count and the names of the columns


def _read_attribute_rows(
    lines: Iterator[tuple[int, str]], names: Sequence[str], count: int, problems: Problems
) -> Iterator[Item]:
    found = 0
    for number, line in lines:
        if not line.strip():
            continue
        found += 1
        words = line.split()
        if len(words) != len(names) + 1 or not _ATTRIBUTE_STATES.keys() >= set(words[1:]):
            problems.add(f"line {number}: {len(words) - 1} values, and {len(names)} attributes of 1, -1 or 0 are named")
            continue
        states = [(name, _ATTRIBUTE_STATES[word]) for name, word in zip(names, words[1:], strict=True)]
        labels = [ImportedLabel(name, state) for name, state in states if state is not None]
        yield Item(words[0], number, labels)
    if found != count:
        problems.add(f"line 1 says {count:,} images, and {found:,} follow: the file may be cut off")


def _read_vector_rows(lines: Iterator[tuple[int, str]], names: Sequence[str], problems: Problems) -> Iterator[Item]:
    for number, line in lines:
        if not line.strip():
            continue
        image, vector = _split_vector_line(line)
        words = vector.replace(",", " ").split()
        if len(words) != len(names):
            problems.add(f"line {number}: {line[:60]!r} is not an image with {len(names)} values of 0 or 1")
            continue
        labels = [ImportedLabel(name, _VECTOR_STATES[word]) for name, word in zip(names, words, strict=True)]
        yield Item(image, number, labels)


VECTOR_LIST = Format(
    name="vector-list",
    about="Text with a vector of answers an image: CelebA, DeepFashion, PaddleClas, mmpretrain",
    recognize=recognize,
    read=read,
)
