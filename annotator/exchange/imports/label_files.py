"""Selection of the files in a source that hold labels, and their format.

If several selections fit, the user must choose.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.json_stream import check_json, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import all_formats, find_format, match_formats
from annotator.exchange.formats.coco import COCO
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.imagefolder import CLASSES_FILE, IMAGEFOLDER
from annotator.exchange.formats.images_only import IMAGES
from annotator.exchange.formats.shared.camtrap_tables import PACKAGE_FILE
from annotator.exchange.formats.shared.croissant_names import is_croissant_name
from annotator.exchange.formats.shared.data_card_reader import find_card
from annotator.exchange.formats.shared.sidecars import find_sidecars
from annotator.exchange.formats.shared.split_names import SPLIT_FOLDER_NAMES
from annotator.exchange.formats.vector_list import VECTOR_LIST
from annotator.exchange.imports.image_folders import check_no_unread_pictures
from annotator.exchange.imports.unknown_files import describe_unknown_source
from annotator.exchange.reading.cell_words import EMPTY_WORDS, normalize_word
from annotator.exchange.reading.class_name_checks import describe_odd_name
from annotator.exchange.reading.reading_options import LABELS_FROM_FOLDERS, NONE_VALUE, Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.store.pictures.leftovers import find_leftover_part, is_leftover_folder
from annotator.store.pictures.picture_kinds import looks_like_image

MAX_LABEL_FILES = 200  # files of a folder that may be its labels
LABEL_FILE_LEVELS = 2  # levels of a folder where its label files are looked for
MAX_FOLDER_ENTRIES = 100_000  # entries of a folder
MAX_IMAGES_TRIED = 200  # images of a table that are looked for in the folder
LABEL_FILE_SUFFIXES = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".manifest",
    ".csv",
    ".tsv",
    ".xml",
    ".parquet",
    ".xlsx",
    ".xlsm",
    ".ods",
    ".ddb",
    ".db",
    ".sqlite",
    ".yaml",
)
_COCO_FILE = re.compile(r"(instances|captions|person_keypoints|stuff|panoptic|image_info)_([a-z-]+\d*)\.json")
"""Names of files in COCO's folder `annotations`."""
LABELS_BESIDE_IMAGES = "beside"
"""The value of Reading.labels for labels in a file for each image, beside it."""
PER_IMAGE_FORMATS = ("bdd100k", "darwin", "encord", "keywords", "labelme", "scale-ai", "superannotate", "voc", "yolo")
"""Formats that may have such files."""
PER_IMAGE_SUFFIXES = (".xml", ".json", ".txt", ".csv", ".npy")
"""Endings of files with the labels of the image of the same name."""
_FOREIGN_FILES = frozenset(("package.json", "dataset_infos.json", "config.json", "desktop.json"))
_CLASS_LIKE_NAME = re.compile(r"[^\W\d]{2}[^\d]*")  # of a folder's name that can be a class
_JOINING_SIGNS = re.compile(r"[+&,;|_、，]| and ")
"""Signs between the names of two classes in the name of a folder."""
_BINARY_LABEL_SUFFIXES = frozenset(
    (
        ".mat .npz .npy .pkl .pickle .h5 .hdf5 .tfrecord .tfrecords .arrow .feather .rds .rdata .mdb .accdb .odgt .xls "
        ".xlsb .numbers .sqlite3"
    ).split()
)
"""Endings of files that often hold labels and that no format here reads, or only in a folder of a known form."""
_PER_IMAGE_LABEL_SUFFIXES = _BINARY_LABEL_SUFFIXES | frozenset(PER_IMAGE_SUFFIXES)
_TEXT_LIST_SUFFIXES = frozenset((".txt", ".lst", ".list", ".token", ".geojson"))
"""Endings of text files that hold labels where a name of an image is among their first letters."""
_UNREAD_SUFFIXES = _BINARY_LABEL_SUFFIXES | _TEXT_LIST_SUFFIXES
_TEXT_START_BYTES = 8192
_ARCHIVE_SUFFIXES = frozenset(".zip .tar .tgz .gz .bz2 .xz .zst .7z .rar".split())
_WORD_PATTERN = re.compile(r"[^\W_]+")
_SHARD_PATTERN = re.compile(r"-\d{5}-of-\d{5}$")
"""End of the names of TensorFlow's record files."""
_DOCUMENT_NAMES = frozenset(("readme", "license", "changelog", "citation"))
_PLACE_NAMES = frozenset(
    "photos photo images image pictures picture pics dcim camera new old raw misc backup export exports upload uploads "
    "originals selected selection unsorted sorted processed other temp tmp archive data dataset files phone "
    "card".split()
)
"""Names of folders that say where photos come from, not what is on them."""
_ANSWER_NAMES = frozenset("positive negative pos neg present absent".split())
"""Names of folders that are answers for a class that they do not name."""


