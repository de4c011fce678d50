"""Open Images V4 to V7: a CSV of image-level labels, and class names next to it.

Format: https://storage.googleapis.com/openimages/web/download_v7.html. Confidence 1 is present, 0 absent.
Machine rows and other confidences are scores. An ImageID is a .jpg name without ending.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.csv_cells import CsvWriter, unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows, read_header_line
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.sidecars import find_sidecars
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, FILL_SOURCES, PRESENT
from annotator.store.pictures.picture_kinds import looks_like_image

LABEL_COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")
DESCRIPTION_COLUMNS = ("LabelName", "DisplayName")
DESCRIPTIONS_SUFFIX = ".class-descriptions.csv"
VERIFIED_SOURCE, MACHINE_SOURCE = "verification", "machine"


def recognize(path: Path) -> str | None:
    named = set(read_header_line(path).replace('"', "").split(",")) if path.is_file() else set()
    return f"an Open Images CSV: it has {', '.join(LABEL_COLUMNS)}" if named.issuperset(LABEL_COLUMNS) else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return labels and scores, with class names from the export or *class-descriptions*.csv."""
    own = path.with_name(path.stem + DESCRIPTIONS_SUFFIX)
    files = [own] if own.exists() else sorted(path.parent.glob("*class-descriptions*.csv"))
    names = _read_class_names(files, problems)
    said = ["Confidence 1 is present, 0 absent; machine labels and other confidences are scores."]
    if not files:
        said.append("No class-descriptions.csv lies beside it: classes are called by their LabelName.")
    # Only the list of our own exports is used: the official list has 20,000 classes, most of them not in the file.
    listed = [(name, "") for name in names.values()] if own.exists() else []
    return Contents(listed, _read_items(path, names, problems), sentences=said)


def _read_class_names(files: list[Path], problems: Problems) -> dict[str, str]:
    """Return class name by LabelName, with the LabelName appended to duplicates."""
    names: dict[str, str] = {}
    used: set[str] = set()
    for file in files:
        for _, (label, name) in read_csv_rows(file, problems, columns=2):
            if (label, name) == DESCRIPTION_COLUMNS or label in names:
                continue
            name = unescape_formula(name).strip()
            names[label] = f"{name} ({label})" if name in used else name
            used.add(name)
    return names


def _read_items(path: Path, names: dict[str, str], problems: Problems) -> Iterator[Item]:
    rows = read_csv_rows(path, problems)
    _, header = next(rows, (0, []))
    if missing := [name for name in LABEL_COLUMNS if name not in header]:
        raise AnnotatorError(f"{path} has no column {', '.join(missing)}: it is no CSV of Open Images.")
    image, source, label, confidence = (header.index(name) for name in LABEL_COLUMNS)
    names = dict(names)
    item, shown = None, None
    has_provenance = any(beside.name.endswith("provenance.csv") for beside in find_sidecars(path))
    for line, row in rows:
        if item is None or row[image] != shown:
            if item is not None:
                yield item
            shown = row[image]
            item = Item(_image_name(shown), line, labels=[], scores={})
        name = names.get(row[label])
        if name is None:
            name = names[row[label]] = unescape_formula(row[label]).strip()
        problem = _add_row(item, name, row[source], row[confidence], has_provenance)
        if problem:
            problems.add(f"line {line}: {problem}")
    if item is not None:
        yield item


def _add_row(item: Item, name: str, source: str, text: str, has_provenance: bool) -> str | None:
    """Add a row to its item, or return the error. With `has_provenance`, sidecar files have its source."""
    try:
        confidence = float(text)
    except ValueError:
        return f"Confidence {text!r} is no number"
    if not 0 <= confidence <= 1:
        return f"Confidence {text!r} does not lie between 0 and 1"
    if not name or not item.image:
        return "ImageID and LabelName must not be empty"
    if source == MACHINE_SOURCE or confidence not in (0, 1):
        item.scores[name] = confidence  # type: ignore[index]    # a dict of this module
    else:
        given = ImportedLabel(name, PRESENT if confidence else ABSENT, source="" if has_provenance else source)
        item.labels.append(given)  # type: ignore[attr-defined]
    return None


def _image_name(image_id: str) -> str:
    name = unescape_formula(image_id)
    return name if not name or looks_like_image(name) else f"{name}.jpg"


def _image_id(name: str) -> str:
    stem = name.removesuffix(".jpg")
    return name if looks_like_image(stem) or _image_name(stem) != name else stem


def write(view: View, output: Output) -> None:
    """Write a row per label with a value, and class-descriptions.csv."""
    names = [class_.name for class_ in view.classes]
    is_filled = np.isin(view.sources, FILL_SOURCES)
    with output.open_text() as file:
        rows = CsvWriter(file, view.raw)
        rows.write_row(LABEL_COLUMNS)
        for block in view.blocks():
            filled = is_filled[block.sources]
            ids = [_image_id(image.name) for image in block.images]
            for row, column in np.argwhere(block.values >= 0).tolist():
                source = MACHINE_SOURCE if filled[row, column] else VERIFIED_SOURCE
                rows.write_row((ids[row], source, names[column], int(block.values[row, column])))
    with output.open_text(DESCRIPTIONS_SUFFIX) as file:
        rows = CsvWriter(file, view.raw)
        rows.write_row(DESCRIPTION_COLUMNS)
        for name in names:
            rows.write_row((name, name))


OPENIMAGES = Format(
    name="openimages",
    about="Open Images CSV of image-level labels with confidence 1 or 0. Read by pandas and FiftyOne",
    ending=".csv",
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unknown=False, unsure=True, absent=False, provenance=True),
)
