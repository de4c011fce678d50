"""YOLO classification folders, and detection folders with one text file of boxes per image.

Formats: https://docs.ultralytics.com/datasets/classify/ and https://docs.ultralytics.com/datasets/detect/.

Detection (read only): a box makes its class present, or scores it with its confidence. Not written, because a
whole-image box would be learned as real.

Classification: <split>/<class>/<image>, once per present class. Read by imagefolder.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.csv_cells import CsvWriter
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.formats import imagefolder
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.label_file_pairs import find_first_files
from annotator.exchange.formats.shared.split_names import SPLIT_FOLDER_NAMES
from annotator.exchange.formats.yolo_labels import (
    IMAGES_FOLDER,
    LABELS_FOLDER,
    LabelFileReader,
    has_boxes,
    has_image_beside,
)
from annotator.exchange.formats.yolo_names import (
    LIST_NAMES,
    YAML_NAMES,
    ClassNames,
    find_darknet_file,
    find_described_yaml,
    find_names_file,
    find_nearest_names_file,
    has_names,
    is_regular_file,
    iter_tails,
    normalize_path,
    parse_class_names,
    read_darknet,
    read_darknet_names,
    read_description,
    strip_path_suffix,
)
from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions
from annotator.records import PRESENT
from annotator.store.pictures.files import list_files

SPLIT_KEYS = ("train", "val", "valid", "validation", "test")


def recognize(path: Path) -> str | None:
    if path.suffix.lower() in (".yaml", ".yml") and path.is_file():
        return "a YOLO data set: the YAML file has names" if has_names(path) else None
    if not path.is_dir():
        return None
    if any(has_names(path / name) for name in YAML_NAMES):
        return "a YOLO data set: its YAML file has names"
    listed = find_names_file(path) or find_names_file(path / LABELS_FOLDER)
    if (path / IMAGES_FOLDER).is_dir() and (path / LABELS_FOLDER).is_dir() and listed:
        return "a YOLO data set: it has images, labels and names of classes"
    if data := find_darknet_file(path):
        return f"a YOLO data set of Darknet: {data.name} says where its names of classes are"
    for file in find_first_files(path, (".txt",), max_files=200):
        if has_boxes(file) and (
            listed or find_nearest_names_file(file, path) or find_described_yaml(path) or has_image_beside(file)
        ):
            return f"a YOLO data set: {file.relative_to(path)} holds boxes"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images of a detection data set, by folder or YAML file.

    If `options.score_column` is NONE_VALUE, boxes with a confidence are labels instead of scores. AnnotatorError is
    raised without readable class names.
    """
    root = path if path.is_dir() else path.parent
    yaml = path if path.is_file() else _find_usual_yaml(root) or find_described_yaml(root)
    described = read_description(yaml) if yaml else {}
    root = _find_root(root, described)
    data = None if yaml else find_darknet_file(root)
    described = described or (read_darknet(data) if data else {})
    listing = list_files(root, leave_out=root)
    fixed = parse_class_names(yaml, described) if yaml else read_darknet_names(root, data, described) if data else None
    names = ClassNames(root, fixed)
    listed = names.list_all_names(listing.paths)
    if not listed:
        raise AnnotatorError(
            f"{root} has label files with numbers of classes, but neither {', '.join(YAML_NAMES[:2])} nor "
            f"{LIST_NAMES[0]} with their names. Write {root / LIST_NAMES[0]} with one class a line, in the order of "
            "the numbers; or say --format images to import the images only."
        )
    for place, twice in names.find_repeated_names():
        problems.add(f"names{place}: {', '.join(twice)} {'is' if len(twice) == 1 else 'are'} there twice")
    said = [
        "A box makes its class present; boxes are not kept.",
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
    ]
    images = listing.list_images()
    has_both = (root / IMAGES_FOLDER).is_dir() and (root / LABELS_FOLDER).is_dir()
    labels = LabelFileReader(root, names, problems, are_answers=options.score_column == NONE_VALUE)
    items = _read_items(root, images, described, labels, is_whole=bool(yaml) or has_both, said=said)
    if images and not any(map(labels.has_label_file, images)):
        problems.add(
            f"no image has a label file, such as {LABELS_FOLDER}/{Path(images[0]).stem}.txt. Were they renamed, or are "
            "they of another kind (oriented boxes in labelTxt)? --labels none imports only the images"
        )
    if not images:
        items = _read_label_files(listing.paths, described, labels, said, root)
    return Contents(
        [(name, "") for name in listed], items, folder=root if images else None, place="file", sentences=said
    )


def _find_usual_yaml(folder: Path) -> Path | None:
    return next((folder / name for name in YAML_NAMES if (folder / name).is_file()), None)


