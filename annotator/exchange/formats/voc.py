"""Pascal VOC: one XML file per image, and one list per image set and class.

Format: http://host.robots.ox.ac.uk/pascal/VOC/voc2012/devkit_doc.pdf, sections 3.3 and 4.1.

Read: objects make a class present, or unsure if all are difficult. In lists, 0 is unsure and -1 absent.

Written: objects have no bndbox, so that detectors learn no false boxes. Class lists omit unanswered images. Own
elements are source/image, sha256, split, absent, `source`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.files.xml_text import check_xml_text
from annotator.exchange.formats import voc_xml_files
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import STATE_WORDS, UNKNOWN_VALUE, Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.label_file_pairs import strip_suffix
from annotator.exchange.formats.voc_annotation import OWN_DATABASE, build_labels, parse_annotation
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, FILL_SOURCES, PRESENT, UNSURE
from annotator.store.pictures.files import list_files

ANNOTATIONS_FOLDER, IMAGES_FOLDER, MAIN_FOLDER = "Annotations", "JPEGImages", "ImageSets/Main"
VOC_YEARS = tuple(f"VOC{year}" for year in range(2005, 2013))
WHOLE_SET = "trainval"  # the image set of an export without splits
MAX_HELD_CHARS = 4 << 20  # letters of lists in memory
MAX_CACHED_NAMES = 200_000
STATE_BY_VALUE = {1: PRESENT, -1: ABSENT, 0: UNSURE}


def recognize(path: Path) -> str | None:
    root = _find_root(path)
    if root is None:
        return voc_xml_files.recognize(path)
    has = [name for name in (ANNOTATIONS_FOLDER, MAIN_FOLDER, IMAGES_FOLDER) if (root / name).is_dir()]
    return f"Pascal VOC: it has {' and '.join(has)}"


def _find_root(path: Path) -> Path | None:
    places = [path, *(path / kit / year for kit in ("", "VOCdevkit") for year in VOC_YEARS)]
    found = [
        place for place in places if _find_first_xml(place / ANNOTATIONS_FOLDER) or _is_folder(place / MAIN_FOLDER)
    ]
    return found[0] if len(found) == 1 or path in found else None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _find_first_xml(folder: Path) -> str | None:
    try:
        with os.scandir(folder) as entries:
            return next((entry.name for entry in entries if entry.name.endswith(".xml")), None)
    except OSError:
        return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of all XML files and lists. Raises AnnotatorError."""
    root = _find_root(path)
    if root is None:
        if voc_xml_files.recognize(path):
            return voc_xml_files.read(path, problems)
        raise AnnotatorError(
            f"{path} is no single VOC folder: it has neither {ANNOTATIONS_FOLDER}/*.xml nor {MAIN_FOLDER}."
        )
    first = _find_first_xml(root / ANNOTATIONS_FOLDER)
    ours = bool(first) and (parse_annotation(root / ANNOTATIONS_FOLDER / first, first, Problems()) or {}).get(
        "ours", False
    )
    lists = [] if ours else _find_class_lists(root / MAIN_FOLDER)
    images = root / IMAGES_FOLDER if (root / IMAGES_FOLDER).is_dir() else None
    said = ["An object makes its class present; unsure where all are difficult. Boxes are not kept."]
    if ours or lists:
        said.append("-1 in ImageSets/Main is absent, 0 is unsure.")
    if not ours:
        said.append("All other classes of an image are unknown, unless the source names everything (--exhaustive).")
    classes = dict.fromkeys(name for _, name, _ in lists)
    return Contents(
        [(name, "") for name in classes],
        _read_items(root, images, lists, problems),
        folder=images,
        place="file",
        sentences=said,
    )


def _read_items(root: Path, images: Path | None, lists: Sequence[tuple[Path, str, str]], problems: Problems):
    if (root / ANNOTATIONS_FOLDER).is_dir():
        for name in list_files(root / ANNOTATIONS_FOLDER, leave_out=root / ANNOTATIONS_FOLDER).paths:
            if name.endswith(".xml") and (
                found := parse_annotation(root / ANNOTATIONS_FOLDER / name, f"{ANNOTATIONS_FOLDER}/{name}", problems)
            ):
                yield _build_item(found, name, images)
    name_of = lru_cache(MAX_CACHED_NAMES)(partial(_find_image, images))  # every list of a class names the same images
    for file, class_name, split in lists:
        yield from _read_class_list(file, class_name, split, images, name_of, problems)


