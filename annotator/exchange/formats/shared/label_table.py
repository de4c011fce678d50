"""Labels in a CSV or TSV of any shape: read row by row, however long the file is.

Format: RFC 4180, UTF-8 or UTF-16, with "," ";" or a tab between columns, also after the line sep=; of Excel. The first
row names the columns. Two shapes are those of our own exports:

    image,class,state      one row an answer: present, absent or unsure (or 1, 0). Columns source, annotator, decided_at
                           say who gave it and when
    image,kind,note,...    flags and comments; facts of images, whose kind is attribute:NAME

All other tables, such as image,labels and image,fox,heron,..., are read as reading/deciding.py decides.
"""

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.lines import csv_rows, header_line
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.tables import refuse_many_columns
from annotator.exchange.files.text_cells import unescaped
from annotator.exchange.formats.contents import Contents, Given, Item, Remark
from annotator.exchange.formats.shared.card_beside import columns_of_classes
from annotator.exchange.formats.shared.class_list import names_beside
from annotator.exchange.formats.shared.table_items import Table, contents
from annotator.exchange.formats.shared.times import unix_seconds
from annotator.exchange.reading.columns import IMAGE as IMAGE_WORDS
from annotator.exchange.reading.columns import label_number
from annotator.exchange.reading.reading import Reading
from annotator.exchange.reading.words import plain
from annotator.records import ABSENT, PRESENT, STATES
from annotator.store.pictures.kinds import looks_like_image

DELIMITERS = ",;\t"
SUFFIXES = (".csv", ".tsv", ".txt")
IMAGE = ("image", "filename", "file_name", "file", "path", "image_path", "filepath")
CLASS = ("class", "label", "class_name", "category")
STATE = ("state", "value")
WRITTEN = "file"
"""The column with what an export calls the file of an image whose name it has in `image`."""
FACT = "attribute:"
"""Begins the kind of a note that is a fact of the image."""

_STATES: dict[str, int] = {**STATES, "1": PRESENT, "0": ABSENT, "true": PRESENT, "false": ABSENT}


