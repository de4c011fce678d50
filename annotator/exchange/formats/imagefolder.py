"""One folder per class, as in torchvision's ImageFolder, or per split and class.

See https://pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html. The folder's class is present,
all others unanswered, because sorting allows one folder per image. Equal files in two folders get both classes.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.csv_cells import unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.split_names import SPLIT_FOLDER_NAMES
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT
from annotator.store.pictures.files import list_files
from annotator.store.pictures.leftovers import is_leftover_folder
from annotator.store.pictures.picture_kinds import looks_like_image

CLASSES_FILE = "classes.csv"
"""Folder and class, for classes whose name cannot be that of a folder."""
_FOREIGN_FOLDERS = frozenset({"images", "labels", "annotations", "jpegimages", "imagesets"})
_MAX_ENTRIES_SEEN = 200


def recognize(path: Path) -> str | None:
    """Return why a folder has this format: two class folders, an image in one of the first 20, none next to them."""
    folders, images = _sample_folder(path)
    if (path / "project.db").exists():  # a project is not a data set, but its thumbnails are in folders too
        return None
    # The folders of a camera trap package are stations; what is on the images stands in these files.
    if (path / "datapackage.json").exists() or any(path.glob("*.ddb")):
        return None
    if images or not folders or (_has_foreign_folder(folders) and not _read_folder_classes(path, Problems())):
        return None
    if _are_splits(folders):
        inner = [_sample_folder(path / name) for name in folders]
        folders = sorted({name for names, _ in inner for name in names})
        # A split of images alone, such as a test set, has no labels. One with images beside class folders is unclear.
        if any(images and names for names, images in inner) or (
            _has_foreign_folder(folders) and not _read_folder_classes(path, Problems())
        ):
            return None
        places = [
            path / name / class_
            for name, (names, _) in zip(_sample_folder(path)[0], inner, strict=True)
            for class_ in names
        ]
    else:
        places = [path / name for name in folders]
    if len(folders) < 2 or not any(_sample_folder(place)[1] for place in places[:20]):
        return None
    shown = ", ".join(folders[:3]) + (", ..." if len(folders) > 3 else "")
    return f"one folder a class: {shown}"


def _sample_folder(folder: Path) -> tuple[list[str], bool]:
    names, images = [], False
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MAX_ENTRIES_SEEN), entries, strict=False):
                if not entry.name.startswith(".") and not is_leftover_folder(entry.name):
                    if entry.is_dir():
                        names.append(entry.name)
                    else:
                        images |= looks_like_image(entry.name)
    except OSError:
        pass
    return sorted(names), images


def _has_foreign_folder(names: list[str]) -> bool:
    lower = [name.lower() for name in names]
    return not _FOREIGN_FOLDERS.isdisjoint(lower) or any(
        name.startswith("obj_") and name.endswith("_data") for name in lower
    )


def _are_splits(names: list[str]) -> bool:
    return bool(names) and all(name.lower() in SPLIT_FOLDER_NAMES for name in names)


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images of all class folders, named by relative path. Raises AnnotatorError without class folders."""
    paths = list_files(path, leave_out=path).list_images()
    tops = sorted({name.split("/", 1)[0] for name in paths if "/" in name})
    depth = 1 if _are_splits(tops) and any(name.count("/") > 1 for name in paths) else 0
    named = _read_folder_classes(path, problems)
    folders = dict.fromkeys(name.split("/")[depth] for name in paths if name.count("/") > depth)
    classes = {folder: named.get(folder, folder) for folder in sorted(folders)}
    if not classes:
        raise AnnotatorError(
            f"{path} has no class folders: an image of the class cat lies at {path / 'cat' / 'picture.jpg'}, with "
            f"splits at {path / 'train' / 'cat' / 'picture.jpg'}."
        )
    outside = sum(name.count("/") <= depth for name in paths)
    said = ["The class of an image's folder is present, every other class is unknown."]
    if depth:
        said.append(f"The folders {', '.join(tops)} are splits.")
    if outside:
        said.append(f"{outside:,} images lie in no class folder and have no label.")
    listed = [(name, "") for name in dict.fromkeys([*named.values(), *classes.values()])]
    return Contents(listed, _build_items(paths, depth, classes), folder=path, place="file", sentences=said)


def _build_items(paths: list[str], depth: int, classes: dict[str, str]) -> Iterator[Item]:
    labels = {folder: (ImportedLabel(name, PRESENT),) for folder, name in classes.items()}
    for name in paths:
        parts = name.split("/")
        given = labels[parts[depth]] if len(parts) > depth + 1 else ()
        split = {"split": parts[0]} if depth and len(parts) > 1 else {}
        yield Item(name, name, given, file=name, attributes=split)


def _read_folder_classes(path: Path, problems: Problems) -> dict[str, str]:
    file = path / CLASSES_FILE
    if not file.is_file() or file.is_symlink():
        return {}
    rows = {
        unescape_formula(folder): unescape_formula(name)
        for _, (folder, name) in read_csv_rows(file, problems, columns=2)
    }
    return rows if rows.pop("folder", None) == "class" else {}


IMAGEFOLDER = Format(
    name="imagefolder",
    about="One folder a class: a single-label data set whose missing labels are to be found",
    recognize=recognize,
    read=read,
)