def _build_item(found: dict[str, Any], name: str, images: Path | None) -> Item:
    file = found["filename"] if found["ours"] else _find_file(found["filename"], name.removesuffix(".xml"), images)
    image = found["image"] if found["ours"] else file
    attributes = {"split": found["split"]} if found["split"] else {}
    place = f"{ANNOTATIONS_FOLDER}/{name}"
    return Item(
        image,
        place,
        build_labels(found),
        file=_name_if_exists(images, file),
        sha256=found["sha256"],
        attributes=attributes,
    )


def _find_file(written: str, image_id: str, images: Path | None) -> str:
    tail = written.replace("\\", "/").rpartition("/")[2]
    tried = [written, tail, *(_find_image(images, stem) for stem in (tail, strip_suffix(tail), image_id) if stem)]
    return next((name for name in tried if _name_if_exists(images, name)), written or f"{image_id}.jpg")


def _find_image(images: Path | None, image_id: str) -> str:
    names = [f"{image_id}{ending}" for ending in (".jpg", ".JPG", ".jpeg", ".JPEG", ".png", ".PNG")]
    return next((name for name in names if _name_if_exists(images, name)), names[0])


def _name_if_exists(images: Path | None, file: str) -> str:
    if images is None or "/" in file or "\\" in file or "\0" in file:
        return ""
    try:
        return file if (images / file).is_file() else ""
    except OSError:  # a name too long for a file
        return ""


def _find_class_lists(folder: Path) -> list[tuple[Path, str, str]]:
    """Return (file, class, set) per class list, without the set trainval if the class has train and val."""
    paths = sorted(folder.glob("*.txt")) if folder.is_dir() else []
    stems = {path.stem: path for path in paths if not path.is_symlink()}
    sets = sorted((stem for stem in stems if _is_set_list(stems[stem])), key=len, reverse=True)
    sets = sets or ["trainval", "train", "test", "val"]
    result: dict[tuple[str, str], Path] = {}
    for stem, path in stems.items():
        split = next((name for name in sets if stem.endswith(f"_{name}")), None)
        if stem not in sets and split:
            result[stem.removesuffix(f"_{split}"), split] = path
    whole = {
        class_
        for class_, split in result
        if split == WHOLE_SET and {(class_, "train"), (class_, "val")} <= result.keys()
    }
    return [(path, name, split) for (name, split), path in result.items() if split != WHOLE_SET or name not in whole]


def _is_set_list(path: Path) -> bool:
    return len(next(read_lines(path), "").split()) == 1


def _read_class_list(
    file: Path, class_name: str, split: str, images: Path | None, name_of: Callable[[str], str], problems: Problems
) -> Iterator[Item]:
    attributes = {"split": split} if split != WHOLE_SET else {}
    givens = {str(value): (ImportedLabel(class_name, state),) for value, state in STATE_BY_VALUE.items()}
    for number, line in enumerate(read_lines(file), start=1):
        words = line.split()
        if not words:
            continue
        given = givens.get(words[1].removeprefix("+")) if len(words) == 2 else None
        if given is None:
            problems.add(
                f"{MAIN_FOLDER}/{file.name}, line {number}: {line.strip()!r:.80} must be an image and 1, -1 or 0"
            )
            continue
        name = name_of(words[0])
        yield Item(
            name,
            f"{MAIN_FOLDER}/{file.name}, line {number}",
            given,
            file=_name_if_exists(images, name),
            attributes=attributes,
        )


