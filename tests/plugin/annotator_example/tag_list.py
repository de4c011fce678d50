"""tag-list: a text file, one image a line: its name, a tab, then +class for present and -class for absent, by tabs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT

STATES = {"+": PRESENT, "-": ABSENT}


def recognize(path: Path) -> str | None:
    return "its name ends in .tags" if path.suffix == ".tags" and path.is_file() else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    return Contents([], _items(path, problems), sentences=["classes that a line does not name are unknown"])


def _items(path: Path, problems: Problems) -> Iterator[Item]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            image, *tags = line.rstrip("\n").split("\t")
            if bad := [tag for tag in tags if tag[:1] not in STATES or not tag[1:]]:
                problems.add(f"{path.name}, line {number}: {bad[0]!r} must be + or - and the name of a class")
                continue
            yield Item(image, number, [ImportedLabel(tag[1:], STATES[tag[0]]) for tag in tags])


def write(view: View, out: Output) -> None:
    names = [class_.name for class_ in view.classes]
    with out.open_text() as file:
        for block in view.blocks():
            for image, values in zip(block.images, block.values, strict=True):
                known = [f"{'-+'[values[column]]}{names[column]}" for column in np.flatnonzero(values >= 0)]
                file.write("\t".join([image.name, *known]) + "\n")


TAG_LIST = Format(
    name="tag-list",
    about="a text file with one line an image; read by people",
    ending=".tags",
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unsure=True, provenance=True),
)
