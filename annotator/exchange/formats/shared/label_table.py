"""Labels in CSV or TSV tables of any shape, read row by row.

RFC 4180 with comma, semicolon or tab, UTF-8 or UTF-16. Own exports have two shapes:

    image,class,state      one row per answer
    image,kind,note,...    flags, comments, and fields of kind attribute:NAME

Other tables are interpreted by content.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.arrow_tables import check_column_count
from annotator.exchange.files.csv_cells import unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows, read_header_line, split_header
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item, Remark
from annotator.exchange.formats.shared.class_list import find_class_names
from annotator.exchange.formats.shared.data_card_reader import read_class_columns
from annotator.exchange.formats.shared.table_items import RawTable, interpret_table
from annotator.exchange.formats.shared.times import parse_seconds
from annotator.exchange.reading.cell_words import normalize_word
from annotator.exchange.reading.column_names import IMAGE_COLUMN_NAMES, parse_label_column
from annotator.exchange.reading.known_tables import find_table_profile
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, STATES
from annotator.store.pictures.picture_kinds import looks_like_image

CELL_DELIMITERS = ",;\t"
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
IMAGE_COLUMNS = ("image", "filename", "file_name", "file", "path", "image_path", "filepath")
CLASS_COLUMNS = ("class", "label", "class_name", "category")
STATE_COLUMNS = ("state", "value")
EXPORTED_FILE_COLUMN = "file"
"""The column with what an export calls the file of an image whose name it has in `image`."""
ATTRIBUTE_PREFIX = "attribute:"
"""Begins the kind of a note that is a fact of the image."""

_STATE_BY_WORD: dict[str, int] = {**STATES, "1": PRESENT, "0": ABSENT, "true": PRESENT, "false": ABSENT}


def read_header(path: Path) -> tuple[list[str], str]:
    """Return the lower-case, unescaped column names (empty if not a table) and the delimiter."""
    cells, delimiter = split_header(read_header_line(path), CELL_DELIMITERS)
    return [unescape_formula(cell.strip()).lower() for cell in cells], delimiter


def is_camera_trap_header(header: Collection[str]) -> bool:
    """Return whether a table's header is that of Camtrap DP or Wildlife Insights."""
    if {"image_id", "deployment_id", "is_blank", "common_name"}.issubset(header):
        return True
    ids = {"deploymentid", "mediaid", "observationid"}
    others = {"filepath", "observationtype", "latitude"}
    return not ids.isdisjoint(header) and not others.isdisjoint(header)


def recognize_table(path: Path, delimiters: str) -> str | None:
    """Return the reason to read a file as a table with one of these delimiters, or None if it is not one."""
    if not path.is_file():
        return None
    header, delimiter = read_header(path)
    if len(header) < 2 or delimiter not in delimiters or is_camera_trap_header(header) or path.suffix.lower() == ".ddb":
        return None
    if lacks_header(header) and path.suffix.lower() in TABLE_SUFFIXES:
        return "a table without a header"
    words = {normalize_word(name) for name in header}
    is_named = not words.isdisjoint(IMAGE_COLUMNS) or (
        not words.isdisjoint(IMAGE_COLUMN_NAMES)
        and (path.suffix.lower() in TABLE_SUFFIXES or any(map(parse_label_column, header)))
    )
    if not is_named and not find_table_profile(header):
        return None
    named = ", ".join(header[:4]) + (", ..." if len(header) > 4 else "")
    return f"a table with the columns {named}"


def lacks_header(first: Sequence[str]) -> bool:
    """Return whether the first row is data, because it has an image file name."""
    return any(looks_like_image(cell.replace("\\", "/")) for cell in first)