@dataclass(frozen=True)
class FoundLabelFiles:
    """The label file found, `path`, and `other_paths` of the same format."""

    path: Path
    format: Format
    why: str
    sentences: Sequence[str] = ()
    other_paths: Sequence[Path] = ()
    interpretations: Sequence[Interpretation] = ()


def find(paths: Sequence[Path], name: str | None, reading: ReadingOptions) -> FoundLabelFiles:
    """Return the label files: one of the paths, or files in the last path if it is a folder.

    `name` is the format name, None to recognize it. Raises AnnotatorError if no or several formats fit, or a requested
    file is missing.
    """
    folder = paths[-1]
    if reading.labels is not None and folder.is_dir():
        return _find_requested(folder, name, reading.labels)
    if name is not None:
        format_ = find_format(name, "read")
        fits = (path for path in paths if format_.recognize and format_.recognize(path))
        return FoundLabelFiles(next(fits, folder), format_, "as you say")
    for path in paths:
        if found := match_formats(path):
            return (
                _find_in_known_folder(path, found)
                if path.is_dir()
                else FoundLabelFiles(path, *_require_one_format(path, found))
            )
    if not folder.is_dir():
        return FoundLabelFiles(folder, *choose_format(folder, None))
    return _find_inside_folder(folder)


def _find_requested(folder: Path, name: str | None, labels: str) -> FoundLabelFiles:
    if labels == NONE_VALUE:
        return FoundLabelFiles(folder, IMAGES, "images only, as you say")
    if labels == LABELS_FROM_FOLDERS:
        return FoundLabelFiles(folder, IMAGEFOLDER, "folders are classes, as you say")
    if labels == LABELS_BESIDE_IMAGES:
        found = [one for one in match_formats(folder) if one[0] is not IMAGEFOLDER]
        if not found:
            raise AnnotatorError(
                f"--labels {labels}: no format that is known has label files beside images in {folder}."
            )
        return FoundLabelFiles(folder, *_require_one_format(folder, found))
    files = [folder / one.strip() for one in labels.split(",")]
    missing = [str(file) for file in files if not file.is_file() or not file.resolve().is_relative_to(folder.resolve())]
    if missing:
        there = ", ".join(_relative_names(_list_label_files(folder), folder)[:20]) or "none"
        raise AnnotatorError(f"--labels {labels}: {', '.join(missing)} is no file of {folder}. There is: {there}.")
    chosen = choose_format(files[0], name)
    others = [str(file) for file in files[1:] if choose_format(file, name)[0] is not chosen[0]]
    if others:
        raise AnnotatorError(f"--labels {labels}: {', '.join(others)} is of another format than {files[0].name}.")
    return FoundLabelFiles(files[0], *chosen, (), files[1:])