def _find_root(folder: Path, described: Mapping[str, Any]) -> Path:
    """Return the folder that paths start from: the YAML's `path` if inside `folder`, else `folder`."""
    inner = described.get("path")
    if isinstance(inner, str) and "\0" not in inner:
        place = (folder / inner).resolve()
        if place.is_dir() and place.is_relative_to(folder.resolve()):
            return place
    return folder


def _read_items(
    root: Path,
    images: Sequence[str],
    described: Mapping[str, Any],
    labels: LabelFileReader,
    is_whole: bool,
    said: list[str],
) -> Iterator[Item]:
    """Yield the images as items. With `is_whole`, images without a label file show no class, as in Ultralytics."""
    splits = _SplitFinder(root, described, images)
    for path in images:
        split = splits.find_split(path)
        found = labels.read_for_image(path)
        yield Item(
            path,
            path,
            [ImportedLabel(name, PRESENT) for name in found.present],
            scores=found.scores,
            file=path,
            attributes={"split": split} if split else {},
            answered=is_whole if found.is_missing else not found.scores or bool(found.present),
        )
    said += labels.format_sentences()


def _read_label_files(
    paths: Sequence[str], described: Mapping[str, Any], labels: LabelFileReader, said: list[str], root: Path
) -> Iterator[Item]:
    files = [path for path in paths if path.lower().endswith(".txt") and path.rpartition("/")[2] not in LIST_NAMES]
    splits = _SplitFinder(root, described, files)
    for path in files:
        if not has_boxes(root / path):
            continue
        found = labels.read_file(path)
        split = splits.find_split(path)
        image = splits.find_listed_name(path) or f"{path[: -len('.txt')]}"
        yield Item(
            image.removeprefix(f"{LABELS_FOLDER}/"),
            path,
            [ImportedLabel(name, PRESENT) for name in found.present],
            scores=found.scores,
            attributes={"split": split} if split else {},
            answered=not found.scores or bool(found.present),
        )
    said += labels.format_sentences()


class _SplitFinder:
    """A lookup of a file's split, by folders and lists in the description, else by folder name."""

    def __init__(self, root: Path, described: Mapping[str, Any], files: Sequence[str]):
        self._folders: list[tuple[str, str]] = []
        self._files: dict[str, str] = {}
        self._named: dict[str, str] = {}
        stems = {strip_path_suffix(path): path for path in files}
        for part in SPLIT_KEYS:
            named = described.get(part)
            for place in named if isinstance(named, list) else [named]:
                if not isinstance(place, str) or "\0" in place:
                    continue
                # Roboflow writes ../train/images beside the folder train.
                relative = normalize_path(place)
                listed = next((root / name for name in iter_tails(relative) if is_regular_file(root / name)), None)
                if place.endswith(".txt") and listed:
                    for name in map(str.strip, read_lines(listed)):
                        # Darknet's lists begin with the folder of the data set, wherever that was.
                        path = next(
                            (
                                stems[stem]
                                for stem in iter_tails(strip_path_suffix(normalize_path(name)))
                                if stem in stems
                            ),
                            "",
                        )
                        self._files[path], self._named[path] = part, name
                else:
                    self._folders.append((f"{relative}/", part))

    def find_split(self, path: str) -> str:
        if split := self._files.get(path):
            return split
        for folder, split in self._folders:
            if path.startswith(folder):
                return split
        return next((part for part in path.split("/")[:-1] if part in SPLIT_FOLDER_NAMES), "")

    def find_listed_name(self, path: str) -> str:
        return self._named.get(path, "")


def write_classification(view: View, output: Output) -> None:
    """Write each image into the folders of its present classes. Raises AnnotatorError if images are not exported."""
    if view.image_mode == "none":
        raise AnnotatorError(
            "yolo-cls is nothing but folders of images: leave out --images none, or choose link or copy."
        )
    names = [class_.name for class_ in view.classes]
    folders = safe_names(names)
    rest = "no split" if view.splits else "train"
    for block in view.blocks():
        for row, image in enumerate(block.images):
            for column in (block.values[row] == 1).nonzero()[0].tolist():
                output.write_image(image, f"{block.splits[row] or rest}/{folders[column]}/{block.files[row]}")
    with output.open_text(imagefolder.CLASSES_FILE) as file:
        rows = CsvWriter(file, view.raw)
        rows.write_row(("folder", "class"))
        for folder, name in zip(folders, names, strict=True):
            rows.write_row((folder, name))


YOLO = Format(
    name="yolo",
    about="A YOLO detection data set: images, labels and a YAML file with the names of classes",
    recognize=recognize,
    read=read,
)
YOLO_CLS = Format(
    name="yolo-cls",
    about="One folder a class in each split. Read by Ultralytics YOLO, torchvision's ImageFolder and timm",
    read=imagefolder.read,
    write=write_classification,
    lost=FormatLosses(unknown=True, unsure=True, absent=True, provenance=True),
    images="link",
)
