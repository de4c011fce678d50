"""What lies in a folder that may become a project: images by format, samples, lists of classes, a table of labels.

Labels are found and read as `annotator import` does. Only what `annotator init` would take without a question is
offered; for anything else the sentence names the Import page of the project.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.images import IMAGES
from annotator.exchange.formats.shared.class_list import BESIDE, parsed_classes, read_classes
from annotator.exchange.imports import label_files
from annotator.exchange.imports.folders import refuse_without_images
from annotator.exchange.reading.reading import Reading
from annotator.settings import THUMB_PIXELS
from annotator.store.classes import name_lists
from annotator.store.pictures.decoding import BadImage, write_display
from annotator.store.pictures.files import list_files, unescaped
from annotator.store.pictures.kinds import ending_of, looks_like_image
from annotator.ui.home.roots import Roots

SAMPLES = 8
MOST_CLASSES = 1000  # of a table whose names are shown
MOST_ITEMS = 5000  # of a table that are read for the names of its classes
LARGEST_LIST = 1 << 20  # bytes of a list of classes
LATER = "Make the project, then add them on its Import page."


@dataclass(frozen=True)
class ClassList:
    """A list of classes in a file. text: one class a line, as `annotator init` reads it."""

    file: str
    count: int
    text: str


@dataclass(frozen=True)
class Labels:
    """Labels that lie in the folder.

    Attributes:
        file: The path of the table or folder that holds them.
        name: Its name, for people.
        why: What it was recognised by.
        text: The names of its classes, one a line.
        count: Number of these classes.
        trouble: Why they cannot come with the new project; "" where they can.
    """

    file: str
    name: str
    why: str
    text: str
    count: int
    trouble: str = ""


@dataclass(frozen=True)
class Look:
    """What a folder holds, searched with its subfolders.

    Attributes:
        endings: Ending -> number of images.
        samples: Paths of some images, spread over the folder.
        said: Sentences about what is left out.
    """

    folder: str
    images: int
    endings: Mapping[str, int]
    samples: Sequence[str]
    said: Sequence[str] = ()
    lists: Sequence[ClassList] = ()


def look(folder: Path, roots: Roots, projects: Path) -> Look:
    """Return what lies in a folder, without its labels, which take longer to find.

    Args:
        folder: The folder, allowed by the roots.
        roots: A list of classes beside the folder is offered only inside of them.
        projects: The folder of the projects, which is not searched.

    Raises:
        AnnotatorError: The folder holds no image, or cannot be read.
    """
    listing = list_files(folder, leave_out=projects)
    refuse_without_images(folder, listing)
    images = listing.images()
    step = max(1, len(images) // SAMPLES)
    samples = [str(folder / unescaped(path)) for path in images[::step][:SAMPLES]]
    said = list(listing.left_out.said())
    said += [f"{bad.path} is skipped: {bad.reason}." for bad in listing.kept_out[:3]]
    endings = Counter(ending_of(path) for path in images)
    lists = tuple(_lists(folder, roots))
    return Look(str(folder), len(images), dict(endings.most_common()), samples, said, lists)


def chosen_classes(text: str, commas: str) -> list[tuple[str, str]]:
    """Return the (name, description) pairs of classes as somebody typed them, as `annotator init` would read them.

    Args:
        text: One class a line, or several with commas between them.
        commas: name_lists.SPLIT or KEEP.

    Raises:
        AnnotatorError: Names are unusable or there twice.
    """
    return name_lists.settled(parsed_classes(text), (), "the list", commas) if text.strip() else []


def thumbnail(path: Path) -> bytes:
    """Return a small JPEG of an image that is in no project yet.

    Raises AnnotatorError where it is no image, or cannot be read.
    """
    if not looks_like_image(path.name) or not path.is_file():
        raise AnnotatorError(f"{path.name} is no image that is read here.")
    try:
        with tempfile.TemporaryDirectory(prefix="annotator-") as place:
            target = Path(place) / "thumb.jpg"
            write_display(path, target, THUMB_PIXELS)
            return target.read_bytes()
    except BadImage as error:
        raise AnnotatorError(f"{path.name} cannot be shown: {error}") from error


def _lists(folder: Path, roots: Roots) -> Iterator[ClassList]:
    """Yield the lists of classes that lie in the folder or beside it."""
    for place in (folder, folder.parent):
        for name in BESIDE:
            try:
                file = roots.path(str(place / name))
                if file.is_file() and file.stat().st_size <= LARGEST_LIST:
                    pairs = read_classes(file)
                    yield ClassList(str(file), len(pairs), _text(pairs))
            except (OSError, AnnotatorError):  # not there, or no list of classes: nothing to offer
                continue


def find_labels(folder: Path, roots: Roots) -> Labels | None:
    """Return the labels that lie in a folder; None without any."""
    try:
        for entry in folder.iterdir():
            if entry.is_symlink() and entry.is_file():  # an error of a reader may quote what a file holds
                roots.path(str(entry))
        found = label_files.find([folder], None, Reading())
        roots.path(str(found.path))
    except AnnotatorError as error:
        return Labels("", "labels", "", "", 0, f"{error} {LATER}")
    if found.format is IMAGES:
        return None
    name = found.path.name if found.path != folder else "names of folders"
    try:
        problems = Problems()
        contents = label_files.read(found.format, found.path, problems, Reading())
        classes = dict(contents.classes)
        for item in islice(contents.items, MOST_ITEMS):
            classes |= {one.class_name: classes.get(one.class_name, "") for one in item.labels}
        if problems.count:
            raise problems.error(f"{name} cannot be read as it is:")
    except AnnotatorError as error:
        return Labels(str(found.path), name, found.why, "", 0, f"{error} {LATER}")
    doubts = [one.why for one in (*found.decided, *contents.decided) if not one.is_sure]
    trouble = f"They can be read in more than one way ({doubts[0]}). {LATER}" if doubts else ""
    if found.more:
        trouble = f"They lie in {len(found.more) + 1:,} files. {LATER}"
    pairs = list(classes.items())[:MOST_CLASSES]
    return Labels(str(found.path), name, found.why, _text(pairs), len(classes), trouble)


def _text(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{name}\t{text}" if text else name for name, text in pairs)
