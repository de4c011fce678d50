"""A folder that may become a project: images, class lists and labels.

Labels are offered only if they can be imported without questions.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.images_only import IMAGES
from annotator.exchange.formats.shared.class_list import (
    CLASS_LIST_NAMES,
    parse_class_list,
    read_classes,
    resolve_class_list,
)
from annotator.exchange.imports import label_files
from annotator.exchange.imports.image_folders import check_has_images
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.settings import THUMB_PIXELS
from annotator.store.classes import name_lists
from annotator.store.pictures.decoding import BadImage, write_display
from annotator.store.pictures.files import list_files, unescape_path
from annotator.store.pictures.picture_kinds import get_ending, looks_like_image
from annotator.ui.home.allowed_roots import AllowedRoots

SAMPLE_COUNT = 8
MAX_CLASSES_SHOWN = 1000  # of a table whose names are shown
MAX_ITEMS_READ = 5000  # of a table that are read for the names of its classes
MAX_CLASS_LIST_BYTES = 1 << 20  # bytes of a list of classes
IMPORT_LATER_HINT = "Make the project, then add them on its Import page."


@dataclass(frozen=True)
class ClassList:
    """A class list file, with one class per line."""

    file: str
    count: int
    text: str


@dataclass(frozen=True)
class FoundLabels:
    """Labels found in the folder."""

    # table or folder
    file: str
    name: str
    # how the labels were recognized
    why: str
    # class names, one per line
    text: str
    count: int
    # why they cannot be imported, or ""
    trouble: str = ""


@dataclass(frozen=True)
class FolderScan:
    """The content of a folder and its subfolders."""

    folder: str
    images: int
    # file suffix -> image count
    endings: Mapping[str, int]
    samples: Sequence[str]
    # sentences about skipped files
    said: Sequence[str] = ()
    lists: Sequence[ClassList] = ()


def scan_folder(folder: Path, roots: AllowedRoots, excluded_folder: Path) -> FolderScan:
    """Return the content of a folder, without labels.

    Args:
        roots: Allowed folders. Class lists outside are not offered.
        excluded_folder: Folder of projects, which is skipped.

    Raises:
        AnnotatorError: The folder has no readable images.
    """
    listing = list_files(folder, leave_out=excluded_folder)
    check_has_images(folder, listing)
    images = listing.list_images()
    step = max(1, len(images) // SAMPLE_COUNT)
    samples = [str(folder / unescape_path(path)) for path in images[::step][:SAMPLE_COUNT]]
    said = list(listing.left_out.format_sentences())
    said += [f"{bad.path} is skipped: {bad.reason}." for bad in listing.kept_out[:3]]
    endings = Counter(get_ending(path) for path in images)
    lists = tuple(_find_class_lists(folder, roots))
    return FolderScan(str(folder), len(images), dict(endings.most_common()), samples, said, lists)


def parse_classes(text: str, commas: str) -> list[tuple[str, str]]:
    """Parse typed classes to (name, description) pairs.

    Args:
        text: Classes separated by lines or commas.
        commas: SPLIT or KEEP.

    Raises:
        AnnotatorError: Names are repeated or not valid.
    """
    return resolve_class_list(parse_class_list(text), (), "the list", commas) if text.strip() else []


def has_lists(text: str) -> bool:
    """Return whether a line of typed classes may be a list of names."""
    return bool(text.strip() and name_lists.find_lists(parse_class_list(text), ()))


def make_thumbnail(path: Path) -> bytes:
    """Return a small JPEG of an image, or raise AnnotatorError."""
    if not looks_like_image(path.name) or not path.is_file():
        raise AnnotatorError(f"{path.name} is no image that is read here.")
    try:
        with tempfile.TemporaryDirectory(prefix="annotator-") as place:
            target = Path(place) / "thumb.jpg"
            write_display(path, target, THUMB_PIXELS)
            return target.read_bytes()
    except BadImage as error:
        raise AnnotatorError(f"{path.name} cannot be shown: {error}") from error


def _find_class_lists(folder: Path, roots: AllowedRoots) -> Iterator[ClassList]:
    for place in (folder, folder.parent):
        for name in CLASS_LIST_NAMES:
            try:
                file = roots.resolve_path(str(place / name))
                if file.is_file() and file.stat().st_size <= MAX_CLASS_LIST_BYTES:
                    pairs = read_classes(file)
                    yield ClassList(str(file), len(pairs), _format_classes(pairs))
            except (OSError, AnnotatorError):  # not there, or no list of classes: nothing to offer
                continue


def find_labels(folder: Path, roots: AllowedRoots) -> FoundLabels | None:
    try:
        for entry in folder.iterdir():
            if entry.is_symlink() and entry.is_file():  # an error of a reader may quote what a file holds
                roots.resolve_path(str(entry))
        found = label_files.find([folder], None, ReadingOptions())
        roots.resolve_path(str(found.path))
    except AnnotatorError as error:
        return FoundLabels("", "labels", "", "", 0, f"{error} {IMPORT_LATER_HINT}")
    if found.format is IMAGES:
        return None
    name = found.path.name if found.path != folder else "names of folders"
    try:
        problems = Problems()
        contents = label_files.read_label_file(found.format, found.path, problems, ReadingOptions())
        classes = dict(contents.classes)
        for item in islice(contents.items, MAX_ITEMS_READ):
            classes |= {one.class_name: classes.get(one.class_name, "") for one in item.labels}
        if problems.count:
            raise problems.error(f"{name} cannot be read as it is:")
    except AnnotatorError as error:
        return FoundLabels(str(found.path), name, found.why, "", 0, f"{error} {IMPORT_LATER_HINT}")
    doubts = [one.why for one in (*found.interpretations, *contents.interpretations) if not one.is_sure]
    trouble = f"They can be read in more than one way ({doubts[0]}). {IMPORT_LATER_HINT}" if doubts else ""
    if found.other_paths:
        trouble = f"They lie in {len(found.other_paths) + 1:,} files. {IMPORT_LATER_HINT}"
    pairs = list(classes.items())[:MAX_CLASSES_SHOWN]
    return FoundLabels(str(found.path), name, found.why, _format_classes(pairs), len(classes), trouble)


def _format_classes(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{name}\t{text}" if text else name for name, text in pairs)
