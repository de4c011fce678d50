"""Which files of a source hold its labels, in which format; and which may hold some and are not read.

A folder may have a table of labels, one file an image, folders that are classes, or several of these. Where more than
one reading fits, it is a question (Reading.labels settles it); nothing that may be labels is passed over in silence.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError, several
from annotator.exchange.files.json_stream import check, starts_with
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import all_formats, find_format, formats_of
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.imagefolder import CLASSES as FOLDER_NAMES
from annotator.exchange.formats.imagefolder import IMAGEFOLDER
from annotator.exchange.formats.images import IMAGES
from annotator.exchange.formats.shared.camtrap_tables import PACKAGE
from annotator.exchange.formats.shared.card_beside import card_path
from annotator.exchange.formats.shared.provenance import sidecars
from annotator.exchange.formats.shared.split_names import SPLITS
from annotator.exchange.imports.folders import refuse_unread_pictures
from annotator.exchange.reading.reading import FOLDERS, NONE, Decided, Reading
from annotator.shares import counted
from annotator.store.pictures.kinds import looks_like_image
from annotator.store.pictures.leftovers import leftover_folder, leftover_of

GLANCED = 200  # files of a folder that may be its labels
LOOKED_AT = 100_000  # entries of a folder
TRIED = 200  # images of a table that are looked for in the folder
LABELS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".xml", ".parquet", ".xlsx", ".ddb", ".db", ".sqlite", ".yaml")
IN_FILES = "beside"
"""The value of Reading.labels for labels in a file for each image, beside it."""
OF_IMAGES = ("labelme", "voc", "yolo")
"""Formats that may have such files."""
BESIDE = (".xml", ".json", ".txt", ".csv", ".npy")
"""Endings of files with the labels of the image of the same name."""
_OF_OTHERS = frozenset(("package.json", "dataset_infos.json", "croissant.json", "config.json", "desktop.json"))
_WORD = re.compile(r"[^\W\d]{2}[^\d]*")  # of a folder's name that can be a class
_PLACES = frozenset(
    "photos photo images image pictures picture pics dcim camera new old raw misc backup export exports upload uploads "
    "originals selected selection unsorted sorted processed other temp tmp archive data dataset files phone "
    "card".split()
)
"""Names of folders that say where photos come from, not what is on them."""


@dataclass(frozen=True)
class Found:
    """The files that labels are read from: `path`, and `more` of the same format. decided: as in Contents."""

    path: Path
    format: Format
    why: str
    said: Sequence[str] = ()
    more: Sequence[Path] = ()
    decided: Sequence[Decided] = ()


def find(paths: Sequence[Path], name: str | None, reading: Reading) -> Found:
    """Return the files that labels are read from: one of the paths, or files inside the last one, if it is a folder.

    Args:
        paths: A file or folder, or several of which the last may be a folder.
        name: The name of the format, None: recognised.
        reading: What the person has said about the source.

    Raises:
        AnnotatorError: No format fits, several fit, or a file that the reading names is not there.
    """
    folder = paths[-1]
    if reading.labels is not None and folder.is_dir():
        return _as_told(folder, name, reading.labels)
    if name is not None:
        format_ = find_format(name, "read")
        fits = (path for path in paths if format_.recognise and format_.recognise(path))
        return Found(next(fits, folder), format_, "as you say")
    for path in paths:
        if found := formats_of(path):
            return _of_folder(path, found) if path.is_dir() else Found(path, *_only(path, found))
    if not folder.is_dir():
        return Found(folder, *choose_format(folder, None))
    return _inside(folder)


def _as_told(folder: Path, name: str | None, labels: str) -> Found:
    if labels == NONE:
        return Found(folder, IMAGES, "images only, as you say")
    if labels == FOLDERS:
        return Found(folder, IMAGEFOLDER, "folders are classes, as you say")
    if labels == IN_FILES:
        found = [one for one in formats_of(folder) if one[0] is not IMAGEFOLDER]
        if not found:
            raise AnnotatorError(
                f"--labels {labels}: no format that is known has label files beside images in {folder}."
            )
        return Found(folder, *_only(folder, found))
    files = [folder / one.strip() for one in labels.split(",")]
    missing = [str(file) for file in files if not file.is_file() or not file.resolve().is_relative_to(folder.resolve())]
    if missing:
        there = ", ".join(_names(_files(folder), folder)[:20]) or "none"
        raise AnnotatorError(f"--labels {labels}: {', '.join(missing)} is no file of {folder}. There is: {there}.")
    chosen = choose_format(files[0], name)
    others = [str(file) for file in files[1:] if choose_format(file, name)[0] is not chosen[0]]
    if others:
        raise AnnotatorError(f"--labels {labels}: {', '.join(others)} is of another format than {files[0].name}.")
    return Found(files[0], *chosen, (), files[1:])


def _of_folder(folder: Path, found: list[tuple[Format, str]]) -> Found:
    """Return a folder that formats fit: label files of images are certain, names of folders may be anything."""
    others = [one for one in found if one[0] is not IMAGEFOLDER]
    chosen = Found(folder, *_only(folder, others or found))
    if chosen.format is IMAGEFOLDER:
        return _class_folders(chosen)
    if chosen.format.name not in OF_IMAGES:
        return chosen
    beside = set(sidecars(folder))
    fits = {file: [format_ for format_, _ in formats_of(file)] for file in _files(folder) if file not in beside}
    tables = [file for file, formats in fits.items() if formats and chosen.format not in formats]
    if tables:
        names = _names(tables, folder)
        why = f"labels are in a file an image ({chosen.why}), and may be in {', '.join(names[:5])} too"
        return replace(chosen, decided=[Decided("labels", IN_FILES, why, False, [*names, NONE])])
    if len(others) < len(found):
        why = f"labels are in a file an image ({chosen.why}), so that the names of folders are no classes"
        return replace(chosen, decided=[Decided("labels", IN_FILES, why, True, (FOLDERS, NONE))])
    return chosen


def _inside(folder: Path) -> Found:
    """Return the files in a folder, itself of no format, that labels are read from; else the folder as images."""
    files = _files(folder)
    beside = {path for file in files for path in sidecars(file)}
    inside = [(file, found) for file in files if file not in beside and (found := formats_of(file))]
    used = {file for file, _ in inside} | beside
    predicted = _predicted(inside)
    if not predicted or holds_images(folder):  # a folder of nothing else is refused by what it is
        inside = [(file, found) for file, found in inside if not _by(found)]
    packages = {file.parent for file, _ in inside if file.name == PACKAGE}  # whose tables are read together
    inside = [one for one in inside if one[0].name == PACKAGE or one[0].parent not in packages]
    if not inside:
        if not holds_images(folder):
            refuse_unread_pictures(folder)
            return Found(folder, *choose_format(folder, None))
        decided = _unread(folder, used) or _no_classes(folder)
        return Found(folder, IMAGES, "a folder of images", predicted, (), decided)
    file, found = inside[0]
    rest = [other for other, _ in inside[1:]]
    format_, why = _only(file, found)
    said = [f"Labels are read from {file.relative_to(folder)}.", *predicted]
    if rest and _are_of_splits(inside):
        shown = ", ".join(_names([file, *rest], folder))
        return Found(file, format_, why, [f"Labels are read from {shown}.", *predicted], rest, _told(folder, used))
    if rest:
        names = _names([file, *rest], folder)
        why_ = f"labels may be in {', '.join(names[:10])}; one import reads one of them, or several of one format"
        return Found(file, format_, why, said, (), [Decided("labels", names[0], why_, False, [*names[1:], NONE])])
    return Found(file, format_, why, said, (), _told(folder, used))


def _by(found: Sequence[tuple[Format, str]]) -> str:
    """Return what predicts all that such a file holds, such as "a detector"; "" where it may hold answers of people.

    Args:
        found: The formats that fit the file, with the reasons.
    """
    return next((format_.predicted_by for format_, _ in found if format_.predicted_by), "")


def _predicted(inside: Sequence[tuple[Path, list[tuple[Format, str]]]]) -> list[str]:
    """Return a sentence for each file of predictions, which is not read for labels."""
    return [
        f"{file} holds predictions of {by}, and is not read: annotator predictions PROJECT {file} --name NAME"
        for file, found in inside
        if (by := _by(found))
    ]


def _are_of_splits(inside: Sequence[tuple[Path, list[tuple[Format, str]]]]) -> bool:
    """Return whether these files have one name and format and lie in folders that are splits, as Roboflow writes."""
    names = {file.name for file, _ in inside}
    formats = {tuple(format_.name for format_, _ in found) for _, found in inside}
    return len(names) == len(formats) == 1 and all(file.parent.name.lower() in SPLITS for file, _ in inside)


def _class_folders(chosen: Found) -> Found:
    """Return an image folder with what speaks for and against its folders being classes."""
    folder = chosen.path
    if (folder / FOLDER_NAMES).is_file() or card_path(folder):
        return chosen
    classes = _folders(folder)
    files = _files(folder)
    beside = {path for file in files for path in sidecars(file)}
    tables = [(file, found) for file in files if file not in beside and (found := formats_of(file))]
    used = {file for file, _ in tables} | beside
    chosen = replace(chosen, said=[*chosen.said, *_predicted(tables)])
    tables = [(file, found) for file, found in tables if not _by(found)]
    if len(tables) == 1 and len(tables[0][1]) == 1:
        file, (of_file,) = tables[0][0], tables[0][1]
        share, labels = _reaches(file, of_file[0], folder)
        if share >= 0.5:
            name = file.relative_to(folder).as_posix()
            why = f"`{name}` names {share:.0%} of the images that were tried, so the folders are no classes"
            is_sure = labels.isdisjoint(one.casefold() for one in classes)
            decision = Decided("labels", name, why, is_sure, (FOLDERS, NONE))
            return Found(file, *of_file, [f"Labels are read from {name}."], (), [decision])
    if tables or (unread := _unread(folder, used)):
        names = _names([file for file, _ in tables], folder) or list(unread[0].others)
        why = f"folders are classes ({', '.join(classes[:5])}), but {', '.join(names[:5])} may hold labels too"
        return replace(chosen, decided=[Decided("labels", FOLDERS, why, False, [*names, NONE])])
    inner = _inner_folders(folder, classes)
    if inner:
        why = f"folders are classes ({', '.join(classes[:3])}), or those in them ({', '.join(inner[:3])}), which repeat"
        return replace(chosen, decided=[Decided("labels", FOLDERS, why, False, (NONE,))])
    strange = [name for name in classes if not _WORD.fullmatch(name.strip()) or name.strip().lower() in _PLACES]
    if strange:
        why = f"folders are classes, but {', '.join(map(repr, strange[:5]))} may be a date, a place or a card"
        return replace(chosen, decided=[Decided("labels", FOLDERS, why, False, (NONE,))])
    return chosen


def _no_classes(folder: Path) -> list[Decided]:
    """Return what is said of folders with names like classes that are not read as such; [] without any."""
    tops = {path.relative_to(folder).parts[0] for path in _below(folder) if looks_like_image(path.name)}
    names = sorted(name for name in tops if (folder / name).is_dir() and _WORD.fullmatch(name))
    names = [name for name in names if name.lower() not in _PLACES]
    why = f"folders such as {', '.join(names[:3])} say where images lie, and are no classes"
    return [Decided("labels", NONE, why, True, (FOLDERS,))] if names else []


def _inner_folders(folder: Path, classes: Sequence[str]) -> list[str]:
    """Return names of folders that are in several class folders: perhaps these are stations, and those the classes."""
    counts: Counter[str] = Counter()
    for name in classes:
        place = folder / name
        if place.is_dir():
            counts.update(
                {one.name for one in islice(place.iterdir(), LOOKED_AT) if one.is_dir() and one.name[0] != "."}
            )
    return sorted(name for name, count in counts.items() if count > 1)


def _folders(folder: Path) -> list[str]:
    """Return the names of the folders that would be classes, those in splits included."""
    tops = sorted(one for one in _folders_in(folder) if not one.name.startswith("."))
    if tops and all(one.name.lower() in SPLITS for one in tops):
        return sorted({one.name for top in tops for one in _folders_in(top)})
    return [one.name for one in tops]


def _folders_in(folder: Path) -> Iterator[Path]:
    return (one for one in folder.iterdir() if one.is_dir() and not leftover_folder(one.name))


def _reaches(file: Path, format_: Format, folder: Path) -> tuple[float, set[str]]:
    """Return the share of the first images of a label file that are in a folder, and the labels of their items."""
    try:
        items = list(islice(read(format_, file, Problems(), Reading()).items, TRIED))
    except AnnotatorError:
        return 0.0, set()
    known = {path.stem.casefold() for path in _below(folder) if looks_like_image(path.name)}
    stems = [Path(item.image.replace("\\", "/")).stem.casefold() for item in items]
    labels = {given.class_name.casefold() for item in items for given in item.labels}
    return (sum(stem in known for stem in stems) / len(stems) if stems else 0.0), labels


def _unread(folder: Path, used: set[Path]) -> list[Decided]:
    """Return a question about the files of a folder that may hold labels and are not read; [] without any."""
    names, kinds = _left(folder, used)
    if not names and not kinds:
        return []
    listed = [*names[:10], *(f"{counted(count, f'{kind} file')} named as images are" for kind, count in kinds.items())]
    why = (
        f"{', '.join(listed)} may hold labels, and no format that is known fits ({', '.join(sorted(_known()))}): "
        "only the images are imported"
    )
    return [Decided("labels", NONE, why, False, names)]


def _told(folder: Path, used: set[Path]) -> list[Decided]:
    """Return what is said, beside the labels that are read, about files that are not."""
    names, kinds = _left(folder, used)
    listed = [*names[:10], *(f"{counted(count, f'{kind} file')} named as images are" for kind, count in kinds.items())]
    first = next(iter(sorted(used)))
    value = first.relative_to(folder).as_posix()
    return [Decided("labels", value, f"not read: {', '.join(listed)}")] if listed else []


def _left(folder: Path, used: set[Path]) -> tuple[list[str], Counter[str]]:
    """Return files that may hold labels and are not used, and the endings of files with the names of images."""
    cards = {card for path in (folder, *used) if (card := card_path(path))}
    images = {path.with_suffix("") for path in _below(folder) if looks_like_image(path.name)}
    kinds: Counter[str] = Counter()
    for path in _below(folder):
        if path.suffix.lower() in BESIDE and path.with_suffix("") in images and path not in used:
            kinds[path.suffix.lower()] += 1
    left = [
        file
        for file in _files(folder)
        if file not in used and file not in cards and file.name.lower() not in _OF_OTHERS
    ]
    return _names([file for file in left if file.with_suffix("") not in images], folder), kinds


def _known() -> list[str]:
    return [name for name, format_ in all_formats().items() if format_.read and name != IMAGES.name]


def _names(files: Sequence[Path], folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in files]


def read(format_: Format, path: Path, problems: Problems, reading: Reading) -> Contents:
    """Return the contents of a source, read as the person says where its format can be."""
    if format_.read_as:
        return format_.read_as(path, problems, reading)
    assert format_.read is not None  # checked by choose_format
    return format_.read(path, problems)


def predicted_by(source: Path, name: str | None) -> str:
    """Return what made all that a file says, if no person did: "a detector"; "" for any other source.

    Args:
        source: The file.
        name: The name of its format, None: recognised.
    """
    if name is not None:
        return all_formats()[name].predicted_by if name in all_formats() else ""
    return _by(formats_of(source)) if source.is_file() else ""


def choose_format(source: Path, name: str | None) -> tuple[Format, str]:
    """Return the format of a source, and how it was recognised. Raises AnnotatorError if no format or several fit."""
    if name is not None:
        return find_format(name, "read"), "as you say"
    readable = {format_.name: format_ for format_ in all_formats().values() if format_.read}
    found = formats_of(source)
    if not found and source.suffix.lower() in (".csv", ".tsv", ".parquet"):
        return readable[source.suffix.lower()[1:]], "by its name"  # its reader's error names the columns it needs
    if not found:
        if source.suffix.lower() == ".json" and source.is_file():
            check(source)  # if the JSON is broken, this raises an error with the line
        raise AnnotatorError(
            f"{source} is of no format that is known. Known are: {', '.join(readable)}. Say which it is (--format)."
        )
    return _only(source, found)


def _only(source: Path, found: list[tuple[Format, str]]) -> tuple[Format, str]:
    if len(found) > 1:
        fits = [f"{format_.name}: {why}" for format_, why in found]
        raise several(f"{source} fits several formats. Say which it is (--format):", fits)
    return found[0]


def _files(folder: Path) -> list[Path]:
    """Return files that may hold labels, in the folder and its direct subfolders; at most GLANCED."""
    return sorted(islice(_likely(folder), GLANCED))


def _likely(folder: Path) -> Iterator[Path]:
    opened = 0
    for level in ("*", "*/*"):
        for file in folder.glob(level):
            if file.name.startswith(".") or leftover_of(file.relative_to(folder).as_posix()):
                continue
            if file.suffix.lower() in LABELS and file.is_file():
                yield file
            elif not file.suffix and opened < GLANCED and file.is_file():
                opened += 1
                if starts_with(file, 4).startswith((b"{", b"[", b"<", b"PAR1")):
                    yield file


def _below(folder: Path) -> Iterator[Path]:
    """Yield the first entries of a folder and its subfolders, without leftovers of servers and systems."""
    found = islice(folder.rglob("*"), LOOKED_AT)
    return (path for path in found if not leftover_of(path.relative_to(folder).as_posix()))


def holds_images(folder: Path) -> bool:
    """Return whether an image is among the first entries of a folder and its subfolders."""
    return any(looks_like_image(file.name) for file in _below(folder))