def header_of(path: Path) -> tuple[list[str], str]:
    """Return the names of the columns, in small letters and unescaped, and the delimiter; [] if it is not a table."""
    line = header_line(path)
    best: tuple[list[str], str] = [], ","
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader(io.StringIO(line), delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(cells) > len(best[0]):
            best = [unescaped(cell.strip()).lower() for cell in cells], delimiter
    return best


def is_of_package(header: Collection[str]) -> bool:
    """Return whether a header is that of a Camtrap DP, whose tables are read together, or of Wildlife Insights."""
    if {"image_id", "deployment_id", "is_blank", "common_name"}.issubset(header):
        return True
    ids = {"deploymentid", "mediaid", "observationid"}
    others = {"filepath", "observationtype", "latitude"}
    return not ids.isdisjoint(header) and not others.isdisjoint(header)


def recognise(path: Path, delimiters: str) -> str | None:
    """Return why a file is such a table with one of these delimiters, or None."""
    if not path.is_file():
        return None
    header, delimiter = header_of(path)
    if len(header) < 2 or delimiter not in delimiters or is_of_package(header) or path.suffix.lower() == ".ddb":
        return None
    if is_headless(header) and path.suffix.lower() in SUFFIXES:
        return "a table without a header"
    words = {plain(name) for name in header}
    is_named = not words.isdisjoint(IMAGE) or (
        not words.isdisjoint(IMAGE_WORDS) and (path.suffix.lower() in SUFFIXES or any(map(label_number, header)))
    )
    if not is_named:
        return None
    named = ", ".join(header[:4]) + (", ..." if len(header) > 4 else "")
    return f"a table with the columns {named}"


def is_headless(first: Sequence[str]) -> bool:
    """Return whether the first row of a table is one of its rows: a cell ends as image files do."""
    return any(looks_like_image(cell.replace("\\", "/")) for cell in first)


def read(path: Path, problems: Problems) -> Contents:
    """Return the labels of a table, as `read_as` with the reader's own decisions."""
    return read_as(path, problems, Reading())


def read_as(path: Path, problems: Problems, reading: Reading) -> Contents:
    """Return the labels of a table, read as a person says.

    Raises:
        AnnotatorError: The file cannot be read, is empty, has two columns of one name, or none that names images.
    """
    if not path.is_file():
        raise AnnotatorError(f"There is no file {path} (the label file). Is the path spelled right?")
    delimiter = header_of(path)[1]
    rows = csv_rows(path, problems, delimiter=delimiter)
    first = next(rows, None)
    if first is None:
        raise AnnotatorError(
            f"The label file {path} is empty; it needs a first line image,class,state or image,labels."
        )
    refuse_many_columns(path, len(first[1]))
    names = [unescaped(cell.strip()) for cell in first[1]]
    if is_headless(names):
        rows, names = chain([first], rows), [f"column {number}" for number in range(1, len(names) + 1)]
    header = [name.lower() for name in names]
    if twice := sorted(name for name, count in Counter(names).items() if name and count > 1):
        raise AnnotatorError(f"The label file {path} has two columns called {', '.join(map(repr, twice))}.")
    image = _column(header, IMAGE)
    if image is not None and {"kind", "note"} <= set(header):
        return Contents([], _notes(rows, header, image, problems))
    ours = columns_of_classes(path)  # also if a class is called "class", "labels" or "width"
    is_ours = bool(ours) and set(ours) <= set(names) and "image" in names
    class_, is_told = _column(header, CLASS), reading.label_columns is not None or reading.class_columns is not None
    if not is_ours and not is_told and None not in (image, class_, _column(header, STATE)):
        assert image is not None and class_ is not None
        return Contents([], _long(rows, header, image, class_, problems))
    table = Table(
        path,
        names,
        rows,
        names.index("image") if is_ours else None,
        names_beside(path),
        frozenset(ours if is_ours else ()),
        text=unescaped,
    )
    return contents(table, problems, reading)


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _long(
    rows: Iterator[tuple[int, list[str]]], header: list[str], image: int, class_: int, problems: Problems
) -> Iterator[Item]:
    """Yield the answers of a table with one row an answer.

    Successive rows of one image are one item; but a row with a class that occurs for the first time is an item of its
    own.
    """
    state = _column(header, STATE)
    original = "original_" if "original_source" in header else ""
    who = [[_column(header, [name]) for name in names] for names in _who_columns(original)]
    split, sha256, file = (_column(header, [name]) for name in ("split", "sha256", WRITTEN))
    file = None if file == image else file
    seen: set[str] = set()
    times: dict[str, float | None] = {}

    def parse_answer(line: int, row: list[str]) -> Given | None:
        word = "present" if state is None else row[state].strip().lower()
        if word not in _STATES:
            problems.add(f"line {line}: state {row[state or 0]!r}; it must be present, absent or unsure")
            return None
        facts = ["", "", ""]
        for columns in who:  # the columns of the origin come first, if they exist
            facts = ["" if column is None else row[column] for column in columns]
            if any(facts):
                break
        if facts[2] not in times:
            if len(times) >= 10_000:  # clearing all is cheaper than deleting the oldest key each time
                times.clear()
            try:
                times[facts[2]] = unix_seconds(facts[2])
            except (ValueError, OverflowError):
                problems.add(f"line {line}: decided_at {facts[2]!r} is no time (ISO 8601)")
                times[facts[2]] = None
        name = unescaped(row[class_].strip())
        return Given(name, _STATES[word], unescaped(facts[1]), times.get(facts[2]), facts[0])

    def key(numbered: tuple[int, list[str]]) -> tuple[str, int]:
        line, row = numbered
        if row[class_] in seen:
            return row[image], 0
        seen.add(row[class_])
        return row[image], line

    for (name, _), group in groupby(rows, key):
        place, labels, first = 0, [], None
        for line, row in group:
            place, first = place or line, first or row
            if answer := parse_answer(line, row):
                labels.append(answer)
        assert first is not None  # a group has a row
        facts = {"split": first[split]} if split is not None and first[split] else {}
        content = first[sha256] if sha256 is not None else ""
        written = unescaped(first[file]) if file is not None else ""
        yield Item(unescaped(name), place, labels, attributes=facts, sha256=content, written=written)


def _who_columns(original: str) -> list[list[str]]:
    columns = [["source", "annotator", "decided_at"]]
    return [[original + name for name in columns[0]], *columns] if original else columns


def _notes(rows: Iterator[tuple[int, list[str]]], header: list[str], image: int, problems: Problems) -> Iterator[Item]:
    """Yield flags, comments and facts, in the form that exports write them."""
    kind, note = header.index("kind"), header.index("note")
    annotator, written = _column(header, ["annotator"]), _column(header, ["written_at"])
    file = _column(header, [WRITTEN])
    for line, row in rows:
        place = "" if file is None or file == image else unescaped(row[file])
        if (name := unescaped(row[kind])).startswith(FACT):
            facts = {name.removeprefix(FACT): unescaped(row[note])}
            yield Item(unescaped(row[image]), line, attributes=facts, written=place)
            continue
        try:
            at = None if written is None else unix_seconds(row[written])
        except (ValueError, OverflowError):
            problems.add(f"line {line}: written_at {row[written or 0]!r} is no time (ISO 8601)")
            continue
        by = "" if annotator is None else unescaped(row[annotator])
        remark = Remark(row[kind], unescaped(row[note]), by, at)
        yield Item(unescaped(row[image]), line, remarks=[remark], written=place)