def read_table(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of a table, read with options.

    AnnotatorError is raised for empty or unreadable files, duplicate columns, or no image column.
    """
    if not path.is_file():
        raise AnnotatorError(f"There is no file {path} (the label file). Is the path spelled right?")
    delimiter = read_header(path)[1]
    rows = read_csv_rows(path, problems, delimiter=delimiter)
    first = next(rows, None)
    if first is None:
        raise AnnotatorError(
            f"The label file {path} is empty; it needs a first line image,class,state or image,labels."
        )
    check_column_count(path, len(first[1]))
    names = [unescape_formula(cell.strip()) for cell in first[1]]
    if lacks_header(names):
        rows, names = chain([first], rows), [f"column {number}" for number in range(1, len(names) + 1)]
    header = [name.lower() for name in names]
    if twice := sorted(name for name, count in Counter(names).items() if name and count > 1):
        raise AnnotatorError(f"The label file {path} has two columns called {', '.join(map(repr, twice))}.")
    image = _find_column(header, IMAGE_COLUMNS)
    if image is not None and {"kind", "note"} <= set(header):
        return Contents([], _read_notes(rows, header, image, problems))
    ours = read_class_columns(path)  # also if a class is called "class", "labels" or "width"
    is_ours = bool(ours) and set(ours) <= set(names) and "image" in names
    class_, is_told = (
        _find_column(header, CLASS_COLUMNS),
        options.label_columns is not None or options.class_columns is not None,
    )
    if not is_ours and not is_told and None not in (image, class_, _find_column(header, STATE_COLUMNS)):
        assert image is not None and class_ is not None
        return Contents([], _read_long_rows(rows, header, image, class_, problems))
    table = RawTable(
        path,
        names,
        rows,
        names.index("image") if is_ours else None,
        find_class_names(path),
        frozenset(ours if is_ours else ()),
        unescape=unescape_formula,
    )
    return interpret_table(table, problems, options)


def _find_column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _read_long_rows(
    rows: Iterator[tuple[int, list[str]]], header: list[str], image: int, class_: int, problems: Problems
) -> Iterator[Item]:
    """Yield answers, one item per consecutive rows of one image. A new class starts a new item."""
    state = _find_column(header, STATE_COLUMNS)
    original = "original_" if "original_source" in header else ""
    who = [[_find_column(header, [name]) for name in names] for names in _list_provenance_columns(original)]
    split, sha256, file = (_find_column(header, [name]) for name in ("split", "sha256", EXPORTED_FILE_COLUMN))
    file = None if file == image else file
    seen: set[str] = set()
    times: dict[str, float | None] = {}

    def parse_answer(line: int, row: list[str]) -> ImportedLabel | None:
        word = "present" if state is None else row[state].strip().lower()
        if word not in _STATE_BY_WORD:
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
                times[facts[2]] = parse_seconds(facts[2])
            except (ValueError, OverflowError):
                problems.add(f"line {line}: decided_at {facts[2]!r} is no time (ISO 8601)")
                times[facts[2]] = None
        name = unescape_formula(row[class_].strip())
        return ImportedLabel(name, _STATE_BY_WORD[word], unescape_formula(facts[1]), times.get(facts[2]), facts[0])

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
        written = unescape_formula(first[file]) if file is not None else ""
        yield Item(unescape_formula(name), place, labels, attributes=facts, sha256=content, written=written)


def _list_provenance_columns(original: str) -> list[list[str]]:
    columns = [["source", "annotator", "decided_at"]]
    return [[original + name for name in columns[0]], *columns] if original else columns


def _read_notes(
    rows: Iterator[tuple[int, list[str]]], header: list[str], image: int, problems: Problems
) -> Iterator[Item]:
    kind, note = header.index("kind"), header.index("note")
    annotator, written = _find_column(header, ["annotator"]), _find_column(header, ["written_at"])
    file = _find_column(header, [EXPORTED_FILE_COLUMN])
    for line, row in rows:
        place = "" if file is None or file == image else unescape_formula(row[file])
        if (name := unescape_formula(row[kind])).startswith(ATTRIBUTE_PREFIX):
            facts = {name.removeprefix(ATTRIBUTE_PREFIX): unescape_formula(row[note])}
            yield Item(unescape_formula(row[image]), line, attributes=facts, written=place)
            continue
        try:
            at = None if written is None else parse_seconds(row[written])
        except (ValueError, OverflowError):
            problems.add(f"line {line}: written_at {row[written or 0]!r} is no time (ISO 8601)")
            continue
        by = "" if annotator is None else unescape_formula(row[annotator])
        remark = Remark(row[kind], unescape_formula(row[note]), by, at)
        yield Item(unescape_formula(row[image]), line, remarks=[remark], written=place)