def _find_in_known_folder(folder: Path, found: list[tuple[Format, str]]) -> FoundLabelFiles:
    """Return the label files of a folder that fits a format. Files per image take precedence over folder names."""
    others = [one for one in found if one[0] is not IMAGEFOLDER]
    chosen = FoundLabelFiles(folder, *_require_one_format(folder, others or found))
    if chosen.format is IMAGEFOLDER:
        return _check_class_folders(chosen)
    if chosen.format.name not in PER_IMAGE_FORMATS:
        return chosen
    beside = set(find_sidecars(folder))
    fits = {
        file: [format_ for format_, _ in match_formats(file)]
        for file in _list_label_files(folder)
        if file not in beside
    }
    tables = [file for file, formats in fits.items() if formats and chosen.format not in formats]
    if tables:
        names = _relative_names(tables, folder)
        why = f"labels are in a file an image ({chosen.why}), and may be in {', '.join(names[:5])} too"
        return replace(
            chosen, interpretations=[Interpretation("labels", LABELS_BESIDE_IMAGES, why, False, [*names, NONE_VALUE])]
        )
    if len(others) < len(found):
        why = f"labels are in a file an image ({chosen.why}), so that the names of folders are no classes"
        return replace(
            chosen,
            interpretations=[
                Interpretation("labels", LABELS_BESIDE_IMAGES, why, True, (LABELS_FROM_FOLDERS, NONE_VALUE))
            ],
        )
    return chosen


def _find_inside_folder(folder: Path) -> FoundLabelFiles:
    """Return the label files in a folder that fits no format, else the folder as images."""
    entries = _FolderEntries(folder)
    files = [*_list_label_files(folder), *filter(VECTOR_LIST.recognize, entries.unread)]
    beside = {path for file in files for path in find_sidecars(file)}
    inside = [(file, found) for file in files if file not in beside and (found := match_formats(file))]
    inside = [(file, found) for file, found in inside if not _is_beside_coco_instances(file)]
    used = {file for file, _ in inside} | beside
    predicted = _describe_prediction_files(inside)
    if not predicted or contains_images(folder):  # a folder of nothing else is refused by what it is
        inside = [(file, found) for file, found in inside if not _find_predictor(found)]
    packages = {file.parent for file, _ in inside if file.name == PACKAGE_FILE}  # whose tables are read together
    inside = [one for one in inside if one[0].name == PACKAGE_FILE or one[0].parent not in packages]
    if not inside:
        if not contains_images(folder):
            check_no_unread_pictures(folder)
            return FoundLabelFiles(folder, *choose_format(folder, None))
        decided = _ask_about_unread_files(entries, used) or _explain_plain_folders(entries)
        return FoundLabelFiles(
            folder, IMAGES, "a folder of images", [*predicted, *entries.describe_others()], (), decided
        )
    file, found = inside[0]
    rest = [other for other, _ in inside[1:]]
    format_, why = _require_one_format(file, found)
    predicted += entries.describe_others()
    said = [f"Labels are read from {file.relative_to(folder)}.", *predicted]
    if rest and _are_split_files(inside):
        shown = ", ".join(_relative_names([file, *rest], folder))
        return FoundLabelFiles(
            file,
            format_,
            why,
            [f"Labels are read from {shown}.", *predicted],
            rest,
            _mention_unread_files(entries, used, [file, *rest]),
        )
    if rest:
        names = _relative_names([file, *rest], folder)
        why_ = f"labels may be in {', '.join(names[:10])}; one import reads one of them, or several of one format"
        return FoundLabelFiles(
            file, format_, why, said, (), [Interpretation("labels", names[0], why_, False, [*names[1:], NONE_VALUE])]
        )
    return FoundLabelFiles(file, format_, why, said, (), _mention_unread_files(entries, used, [file]))


def _is_beside_coco_instances(file: Path) -> bool:
    """Return whether COCO's instances files hold the classes, and this file other annotations or only image names."""
    match = _COCO_FILE.fullmatch(file.name)
    if match is None or match[1] == "instances":
        return False
    if match[1] == "image_info":  # of a test split, or of unlabeled images, without annotations
        return any(file.parent.glob("instances_*.json"))
    return file.with_name(f"instances_{match[2]}.json").is_file()