def write(view: View, output: Output) -> None:
    """Write XML files, lists and exported images. The id of an image is the stem of its exported file."""
    check_xml_text("classes", (class_.name for class_ in view.classes))
    names = [escape(class_.name) for class_ in view.classes]
    folders = safe_names([class_.name for class_ in view.classes])
    sets = {name: name for name in view.splits} or {"": WHOLE_SET}
    held = _ListWriter(output)
    for name in sets.values():
        for file in (name, *(f"{folder}_{name}" for folder in folders)):
            held.add(file, "")
    for block in view.blocks():
        check_xml_text("images", (image.name for image in block.images))
        values = np.where(block.states == STATE_WORDS.index("unsure"), 0, np.where(block.values == 0, -1, block.values))
        is_known = (block.values != UNKNOWN_VALUE) | (block.states == STATE_WORDS.index("unsure"))
        files = [_escape_blanks(file) for file in block.files]
        ids = [file.rpartition(".")[0] for file in files]
        for row, split in enumerate(block.splits):
            if split in sets:
                held.add(sets[split], f"{ids[row]}\n")
        for row, column in np.argwhere(is_known).tolist():
            if block.splits[row] in sets:
                held.add(f"{folders[column]}_{sets[block.splits[row]]}", f"{ids[row]} {values[row, column]:2}\n")
        held.write_some()
        for row, text in enumerate(_format_annotations(view, block, files, names, is_known)):
            with output.open_text(f"{ANNOTATIONS_FOLDER}/{ids[row]}.xml") as file:
                file.write(text)
            if view.image_mode != "none":  # `image` would make an empty folder, which looks like a folder of images
                output.write_image(block.images[row], f"{IMAGES_FOLDER}/{files[row]}")
    held.write_all()


def _escape_blanks(name: str) -> str:
    """Escape spaces as %20, because they separate ids in lists. Block.files has no "%"."""
    return name.replace(" ", "%20")


def _format_annotations(
    view: View, block: Block, files: Sequence[str], names: Sequence[str], is_known: np.ndarray
) -> Iterator[str]:
    filled = np.isin(view.sources, FILL_SOURCES)[block.sources]
    rest = "<pose>Unspecified</pose><truncated>0</truncated>"
    for row, image in enumerate(block.images):
        split = f"\t<split>{_escape_xml(block.splits[row])}</split>\n" if block.splits[row] else ""
        parts = [
            f"<annotation>\n\t<folder>{IMAGES_FOLDER}</folder>\n\t<filename>{_escape_xml(files[row])}</filename>\n"
            f"\t<source><database>{OWN_DATABASE}</database><image>{_escape_xml(image.name)}</image></source>\n"
            f"\t<size><width>{image.width}</width><height>{image.height}</height><depth>3</depth></size>\n"
            f"\t<segmented>0</segmented>\n\t<sha256>{image.sha256}</sha256>\n{split}"
        ]
        for column in np.flatnonzero(is_known[row]).tolist():
            source = f' source="{view.sources[block.sources[row, column]]}"' if filled[row, column] else ""
            if block.values[row, column] == 0:
                parts.append(f"\t<absent{source}>{names[column]}</absent>\n")
            else:
                difficult = int(block.values[row, column] == UNKNOWN_VALUE)
                parts.append(
                    f"\t<object{source}><name>{names[column]}</name>{rest}<difficult>{difficult}</difficult></object>\n"
                )
        parts.append("</annotation>\n")
        yield "".join(parts)


def _escape_xml(text: str) -> str:
    # A carriage return that is not escaped is read as a newline.
    return escape(text, {"\r": "&#13;"})


class _ListWriter:
    """A writer of ImageSets/Main, which buffers texts because few files can be open at once."""

    def __init__(self, output: Output):
        self._output = output
        self._held: dict[str, list[str]] = {}
        self._letters = 0
        self._begun: dict[str, Path] = {}

    def add(self, name: str, text: str) -> None:
        self._held.setdefault(name, []).append(text)
        self._letters += len(text) + 50

    def write_some(self) -> None:
        if self._letters > MAX_HELD_CHARS:
            self.write_all()

    def write_all(self) -> None:
        for name, texts in self._held.items():
            path = self._begun.get(name) or self._output.path(f"{MAIN_FOLDER}/{name}.txt")
            with path.open("a" if name in self._begun else "w", encoding="utf-8", newline="") as file:
                file.write("".join(texts))
            self._begun[name] = path
        self._held, self._letters = {}, 0


VOC = Format(
    name="voc",
    about="Pascal VOC: XML files without boxes, and ImageSets/Main with 1, -1 and 0. Read by torchvision and devkits",
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unknown=False, unsure=False, absent=False, provenance=True),
)
