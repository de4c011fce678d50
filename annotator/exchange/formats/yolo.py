"""YOLO: folders of classification, and detection folders with one text file of boxes an image.

Formats: Ultralytics YOLO, "Image Classification Datasets" and "Object Detection Datasets",
https://docs.ultralytics.com/datasets/classify/ and https://docs.ultralytics.com/datasets/detect/.

Detection (read): images/.../a.jpg has its boxes in labels/.../a.txt, each line a number of a class and coordinates; the
names of the classes are in a YAML file (`names`) or in classes.txt. A box makes its class present; all other cells are
unknown, unless the person who imports says that every object has a box. Detection is not written: a YOLO box has no
room for "somewhere in the image", and a box over the whole image would be learned as a real one.

Classification (written, read as imagefolder): <split>/<class>/<image>. YOLO knows one class an image, so an image with
several lies in the folder of each; images without a present class are left out.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.lines import lines
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.files.text_cells import Rows
from annotator.exchange.files.yaml_text import read_yaml
from annotator.exchange.formats import imagefolder
from annotator.exchange.formats.contents import Contents, Given, Item
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.shared.split_names import SPLITS
from annotator.exchange.formats.view import Output, View
from annotator.records import PRESENT
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files, unescaped

LARGEST = 1 << 20  # bytes of a YAML or label file
COORDINATES = 4  # of a box; polygons have more
YAMLS = ("data.yaml", "dataset.yaml", "data.yml", "dataset.yml")
NAMES = ("classes.txt", "obj.names")
PARTS = ("train", "val", "validation", "test")
IMAGES, LABELS = "images", "labels"


def recognise(path: Path) -> str | None:
    """Return why a path is YOLO, or None.

    It is a YAML file with `names`, a folder with such a file, or a folder with images, labels and a list of names of
    classes.
    """
    if path.suffix.lower() in (".yaml", ".yml") and path.is_file():
        try:
            return (
                "a YOLO data set: the YAML file has names"
                if b"\nnames:" in b"\n" + path.read_bytes()[:LARGEST]
                else None
            )
        except OSError:
            return None
    if not path.is_dir():
        return None
    if any(recognise(path / name) for name in YAMLS if (path / name).is_file()):
        return "a YOLO data set: its YAML file has names"
    if (path / IMAGES).is_dir() and (path / LABELS).is_dir() and any((path / name).is_file() for name in NAMES):
        return "a YOLO data set: it has images, labels and names of classes"
    return None


def read(path: Path, problems: Problems) -> Contents:
    """Return the images of a detection data set; `path` is its folder or its YAML file.

    Raises:
        AnnotatorError: The names of the classes cannot be read.
    """
    root = path if path.is_dir() else path.parent
    yaml = path if path.is_file() else next((root / name for name in YAMLS if (root / name).is_file()), None)
    described = _yaml(yaml) if yaml else {}
    root = _root(root, described)
    names = _names(root, yaml, described)
    if len(set(names.values())) < len(names):
        twice = sorted(name for name, count in Counter(names.values()).items() if count > 1)
        problems.add(f"names: {', '.join(twice)} {'is' if len(twice) == 1 else 'are'} there twice")
    said = [
        "A box makes its class present; boxes are not kept.",
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
    ]
    listed = [(name, "") for name in dict.fromkeys(names[number] for number in sorted(names))]
    return Contents(listed, _items(root, described, names, problems), folder=root, place="file", said=said)


def _yaml(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise AnnotatorError(f"{path} has more than {LARGEST:,} bytes: it is no description of a data set.")
        # Texts, lists and mappings only: a class called "no" is not False, and no tag makes an object.
        described = read_yaml(path.read_text(encoding="utf-8-sig"), only_texts=True)
    except (OSError, ValueError) as error:
        raise AnnotatorError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(described, dict):
        raise AnnotatorError(f"{path} has no names: it is no description of a YOLO data set.")
    return described


def _root(folder: Path, described: Mapping[str, Any]) -> Path:
    """Return the folder that paths are relative to: `path` of the YAML file if it lies in `folder`, else `folder`."""
    inner = described.get("path")
    if isinstance(inner, str) and "\0" not in inner:
        place = (folder / inner).resolve()
        if place.is_dir() and place.is_relative_to(folder.resolve()):
            return place
    return folder


def _names(root: Path, yaml: Path | None, described: Mapping[str, Any]) -> dict[int, str]:
    """Return number -> name of each class."""
    names = described.get("names")
    if isinstance(names, list):
        names = {str(number): name for number, name in enumerate(names)}
    if isinstance(names, dict) and all(
        number.isdigit() and number.isascii() and isinstance(name, str) for number, name in names.items()
    ):
        return {int(number): name.strip() for number, name in names.items()}
    if yaml:
        raise AnnotatorError(f"{yaml}: names must be a list of classes, or number: name pairs; it is {names!r:.100}.")
    file = next((root / name for name in NAMES if (root / name).is_file()), None)
    if file is None:
        raise AnnotatorError(f"{root} has neither {', '.join(YAMLS[:2])} nor {NAMES[0]}: the classes have no names.")
    listed = [line.strip() for line in lines(file)]
    return {number: name for number, name in enumerate(listed) if name}


def _items(root: Path, described: Mapping[str, Any], names: dict[int, str], problems: Problems) -> Iterator[Item]:
    splits = _Splits(root, described)
    labels = _LabelFiles(root, names, problems)
    given = {number: Given(name, PRESENT) for number, name in names.items()}
    for path in list_files(root, leave_out=root).images():
        split = splits.of(path)
        numbers = labels.numbers(path)
        yield Item(
            path, path, [given[number] for number in numbers], file=path, attributes={"split": split} if split else {}
        )


class _Splits:
    """The split of each image: by folders and lists that the YAML file names, else by a folder named like a split."""

    def __init__(self, root: Path, described: Mapping[str, Any]):
        self._folders: list[tuple[str, str]] = []
        self._files: dict[str, str] = {}
        for part in PARTS:
            named = described.get(part)
            for place in named if isinstance(named, list) else [named]:
                if not isinstance(place, str) or "\0" in place:
                    continue
                # Roboflow writes ../train/images beside the folder train.
                relative = _normal(place)
                if place.endswith(".txt") and (root / relative).is_file() and not (root / relative).is_symlink():
                    self._files |= {_normal(line.strip()): part for line in lines(root / relative)}
                else:
                    self._folders.append((f"{relative}/", part))

    def of(self, path: str) -> str:
        if split := self._files.get(path):
            return split
        for folder, split in self._folders:
            if path.startswith(folder):
                return split
        return next((part for part in path.split("/")[:-1] if part in SPLITS), "")


def _normal(path: str) -> str:
    return "/".join(part for part in PurePosixPath(path.replace("\\", "/")).parts if part not in ("..", ".", "/"))


class _LabelFiles:
    """A reader of the label file of an image: labels/a.txt for images/a.jpg, else a.txt beside the image."""

    def __init__(self, root: Path, names: Mapping[int, str], problems: Problems):
        self._root, self._names, self._problems = root, names, problems
        self._inside = os.path.realpath(root)
        self._folders: dict[str, str] = {}

    def numbers(self, path: str) -> list[int]:
        """Return the numbers of the classes that have a box, each once; [] without a file."""
        folder, _, name = path.rpartition("/")
        place = f"{self._folder(folder)}/{name.rpartition('.')[0]}.txt"
        file = Path(f"{self._inside}/{unescaped(place)}")
        try:
            if file.is_symlink():  # a problem quotes a word of the file, so a link could disclose any file
                self._problems.add(f"{place} is a link, which is not followed")
                return []
            with open_file(file) as opened:
                text = opened.read(LARGEST + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._problems.add(f"{place} cannot be read: {error.strerror or error}")
            return []
        if len(text) > LARGEST:
            self._problems.add(f"{place} has more than {LARGEST:,} bytes")
            return []
        return self._parsed(place, text)

    def _folder(self, folder: str) -> str:
        """Return the folder of the label files for a folder of images, relative to the root."""
        if folder not in self._folders:
            parts = folder.split("/") if folder else []
            if IMAGES in parts:
                parts[len(parts) - 1 - parts[::-1].index(IMAGES)] = LABELS
            place = "/".join(parts) or "."
            real = os.path.realpath(f"{self._inside}/{unescaped(place)}")
            if real != self._inside and not real.startswith(f"{self._inside}/"):
                self._problems.add(f"{place} is a link that leads out of {self._root}: it is not read")
                place = "."
            self._folders[folder] = place
        return self._folders[folder]

    def _parsed(self, place: str, text: bytes) -> list[int]:
        numbers: dict[int, None] = {}
        for line, row in enumerate(text.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
            words = row.split()
            if not words:
                continue
            word = words[0]
            if len(words) < COORDINATES + 1:
                self._problems.add(f"{place}, line {line}: {len(words)} words; a box has a class and 4 numbers")
                continue
            try:
                number = int(word) if word.isdigit() else int(float(word))
            except (ValueError, OverflowError):
                self._problems.add(
                    f"{place}, line {line}: {word[:20].decode(errors='replace')!r} is no number of a class"
                )
                continue
            if number in self._names:
                numbers[number] = None
            else:
                last = max(self._names, default=-1)
                self._problems.add(f"{place}, line {line}: there is no class {number}; the last one is {last}")
        return list(numbers)


def write_classification(view: View, output: Output) -> None:
    """Write each image to the folders of its present classes. Raises AnnotatorError if images are not written."""
    if view.written == "none":
        raise AnnotatorError(
            "yolo-cls is nothing but folders of images: leave out --images none, or choose link or copy."
        )
    names = [class_.name for class_ in view.classes]
    folders = safe_names(names)
    rest = "no split" if view.splits else "train"
    for block in view.blocks():
        for row, image in enumerate(block.images):
            for column in (block.values[row] == 1).nonzero()[0].tolist():
                output.image(image, f"{block.splits[row] or rest}/{folders[column]}/{block.files[row]}")
    with output.text(imagefolder.CLASSES) as file:
        rows = Rows(file, view.raw)
        rows.row(("folder", "class"))
        for folder, name in zip(folders, names, strict=True):
            rows.row((folder, name))


YOLO = Format(
    name="yolo",
    about="A YOLO detection data set: images, labels and a YAML file with the names of classes",
    recognise=recognise,
    read=read,
)
YOLO_CLS = Format(
    name="yolo-cls",
    about="One folder a class in each split. Read by Ultralytics YOLO, torchvision's ImageFolder and timm",
    read=imagefolder.read,
    write=write_classification,
    lost=Lost(unknown=True, unsure=True, absent=True, provenance=True),
    images="link",
)
