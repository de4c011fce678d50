"""YOLO label files: one box or polygon per line, after its class number.

A number after a box's 4 numbers or a polygon's pairs is a confidence.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.yolo_names import ClassNames
from annotator.humanize import format_count
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import IMAGE_SUFFIXES, unescape_path

MAX_FILE_BYTES = 1 << 20  # bytes of a label file
BOX_COORDINATES = 4  # of a box; polygons have more
IMAGES_FOLDER, LABELS_FOLDER = "images", "labels"


class LabelFileContent(NamedTuple):
    """The content of a label file: its classes with boxes, and the maximum confidence of each class."""

    present: Sequence[str] = ()
    scores: Mapping[str, float] = MappingProxyType({})
    is_missing: bool = False


def has_boxes(file: Path) -> bool:
    """Return whether the first line of a text file is a box."""
    try:
        with open_file(file) as opened:
            start = opened.read(1 << 12)
    except OSError:
        return False
    words = next((words for line in start.splitlines() if (words := line.split())), [])
    with suppress(ValueError, IndexError):
        return len(words) > BOX_COORDINATES and float(words[0]).is_integer() and bool([float(word) for word in words])
    return False


def has_image_beside(file: Path) -> bool:
    """Return whether the image of a label file is in its folder or in the images folder."""
    parts = list(file.parent.parts)
    folders = [file.parent]
    if LABELS_FOLDER in parts:
        parts[len(parts) - 1 - parts[::-1].index(LABELS_FOLDER)] = IMAGES_FOLDER
        folders += [Path(*parts), file.parent.parent]
    endings = [ending for suffix in IMAGE_SUFFIXES for ending in (suffix, suffix.upper())]
    return any((folder / f"{file.stem}{ending}").is_file() for folder in folders for ending in endings)


class LabelFileReader:
    """A reader of label files: labels/a.txt for images/a.jpg, else a.txt next to it.

    If `are_answers`, boxes with a confidence are labels instead of scores.
    """

    def __init__(self, root: Path, names: ClassNames, problems: Problems, are_answers: bool):
        self._root, self._names, self._problems, self._are_answers = root, names, problems, are_answers
        self._inside = os.path.realpath(root)
        self._folders: dict[str, str] = {}
        self._scored = self._missing = 0

    def read_for_image(self, path: str) -> LabelFileContent:
        return self.read_file(self._find_place(path))

    def has_label_file(self, path: str) -> bool:
        return Path(f"{self._inside}/{unescape_path(self._find_place(path))}").is_file()

    def _find_place(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return f"{self._find_label_folder(folder)}/{name.rpartition('.')[0]}.txt"

    def read_file(self, place: str) -> LabelFileContent:
        file = Path(f"{self._inside}/{unescape_path(place)}")
        try:
            if file.is_symlink():  # a problem quotes a word of the file, so a link could disclose any file
                self._problems.add(f"{place} is a link, which is not followed")
                return LabelFileContent()
            with open_file(file) as opened:
                text = opened.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            self._missing += 1
            return LabelFileContent(is_missing=True)
        except OSError as error:
            self._problems.add(f"{place} cannot be read: {error.strerror or error}")
            return LabelFileContent()
        if len(text) > MAX_FILE_BYTES:
            self._problems.add(f"{place} has more than {MAX_FILE_BYTES:,} bytes")
            return LabelFileContent()
        return self._parse_text(place, text)

    def format_sentences(self) -> list[str]:
        said = []
        if self._scored and not self._are_answers:
            said.append(
                f"{format_count(self._scored, 'box has', 'boxes have')} a confidence (a sixth number): they are a "
                "model's, and are scores, not answers."
            )
        if self._missing:
            said.append(f"{format_count(self._missing, 'image has', 'images have')} no label file.")
        return said

    def _find_label_folder(self, folder: str) -> str:
        if folder not in self._folders:
            place = next(
                (place for place in self._list_candidate_folders(folder) if self._is_folder(place)), folder or "."
            )
            real = os.path.realpath(f"{self._inside}/{unescape_path(place)}")
            if real != self._inside and not real.startswith(f"{self._inside}{os.sep}"):
                self._problems.add(f"{place} is a link that leads out of {self._root}: it is not read")
                place = "."
            self._folders[folder] = place
        return self._folders[folder]

    def _list_candidate_folders(self, folder: str) -> list[str]:
        parts = folder.split("/") if folder else []
        places = []
        if IMAGES_FOLDER in parts:
            parts[len(parts) - 1 - parts[::-1].index(IMAGES_FOLDER)] = LABELS_FOLDER
            places.append("/".join(parts))
        inner = f"{folder}/{LABELS_FOLDER}" if folder else LABELS_FOLDER
        is_inner = self._is_folder(inner) and not self._has_label_files(folder)
        return [*places, inner] if is_inner else [*places, folder or "."]

    def _has_label_files(self, folder: str) -> bool:
        with suppress(OSError), os.scandir(f"{self._inside}/{unescape_path(folder)}") as entries:
            return any(entry.name.endswith(".txt") and has_boxes(Path(entry.path)) for entry in entries)
        return False

    def _is_folder(self, folder: str) -> bool:
        return Path(f"{self._inside}/{unescape_path(folder)}").is_dir()

    def _parse_text(self, place: str, text: bytes) -> LabelFileContent:
        names = self._names.find_names(place.rpartition("/")[0].removeprefix("./").removeprefix("."))
        present: dict[str, None] = {}
        scores: dict[str, float] = {}
        for line, row in enumerate(text.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
            words = row.split()
            if not words:
                continue
            word = words[0]
            if len(words) < BOX_COORDINATES + 1:
                self._problems.add(f"{place}, line {line}: {len(words)} words; a box has a class and 4 numbers")
                continue
            try:
                number = int(word) if word.isdigit() else int(float(word))
            except (ValueError, OverflowError):
                self._problems.add(
                    f"{place}, line {line}: {word[:20].decode(errors='replace')!r} is no number of a class"
                )
                continue
            if number not in names:
                last = max(names, default=-1)
                self._problems.add(f"{place}, line {line}: there is no class {number}; the last one is {last}")
                continue
            name, score = names[number], _parse_confidence(words)
            self._scored += score is not None
            if score is None or self._are_answers:
                present[name] = None
            else:
                scores[name] = max(scores.get(name, 0.0), score)
        return LabelFileContent(list(present), scores)


def _parse_confidence(words: Sequence[bytes]) -> float | None:
    """Return the confidence at the end of a line, or None.

    A polygon with a confidence has an odd number of words, but one with key points (0, 1 or 2) may have an even one.
    """
    if len(words) % 2 or len(words) < BOX_COORDINATES + 2:
        return None
    try:
        last = float(words[-1])
    except ValueError:
        return None
    if len(words) == BOX_COORDINATES + 2:
        return last
    return last if 0 < last < 1 else None
