"""YOLO: folders of classification, and detection folders with one text file of boxes an image.

Formats: Ultralytics YOLO, "Image Classification Datasets" and "Object Detection Datasets",
https://docs.ultralytics.com/datasets/classify/ and https://docs.ultralytics.com/datasets/detect/.

Detection (read): images/.../a.jpg has its boxes in labels/.../a.txt or beside it in a.txt, each line a number of a
class and coordinates (yolo_labels.py); the names of the classes are in a YAML file (`names`), in classes.txt, or where
Darknet's obj.data says (yolo_names.py). A box makes its class present; one with a confidence, the sixth number of a
line, is a model's and is a score. All other cells are unknown, unless the person who imports says that every object has
a box. Detection is not written: a YOLO box has no room for "somewhere in the image", and a box over the whole image
would be learned as a real one.

Classification (written, read as imagefolder): <split>/<class>/<image>. YOLO knows one class an image, so an image with
several lies in the folder of each; images without a present class are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.lines import lines
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.files.text_cells import Rows
from annotator.exchange.formats import imagefolder
from annotator.exchange.formats.contents import Contents, Given, Item
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.shared.beside import first_files
from annotator.exchange.formats.shared.split_names import SPLITS
from annotator.exchange.formats.view import Output, View
from annotator.exchange.formats.yolo_labels import IMAGES, LABELS, LabelFiles, has_boxes, image_beside
from annotator.exchange.formats.yolo_names import (
    NAMES,
    YAMLS,
    Names,
    darknet_file,
    darknet_names,
    described_by,
    has_names,
    is_file,
    listed_names,
    names_file,
    names_near,
    normal,
    read_darknet,
    read_description,
    stem_of_path,
    tails,
)
from annotator.exchange.reading.reading import NONE, Reading
from annotator.records import PRESENT
from annotator.store.pictures.files import list_files

PARTS = ("train", "val", "valid", "validation", "test")


def recognise(path: Path) -> str | None:
    """Return why a path is YOLO, or None.

    It is a YAML file with `names`; or a folder with such a file, with Darknet's description (obj.data), or with text
    files of boxes and either names of classes or images beside them.
    """
    if path.suffix.lower() in (".yaml", ".yml") and path.is_file():
        return "a YOLO data set: the YAML file has names" if has_names(path) else None
    if not path.is_dir():
        return None
    if any(has_names(path / name) for name in YAMLS):
        return "a YOLO data set: its YAML file has names"
    listed = names_file(path) or names_file(path / LABELS)
    if (path / IMAGES).is_dir() and (path / LABELS).is_dir() and listed:
        return "a YOLO data set: it has images, labels and names of classes"
    if data := darknet_file(path):
        return f"a YOLO data set of Darknet: {data.name} says where its names of classes are"
    for file in first_files(path, (".txt",), most=200):
        if has_boxes(file) and (listed or names_near(file, path) or described_by(path) or image_beside(file)):
            return f"a YOLO data set: {file.relative_to(path)} holds boxes"
    return None


def read(path: Path, problems: Problems) -> Contents:
    """Return the images of a detection data set; `path` is its folder or its YAML file.

    Raises:
        AnnotatorError: The names of the classes cannot be read.
    """
    return read_as(path, problems, Reading())


def read_as(path: Path, problems: Problems, reading: Reading) -> Contents:
    """Return the images as `read` does. With the score_column NONE, boxes with a confidence are answers too."""
    root = path if path.is_dir() else path.parent
    yaml = path if path.is_file() else _usual(root) or described_by(root)
    described = read_description(yaml) if yaml else {}
    root = _root(root, described)
    data = None if yaml else darknet_file(root)
    described = described or (read_darknet(data) if data else {})
    listing = list_files(root, leave_out=root)
    fixed = listed_names(yaml, described) if yaml else darknet_names(root, data, described) if data else None
    names = Names(root, fixed)
    listed = names.all_of(listing.paths)
    if not listed:
        raise AnnotatorError(
            f"{root} has label files with numbers of classes, but neither {', '.join(YAMLS[:2])} nor {NAMES[0]} with "
            f"their names. Write {root / NAMES[0]} with one class a line, in the order of the numbers; or say --format "
            "images to import the images only."
        )
    for place, twice in names.repeated_names():
        problems.add(f"names{place}: {', '.join(twice)} {'is' if len(twice) == 1 else 'are'} there twice")
    said = [
        "A box makes its class present; boxes are not kept.",
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
    ]
    images = listing.images()
    has_both = (root / IMAGES).is_dir() and (root / LABELS).is_dir()
    labels = LabelFiles(root, names, problems, are_answers=reading.score_column == NONE)
    items = _items(root, images, described, labels, is_whole=bool(yaml) or has_both, said=said)
    if not images:
        items = _without_images(listing.paths, described, labels, said, root)
    return Contents([(name, "") for name in listed], items, folder=root if images else None, place="file", said=said)


def _usual(folder: Path) -> Path | None:
    return next((folder / name for name in YAMLS if (folder / name).is_file()), None)


def _root(folder: Path, described: Mapping[str, Any]) -> Path:
    """Return the folder that paths are relative to: `path` of the YAML file if it lies in `folder`, else `folder`."""
    inner = described.get("path")
    if isinstance(inner, str) and "\0" not in inner:
        place = (folder / inner).resolve()
        if place.is_dir() and place.is_relative_to(folder.resolve()):
            return place
    return folder


def _items(
    root: Path,
    images: Sequence[str],
    described: Mapping[str, Any],
    labels: LabelFiles,
    is_whole: bool,
    said: list[str],
) -> Iterator[Item]:
    """Yield the images. is_whole: an image without a label file was looked at, and has no object (Ultralytics)."""
    splits = _Splits(root, described, images)
    for path in images:
        split = splits.of(path)
        found = labels.of(path)
        yield Item(
            path,
            path,
            [Given(name, PRESENT) for name in found.present],
            scores=found.scores,
            file=path,
            attributes={"split": split} if split else {},
            answered=is_whole if found.is_missing else not found.scores or bool(found.present),
        )
    said += labels.said()


def _without_images(
    paths: Sequence[str], described: Mapping[str, Any], labels: LabelFiles, said: list[str], root: Path
) -> Iterator[Item]:
    """Yield an item for each label file of a data set without images, named like it."""
    files = [path for path in paths if path.lower().endswith(".txt") and path.rpartition("/")[2] not in NAMES]
    splits = _Splits(root, described, files)
    for path in files:
        if not has_boxes(root / path):
            continue
        found = labels.of_file(path)
        split = splits.of(path)
        image = splits.named(path) or f"{path[: -len('.txt')]}"
        yield Item(
            image.removeprefix(f"{LABELS}/"),
            path,
            [Given(name, PRESENT) for name in found.present],
            scores=found.scores,
            attributes={"split": split} if split else {},
            answered=not found.scores or bool(found.present),
        )
    said += labels.said()


class _Splits:
    """The split of each image: by folders and lists that are named, else by a folder named like a split.

    Args:
        described: Of the YAML file, or of Darknet's obj.data.
        files: The images; or, of a data set without images, the label files.
    """

    def __init__(self, root: Path, described: Mapping[str, Any], files: Sequence[str]):
        self._folders: list[tuple[str, str]] = []
        self._files: dict[str, str] = {}
        self._named: dict[str, str] = {}
        stems = {stem_of_path(path): path for path in files}
        for part in PARTS:
            named = described.get(part)
            for place in named if isinstance(named, list) else [named]:
                if not isinstance(place, str) or "\0" in place:
                    continue
                # Roboflow writes ../train/images beside the folder train.
                relative = normal(place)
                listed = next((root / name for name in tails(relative) if is_file(root / name)), None)
                if place.endswith(".txt") and listed:
                    for name in map(str.strip, lines(listed)):
                        # Darknet's lists begin with the folder of the data set, wherever that was.
                        path = next((stems[stem] for stem in tails(stem_of_path(normal(name))) if stem in stems), "")
                        self._files[path], self._named[path] = part, name
                else:
                    self._folders.append((f"{relative}/", part))

    def of(self, path: str) -> str:
        if split := self._files.get(path):
            return split
        for folder, split in self._folders:
            if path.startswith(folder):
                return split
        return next((part for part in path.split("/")[:-1] if part in SPLITS), "")

    def named(self, path: str) -> str:
        """Return the name of the image in the list that names it, "" without one."""
        return self._named.get(path, "")


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
    read_as=read_as,
)
YOLO_CLS = Format(
    name="yolo-cls",
    about="One folder a class in each split. Read by Ultralytics YOLO, torchvision's ImageFolder and timm",
    read=imagefolder.read,
    write=write_classification,
    lost=Lost(unknown=True, unsure=True, absent=True, provenance=True),
    images="link",
)
