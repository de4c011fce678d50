"""Pascal VOC XML files next to images or in other folders than Annotations.

LabelImg finds images by stem, other programs by <filename>. Contradictions are reported.
"""

from collections.abc import Iterator
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.shared.label_file_pairs import ImageFiles, find_first_files, find_split, strip_suffix
from annotator.exchange.formats.voc_annotation import build_labels, is_annotation, parse_annotation
from annotator.humanize import format_count
from annotator.store.pictures.files import list_files

FILE_SUFFIX = ".xml"


def recognize(path: Path) -> str | None:
    if path.is_file():
        return "an XML file of Pascal VOC: it has an annotation of one image" if is_annotation(path) else None
    files = find_first_files(path, (FILE_SUFFIX,)) if path.is_dir() else []
    found = next((file for file in files if is_annotation(file)), None)
    return f"XML files of Pascal VOC, such as {found.relative_to(path)}" if found else None


def read(path: Path, problems: Problems) -> Contents:
    root = path if path.is_dir() else path.parent
    listing = list_files(path, leave_out=path) if path.is_dir() else None
    names = [name for name in listing.paths if name.lower().endswith(FILE_SUFFIX)] if listing else [path.name]
    images = ImageFiles(listing.list_images() if listing else ())
    others = [name for name in names if not is_annotation(root / name)]
    names = sorted(set(names) - set(others))
    said = [
        "An object makes its class present; unsure where all are difficult. Boxes are not kept.",
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
    ]
    if others:
        said.append(
            f"{format_count(len(others), 'XML file is', 'XML files are')} of another kind, and not read: {others[0]}."
        )
    return Contents(
        (),
        _read_items(root, names, images, problems),
        folder=path if images.paths else None,
        place="file",
        sentences=said,
    )


def _read_items(root: Path, names: list[str], images: ImageFiles, problems: Problems) -> Iterator[Item]:
    for name in names:
        found = parse_annotation(root / name, name, problems)
        if not found:
            continue
        try:
            file = images.find_image(name, found["filename"])
        except ValueError as error:
            problems.add(f"{name}: {error}")
            continue
        image = file or found["filename"] or strip_suffix(name)
        split = find_split(name)
        yield Item(image, name, build_labels(found), file=file, attributes={"split": split} if split else {})