def _find_predictor(found: Sequence[tuple[Format, str]]) -> str:
    return next((format_.predicted_by for format_, _ in found if format_.predicted_by), "")


def _describe_prediction_files(inside: Sequence[tuple[Path, list[tuple[Format, str]]]]) -> list[str]:
    return [
        f"{file} holds predictions of {by}, and is not read: annotator predictions PROJECT {file} --name NAME"
        for file, found in inside
        if (by := _find_predictor(found))
    ]


def _are_split_files(inside: Sequence[tuple[Path, list[tuple[Format, str]]]]) -> bool:
    names = {file.name for file, _ in inside}
    matches = [_COCO_FILE.fullmatch(file.name) for file, _ in inside]
    if len({file.parent for file, _ in inside}) == 1 and all(
        match and match[1] == "instances" and match[2].rstrip("0123456789") in SPLIT_FOLDER_NAMES for match in matches
    ):
        return all(COCO in [format_ for format_, _ in found] and len(found) == 1 for _, found in inside)
    formats = {tuple(format_.name for format_, _ in found) for _, found in inside}
    return len(names) == len(formats) == 1 and all(file.parent.name.lower() in SPLIT_FOLDER_NAMES for file, _ in inside)


def _check_class_folders(chosen: FoundLabelFiles) -> FoundLabelFiles:
    folder = chosen.path
    if (folder / CLASSES_FILE).is_file() or find_card(folder):
        return chosen
    classes = _list_class_folders(folder)
    files = _list_label_files(folder)
    beside = {path for file in files for path in find_sidecars(file)}
    tables = [(file, found) for file in files if file not in beside and (found := match_formats(file))]
    used = {file for file, _ in tables} | beside
    chosen = replace(chosen, sentences=[*chosen.sentences, *_describe_prediction_files(tables)])
    tables = [(file, found) for file, found in tables if not _find_predictor(found)]
    if len(tables) == 1 and len(tables[0][1]) == 1:
        file, (of_file,) = tables[0][0], tables[0][1]
        share, labels = _measure_image_overlap(file, of_file[0], folder)
        if share >= 0.5:
            name = file.relative_to(folder).as_posix()
            why = f"`{name}` names {share:.0%} of the images that were tried, so the folders are no classes"
            is_sure = labels.isdisjoint(one.casefold() for one in classes)
            decision = Interpretation("labels", name, why, is_sure, (LABELS_FROM_FOLDERS, NONE_VALUE))
            return FoundLabelFiles(file, *of_file, [f"Labels are read from {name}."], (), [decision])
    if tables or (unread := _ask_about_unread_files(_FolderEntries(folder), used)):
        names = _relative_names([file for file, _ in tables], folder) or list(unread[0].others)
        why = f"folders are classes ({', '.join(classes[:5])}), but {', '.join(names[:5])} may hold labels too"
        return replace(
            chosen, interpretations=[Interpretation("labels", LABELS_FROM_FOLDERS, why, False, [*names, NONE_VALUE])]
        )
    if why := _explain_doubtful_folders(folder, classes):
        return replace(
            chosen, interpretations=[Interpretation("labels", LABELS_FROM_FOLDERS, why, False, (NONE_VALUE,))]
        )
    return chosen


def _explain_doubtful_folders(folder: Path, classes: Sequence[str]) -> str:
    """Return why the names of folders may not be classes, or ""."""
    if inner := _find_repeated_subfolders(folder, classes):
        return (
            f"folders are classes ({', '.join(classes[:3])}), or those in them ({', '.join(inner[:3])}), which repeat"
        )
    if joined := _find_joined_names(classes):
        return f"folders are classes, but {', '.join(map(repr, joined[:5]))} may be a combination of other classes"
    if strange := [name for name in classes if not _is_class_like(name)]:
        listed = ", ".join(map(repr, strange[:5]))
        return f"folders are classes, but {listed} may be a date, a place, a split, or say that there is no label"
    return ""


def _is_class_like(name: str) -> bool:
    word = name.strip()
    is_known_otherwise = word.lower() in _PLACE_NAMES or not SPLIT_FOLDER_NAMES.isdisjoint(
        _WORD_PATTERN.findall(word.lower())
    )
    is_nothing = normalize_word(word) in EMPTY_WORDS | _ANSWER_NAMES or bool(describe_odd_name(word))
    return bool(_CLASS_LIKE_NAME.fullmatch(word)) and not is_known_otherwise and not is_nothing


def _find_joined_names(classes: Sequence[str]) -> list[str]:
    """Return the names of folders that join several names, of which another folder has one."""
    known = {name.casefold().strip() for name in classes}
    joined = []
    for name in classes:
        parts = [part.strip() for part in _JOINING_SIGNS.split(name.casefold()) if part.strip()]
        if len(parts) > 1 and not known.isdisjoint(parts):
            joined.append(name)
    return joined


def _explain_plain_folders(entries: "_FolderEntries") -> list[Interpretation]:
    folder = entries.folder
    tops = {image.relative_to(folder).parts[0] for image in entries.images}
    names = sorted(name for name in tops if (folder / name).is_dir() and any(map(str.isalpha, name)))
    names = [name for name in names if name.lower() not in _PLACE_NAMES]
    assert IMAGEFOLDER.recognize
    inner = next((folder / name for name in sorted(tops) if IMAGEFOLDER.recognize(folder / name)), None)
    if inner and all((folder / name).is_dir() for name in tops):
        why = (
            f"the folders in {inner.name} may be classes ({', '.join(_list_class_folders(inner)[:3])}): to read them, "
            f"import {inner}. Here, only the images are imported"
        )
        return [Interpretation("labels", NONE_VALUE, why, False)]
    why = f"folders such as {', '.join(names[:3])} say where images lie, and are no classes"
    return [Interpretation("labels", NONE_VALUE, why, True, (LABELS_FROM_FOLDERS,))] if names else []


def _find_repeated_subfolders(folder: Path, classes: Sequence[str]) -> list[str]:
    """Return names of subfolders in several class folders, which may be the real classes."""
    counts: Counter[str] = Counter()
    for name in classes:
        place = folder / name
        if place.is_dir():
            counts.update(
                {one.name for one in islice(place.iterdir(), MAX_FOLDER_ENTRIES) if one.is_dir() and one.name[0] != "."}
            )
    return sorted(name for name, count in counts.items() if count > 1)


def _list_class_folders(folder: Path) -> list[str]:
    tops = sorted(one for one in _list_subfolders(folder) if not one.name.startswith("."))
    if tops and all(one.name.lower() in SPLIT_FOLDER_NAMES for one in tops):
        return sorted({one.name for top in tops for one in _list_subfolders(top)})
    return [one.name for one in tops]


def _list_subfolders(folder: Path) -> Iterator[Path]:
    return (one for one in folder.iterdir() if one.is_dir() and not is_leftover_folder(one.name))


def _measure_image_overlap(file: Path, format_: Format, folder: Path) -> tuple[float, set[str]]:
    try:
        items = list(islice(read_label_file(format_, file, Problems(), ReadingOptions()).items, MAX_IMAGES_TRIED))
    except AnnotatorError:
        return 0.0, set()
    known = {path.stem.casefold() for path in _iter_entries(folder) if looks_like_image(path.name)}
    stems = [Path(item.image.replace("\\", "/")).stem.casefold() for item in items]
    labels = {given.class_name.casefold() for item in items for given in item.labels}
    return (sum(stem in known for stem in stems) / len(stems) if stems else 0.0), labels


def _ask_about_unread_files(entries: "_FolderEntries", used: set[Path]) -> list[Interpretation]:
    names, listed = _find_unused_files(entries, used)
    if not listed:
        return []
    why = (
        f"{', '.join(listed)} may hold labels, and nothing here reads them: only the images are imported. To import "
        "the labels, convert them to a CSV with the columns image and labels, or to a format of docs/formats.md"
    )
    return [Interpretation("labels", NONE_VALUE, why, False, names)]


def _mention_unread_files(entries: "_FolderEntries", used: set[Path], files: Sequence[Path]) -> list[Interpretation]:
    _, listed = _find_unused_files(entries, used)
    value = ",".join(_relative_names(files, entries.folder))
    return [Interpretation("labels", value, f"not read: {', '.join(listed)}")] if listed else []


class _FolderEntries:
    """The entries below a folder, walked once, and the files among them that no format here reads, opened once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.paths = list(_iter_entries(folder))
        self.images = [path for path in self.paths if looks_like_image(path.name)]
        self._image_stems = {path.stem for path in self.images}

    @cached_property
    def unread(self) -> list[Path]:
        """The files that may hold labels in a form that no format here reads."""
        likely = (path for path in self.paths if path.suffix.lower() in _UNREAD_SUFFIXES)
        # Files of one image are counted by their endings.
        likely = (path for path in likely if not self.is_named_as_image(path))
        return list(islice((path for path in likely if path.is_file() and _may_hold_labels(path)), MAX_LABEL_FILES))

    @cached_property
    def others(self) -> list[Path]:
        """The archives, and the text files of other kinds that name an image among their first letters."""
        known = _UNREAD_SUFFIXES | frozenset((*PER_IMAGE_SUFFIXES, ".xmp"))  # keywords have a report of their own
        near = set(_list_label_files(self.folder))
        likely = (path for path in self.paths if path.suffix.lower() not in known and not looks_like_image(path.name))
        likely = (path for path in likely if path.stem.lower() not in _DOCUMENT_NAMES and path not in near)
        return [
            path for path in islice(likely, MAX_LABEL_FILES) if path.is_file() and _may_be_packed_or_name_images(path)
        ]

    def describe_others(self) -> list[str]:
        names = _relative_names(self.others, self.folder)
        return [f"Archives and files that name images, and are not read: {', '.join(names[:10])}."] if names else []

    def is_named_as_image(self, path: Path) -> bool:
        return path.stem in self._image_stems


def _find_unused_files(entries: _FolderEntries, used: set[Path]) -> tuple[list[str], list[str]]:
    """Return the names of single files that may hold labels, and phrases for these and for the kinds of all others."""
    folder = entries.folder
    cards = {card for path in (folder, *used) if (card := find_card(path))}
    kinds = Counter(
        path.suffix.lower()
        for path in entries.paths
        if path.suffix.lower() in _PER_IMAGE_LABEL_SUFFIXES and entries.is_named_as_image(path) and path not in used
    )
    deep = Counter(path.suffix.lower() for path in entries.paths if _is_deep_label_file(path, entries, used))
    left = [
        file
        for file in _list_label_files(folder)
        if file not in used
        and file not in cards
        and file.name.lower() not in _FOREIGN_FILES
        and not entries.is_named_as_image(file)
    ]
    left += [file for file in entries.unread if file not in used and file not in left]
    names = _relative_names(left, folder)
    named_as_images = (f"{format_count(count, f'{kind} file')} named as images are" for kind, count in kinds.items())
    in_deep_folders = (f"{format_count(count, f'{kind} file')} in deeper folders" for kind, count in deep.items())
    return names, [*names[:10], *named_as_images, *in_deep_folders]


def _is_deep_label_file(path: Path, entries: _FolderEntries, used: set[Path]) -> bool:
    """Return whether a file has the ending of labels, below the levels where labels are looked for."""
    is_deep = len(path.relative_to(entries.folder).parts) > LABEL_FILE_LEVELS
    is_label = path.suffix.lower() in LABEL_FILE_SUFFIXES and path not in used
    return is_deep and is_label and not entries.is_named_as_image(path) and path.is_file()


def _may_hold_labels(file: Path) -> bool:
    """Return whether a file with one of _UNREAD_SUFFIXES may hold labels."""
    return file.suffix.lower() in _BINARY_LABEL_SUFFIXES or _names_image(file)


def _may_be_packed_or_name_images(file: Path) -> bool:
    return file.suffix.lower() in _ARCHIVE_SUFFIXES or bool(_SHARD_PATTERN.search(file.name)) or _names_image(file)


def _names_image(file: Path) -> bool:
    start = read_start(file, _TEXT_START_BYTES)
    if b"\0" in start:
        return False
    words = re.split(r"[\s,;\"'#()<>=]+", start.decode("utf-8", "replace"))
    return any(looks_like_image(word.replace("\\", "/")) for word in words)


def _relative_names(files: Sequence[Path], folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in files]


def read_label_file(format_: Format, path: Path, problems: Problems, reading: ReadingOptions) -> Contents:
    """Return the contents of a label file."""
    assert format_.read is not None  # checked by choose_format
    return format_.read(path, problems, reading)


def find_predictor(path: Path, name: str | None) -> str:
    """Return what kind of model made the scores of a file without answers, such as "a detector", or "".

    `name` is the format name, None to recognize it.
    """
    if name is not None:
        return all_formats()[name].predicted_by if name in all_formats() else ""
    return _find_predictor(match_formats(path)) if path.is_file() else ""


def choose_format(path: Path, name: str | None) -> tuple[Format, str]:
    """Return the format and why it fits. Raises AnnotatorError unless exactly one does."""
    if name is not None:
        return find_format(name, "read"), "as you say"
    found = match_formats(path)
    ending = path.suffix.lower()
    if not found and ending in (".csv", ".tsv", ".parquet"):  # its reader's error names the columns it needs
        return find_format(ending[1:], "read"), "by its name"
    if not found:
        if ending == ".json" and path.is_file():
            check_json(path)  # if the JSON is broken, this raises an error with the line
        raise describe_unknown_source(path)
    return _require_one_format(path, found)


def _require_one_format(path: Path, found: list[tuple[Format, str]]) -> tuple[Format, str]:
    if len(found) > 1:
        fits = [f"{format_.name}: {why}" for format_, why in found]
        raise combine_problems(f"{path} fits several formats. Say which it is (--format):", fits)
    return found[0]


def _list_label_files(folder: Path) -> list[Path]:
    return sorted(islice(_iter_likely_files(folder), MAX_LABEL_FILES))


def _iter_likely_files(folder: Path) -> Iterator[Path]:
    opened = 0
    for level in ("*/" * depth + "*" for depth in range(LABEL_FILE_LEVELS)):
        for file in folder.glob(level):
            if is_croissant_name(file.name):  # describes the label files of the folder, and is read if named
                continue
            if file.name.startswith(".") or find_leftover_part(file.relative_to(folder).as_posix()):
                continue
            if file.suffix.lower() in LABEL_FILE_SUFFIXES and file.is_file():
                yield file
            elif not file.suffix and opened < MAX_LABEL_FILES and file.is_file():
                opened += 1
                if read_start(file, 4).startswith((b"{", b"[", b"<", b"PAR1")):
                    yield file


def _iter_entries(folder: Path) -> Iterator[Path]:
    found = islice(folder.rglob("*"), MAX_FOLDER_ENTRIES)
    return (path for path in found if not find_leftover_part(path.relative_to(folder).as_posix()))


def contains_images(folder: Path) -> bool:
    """Return whether there is an image among the first entries below a folder."""
    return any(looks_like_image(file.name) for file in _iter_entries(folder))
